package shape

import (
	"encoding/hex"
	"strings"
	"testing"

	"wpptrace/compress/ops"
	"wpptrace/compress/sequitur"
	"wpptrace/compress/wpp"
	"wpptrace/internal/testenv"
	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
)

// TestOf finds the loop and the call of a routine in its file, and refuses another graph by name.
func TestOf(t *testing.T) {
	path := testenv.CompileC(t, `
		static volatile int sink;
		__attribute__((noinline)) static void work(int i) { sink = i; }
		__attribute__((noinline)) static void spin(int n) {
			work(n);
			for (int i = 0; i < n; i++)
				if (sink != i)
					sink = n;
		}
		int main(int argc, char **argv) { spin(argc); return 0; }`, "-O1", "-Wl,--build-id")
	im, err := image.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	program, err := recovery.Recover(im)
	if err != nil {
		t.Fatal(err)
	}
	id, _ := hex.DecodeString(im.BuildID)
	s := &wpp.Snapshot{Images: []wpp.Image{{Name: path, BuildID: id}}}
	spin := -1
	for _, r := range program.Routines {
		if r.Name == "spin" {
			spin = len(s.Routines)
		}
		if r.Name != "spin" && r.Name != "work" {
			continue
		}
		x := wpp.Routine{Name: r.Name, Entry: r.Addr}
		for _, b := range r.Blocks {
			block := wpp.Block{Addr: b.Lo}
			for _, q := range b.Insns {
				block.Lengths = append(block.Lengths, byte(q.Len))
			}
			x.Blocks = append(x.Blocks, block)
		}
		s.Routines = append(s.Routines, x)
	}
	shapes, err := Of(s, nil)
	if err != nil || len(shapes.Of) != 2 || len(shapes.LeftOut) > 0 {
		t.Fatalf("%+v, %v", shapes, err)
	}
	if x := shapes.Of[spin]; len(x.Loops) != 1 || len(x.Calls) != 1 || len(x.Predicates) == 0 ||
		x.Calls[0].Routine != 1-spin {
		t.Errorf("%+v", x)
	}
	s.Routines[spin].Blocks[1].Addr++
	shapes, err = Of(s, []string{path})
	if err != nil || len(shapes.Of) != 1 ||
		shapes.LeftOut["it was recorded with another graph, as spin"] != 1 {
		t.Errorf("%+v, %v", shapes, err)
	}
	if _, err := Of(s, []string{"/bin/true"}); err == nil ||
		!strings.Contains(err.Error(), "/bin/true has build id") {
		t.Error(err)
	}
}

// TestBoundsOfUnknownGraphs: where no graph is known, that is an error, and not that no pairs ran.
func TestBoundsOfUnknownGraphs(t *testing.T) {
	symbols := []wpp.Symbol{{Blocks: []int{0}, Start: ops.StartEntry, End: ops.EndReturn}}
	grammar := sequitur.New()
	grammar.Append(0)
	for _, c := range []struct {
		name   string
		blocks []wpp.Block
		want   string
	}{
		{"gone", []wpp.Block{{Addr: 16, Lengths: []byte{1}}},
			"of no routine that ran is the graph known: open image: "},
		{"without blocks", nil, "it does not say which blocks ran"},
	} {
		s := &wpp.Snapshot{Images: []wpp.Image{{Name: "/none"}}, Symbols: symbols,
			Routines: []wpp.Routine{{Name: "f", Entry: 16, Blocks: c.blocks}},
			Threads:  []wpp.Thread{{TID: 1, Grammar: wpp.FromSequitur(grammar)}}}
		if r, err := Bounds(s, &Question{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v", c.name, r, err)
		}
	}
	if r, err := Bounds(&wpp.Snapshot{}, &Question{}); err != nil || r.Flows[0].Pairs != 0 {
		t.Errorf("nothing ran: %+v, %v", r, err)
	}
}

// TestBoundsAgainstAnotherProgram: a recording of another build does not have the truth.
func TestBoundsAgainstAnotherProgram(t *testing.T) {
	of := func(name string, id ...byte) *wpp.Snapshot {
		return &wpp.Snapshot{Images: []wpp.Image{{Name: name, BuildID: id}}}
	}
	for _, c := range []struct {
		other *wpp.Snapshot
		want  bool
	}{
		{of("/bin/a", 1), true}, {of("/bin/b", 1), true}, {of("/bin/a", 2), false},
		{of("/bin/a"), false},
	} {
		_, err := Bounds(of("/bin/a", 1), &Question{Against: c.other})
		if got := err == nil; got != c.want || !got && !strings.Contains(err.Error(),
			"of another program, or another build: --against takes one of /bin/a") {
			t.Errorf("%+v: %v", c.other.Images, err)
		}
	}
	if _, err := Bounds(&wpp.Snapshot{}, &Question{Against: of("/bin/a", 1)}); err != nil {
		t.Errorf("of no image: %v", err)
	}
}

// TestLacks: all of a file is recovered where a part of it does not do for what ran, as of python3
// as Debian ships it.
func TestLacks(t *testing.T) {
	path := testenv.CompileC(t, "int main(void) { return 0; }")
	im, err := image.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	program, err := recovery.Recover(im)
	if err != nil {
		t.Fatal(err)
	}
	var main *cfg.Routine
	for _, r := range program.Routines {
		if r.Name == "main" {
			main = r
		}
	}
	s := &wpp.Snapshot{Routines: []wpp.Routine{{Entry: main.Addr}}}
	check := func(name string, at uint64, blocks int, leftOut string, want bool) {
		s.Routines[0].Blocks, main.LeftOut = make([]wpp.Block, blocks), leftOut
		if got := lacks(program, s, map[uint64]int{at: 0}); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	check("there", main.Addr, 1, "", false)
	check("left out", main.Addr, 1, "may be jumped to in its middle", true)
	check("has not run", main.Addr, 0, "may be jumped to in its middle", false)
	check("none", main.Addr+1, 1, "", true)
}
