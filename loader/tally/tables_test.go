package tally

import (
	"math"
	"os"
	"testing"

	"wpptrace/bpf"
	"wpptrace/internal/testenv"
	"wpptrace/internal/traced"
	"wpptrace/loader/counting"
	"wpptrace/loader/image"
	"wpptrace/loader/paths"
	"wpptrace/loader/plan/planner"
	"wpptrace/loader/x86"
)

const several = `
volatile int sink;
__attribute__((noinline)) int many(int a, int b, int c) {
	if (a) sink = 1; else sink = 2;
	for (int i = 0; i < c; i++)
		if (b > i) sink += 3; else sink = 4;
	return sink;
}
__attribute__((noinline)) int calls(int a) {
	int sum = 0;
	while (a-- > 0)
		if (a & 1) sum += many(a, 2, a); else if (a & 2) sum -= many(2, a, 3);
	return sum;
}
int main(int argc, char **argv) { return calls(argc) == 0; }`

// machines returns those that count some paths of each routine of a program.
func machines(t *testing.T) (path string, im *image.Image, list []Routine) {
	name := testenv.CompileC(t, several, "-O1")
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	program, err := traced.Load(file, "several", traced.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range program.Plan.Routines {
		if !r.Traced() {
			continue
		}
		n, err := paths.Number(r.Routine)
		if err != nil {
			t.Fatal(err)
		}
		q := counting.Question{Routine: r.Routine, Numbering: n, Rest: true, Twice: r.ReturnsTwice,
			Cost: func(int, counting.Site) float64 { return 1 },
			Site: func(b int) (counting.Site, bool) {
				i, stepped, ok := planner.Point(r.Routine, b)
				return counting.Site{Stepped: stepped,
					Jump: ok && r.Blocks[b].Insns[i].Kind == x86.Jcc}, ok
			}}
		for number := range min(n.Total, 20) {
			q.Paths = append(q.Paths, number)
		}
		if a, err := counting.Choose(q); err == nil {
			list = append(list, Routine{r.Routine, a.Machine})
		}
	}
	if len(list) < 3 {
		t.Fatalf("%d routines", len(list))
	}
	return name, program.Image, list
}

// TestPack looks up all steps as the kernel does, and steps that no row has.
func TestPack(t *testing.T) {
	_, _, list := machines(t)
	tables, err := Pack(list)
	if err != nil {
		t.Fatal(err)
	}
	look := func(row, symbol uint32) (bpf.CountCountStep, bool) {
		at := row + symbol
		if int64(at) >= int64(len(tables.steps)) || tables.steps[at].From != row {
			return bpf.CountCountStep{}, false
		}
		return tables.steps[at], true
	}
	bySite := map[uint64]uint64{}
	for _, s := range tables.Sites {
		bySite[s.Addr] = s.cookie
	}
	steps := 0
	for i, r := range list {
		symbols := map[counting.Symbol]uint32{}
		for _, s := range r.Machine.Unsure {
			insn, _, _ := planner.Point(r.Routine, s.Hit.Block())
			cookie := bySite[r.Blocks[s.Hit.Block()].Insns[insn].Addr]
			symbols[s.Hit] = uint32(cookie) + uint32(s.Hit.Outcome())
		}
		rows := map[int]uint32{} // as they are come to
		var follow func(from uint32, s counting.Step)
		follow = func(from uint32, s counting.Step) {
			steps++
			got, ok := look(from, symbols[s.Hit])
			key := uint64(math.MaxUint64)
			if s.Key != counting.None {
				key = tables.First[i] + uint64(s.Key)
			}
			if !ok || got.Key != key {
				t.Fatalf("%s: %+v from %d: %+v, %v", r.Name, s, from, got, ok)
			}
			if row, met := rows[s.Row]; met {
				if row != got.To {
					t.Fatalf("%s: row %d is at %d and at %d", r.Name, s.Row, row, got.To)
				}
				return
			}
			rows[s.Row] = got.To
			has := map[uint32]bool{}
			for _, next := range r.Machine.Rows[s.Row].Steps {
				has[symbols[next.Hit]] = true
				follow(got.To, next)
			}
			for symbol := range tables.unsure {
				if _, ok := look(got.To, symbol); ok != has[symbol] {
					t.Fatalf("%s: row %d has a step for symbol %d: %v", r.Name, s.Row, symbol, ok)
				}
			}
		}
		for _, s := range r.Machine.Defaults {
			follow(defaults, s)
		}
		for _, s := range r.Machine.Unsure {
			follow(tables.unsure, s)
		}
	}
	if steps < 50 {
		t.Errorf("%d steps", steps)
	}
}

// TestValue has sums near 2^64, and ones that are read while paths go on.
func TestValue(t *testing.T) {
	const most = uint64(math.MaxUint64)
	c := &Counts{Counters: []uint64{7, most - 1, 5, most}}
	for _, x := range []struct {
		plus, minus []int
		first, want uint64
	}{
		{[]int{0}, []int{2}, 0, 2},
		{[]int{1}, nil, 0, most - 1},
		{[]int{0}, nil, 3, most},
		{[]int{1}, []int{0, 2}, 0, most - 13},
		{[]int{0, 1}, nil, 0, most},
		{[]int{2}, []int{0}, 0, 0},
		{[]int{0}, []int{1}, 1, most - 6},
	} {
		f := &counting.Formula{Plus: x.plus, Minus: x.minus}
		if got := c.Value(f, x.first); got != x.want {
			t.Errorf("%v less %v, from %d on: %d, not %d", x.plus, x.minus, x.first, got, x.want)
		}
	}
}
