package source

import (
	"log/slog"
	"os"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"wpptrace/compress/wpp"
	"wpptrace/internal/testenv"
	"wpptrace/internal/traced"
)

const threeRoutines = `
static int a(int x) { return x > 3 ? x * 2 : x; }
__attribute__((noinline)) int b(int x) { return x & 1 ? a(x) : x - 1; }
__attribute__((noinline)) int c(int x) { return b(x) ? x : 7; }
int main(int n, char **v) { return c(n) + b(n); }`

// TestSourcesStay: of routines that a snapshot before has met, one says the same as if it were the
// first, and debug information is not read again for them.
func TestSourcesStay(t *testing.T) {
	file, err := os.Open(testenv.CompileC(t, threeRoutines, "-g", "-O1"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	program, err := traced.Load(file, "prog", traced.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	all := program.Plan.Routines
	snapshotOf := func(table *Table, met ...int) *wpp.Snapshot {
		s := &wpp.Snapshot{Routines: make([]wpp.Routine, len(all))}
		for _, i := range met {
			s.Symbols = append(s.Symbols, wpp.Symbol{Routine: i})
		}
		table.AddTo(s, program.Plan.Parts)
		return s
	}
	newTable := func() *Table {
		return NewTable(NewTroubles(slog.New(slog.DiscardHandler)))
	}
	table := newTable()
	for i := range all {
		var met []int
		for k := range i + 1 {
			met = append(met, k)
		}
		got := snapshotOf(table, met...)
		if i == 0 {
			continue
		}
		first := newTable() // which has met them in the same order
		for k := range i {
			snapshotOf(first, k)
		}
		if diff := gocmp.Diff(snapshotOf(first, met...), got); diff != "" {
			t.Errorf("%d routines: %s", i+1, diff)
		}
	}
	met := make([]int, len(all))
	for i := range met {
		met[i] = i
	}
	again := func() { snapshotOf(table, met...) }
	const most = 50 // allocations: those of a snapshot
	if n := testing.AllocsPerRun(10, again); n > most {
		t.Errorf("another snapshot takes %v allocations", n)
	}
	if len(table.blocks) != len(all) || table.Bytes() == 0 {
		t.Errorf("%d routines of %d, %d bytes", len(table.blocks), len(all), table.Bytes())
	}
}
