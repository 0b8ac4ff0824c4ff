package interesting

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"wpptrace/compress/ops"
	"wpptrace/compress/sequitur"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/store"
	"wpptrace/internal/testenv"
	"wpptrace/internal/traced"
	"wpptrace/loader/paths"
	"wpptrace/loader/plan"
	"wpptrace/query/report"
)

// branching has a routine of many paths.
const branching = `
volatile int sink;
__attribute__((noinline)) int many(int a, int b, int c) {
	if (a) sink = 1; else sink = 2;
	if (b) sink = 3; else sink = 4;
	if (c) sink = 5; else sink = 6;
	return sink;
}
int main(int argc, char **argv) { return many(argc & 1, argc & 2, argc & 4) == 0; }`

// program plans branching.
func program(t testing.TB, flags ...string) (p *plan.Plan, many *plan.Routine) {
	t.Helper()
	file, err := os.Open(testenv.CompileC(t, branching, append(flags, "-O1")...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	loaded, err := traced.Load(file, "prog", traced.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range loaded.Plan.Routines {
		if r.Name == "many" && r.Traced() {
			return loaded.Plan, r
		}
	}
	t.Fatal("many is not traced")
	return nil, nil
}

// snapshot returns one in which paths of a routine ran, each as often as times says by its number.
func snapshot(t testing.TB, p *plan.Plan, r *plan.Routine, times map[uint64]int) *wpp.Snapshot {
	t.Helper()
	n, err := paths.Number(r.Routine)
	if err != nil {
		t.Fatal(err)
	}
	im := p.Parts[0].Program.Image
	id, _ := hex.DecodeString(im.BuildID)
	s := &wpp.Snapshot{Images: []wpp.Image{{Name: "other"}, {Name: im.Name, BuildID: id}},
		Routines: []wpp.Routine{{Name: r.Name, Image: 1, Entry: r.Addr, Paths: n.Total}}}
	for _, b := range r.Blocks {
		block := wpp.Block{Addr: b.Lo}
		for _, q := range b.Insns {
			block.Lengths = append(block.Lengths, byte(q.Len))
		}
		s.Routines[0].Blocks = append(s.Routines[0].Blocks, block)
	}
	g := sequitur.New()
	for number := range n.Total {
		path, err := n.Decode(number)
		if err != nil {
			t.Fatal(err)
		}
		if times[number] == 0 {
			continue
		}
		for range times[number] {
			g.Append(uint32(len(s.Symbols)))
		}
		s.Symbols = append(s.Symbols, wpp.Symbol{Start: ops.Start(path.Start),
			End: ops.End(path.End), Path: number, Blocks: path.Blocks})
	}
	s.Threads = []wpp.Thread{{TID: 1, Grammar: wpp.FromSequitur(g)}}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSameName has the name of a routine be what tables of the snapshot call it: routines of one
// name are told apart, as the destructors of a class are.
func TestSameName(t *testing.T) {
	p, many := program(t, "-Wl,--build-id")
	s := snapshot(t, p, many, map[uint64]int{0: 1})
	s.Routines = append(s.Routines, s.Routines[0])
	s.Routines[1].Entry++
	set, err := Of(p, s, Choice{})
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("many@%x", many.Addr); set.Routines[0].Name != want {
		t.Errorf("%q, not %q", set.Routines[0].Name, want)
	}
}

// TestSet takes what a snapshot has of a plan, all or the hottest, and nothing else.
func TestSet(t *testing.T) {
	p, many := program(t, "-Wl,--build-id")
	for _, test := range []struct {
		name    string
		change  func(s *wpp.Snapshot)
		hottest int
		want    []uint64
		unknown int
		others  int
	}{
		{"all", func(*wpp.Snapshot) {}, 0, []uint64{0, 2, 5}, 0, 0},
		{"the hottest", func(*wpp.Snapshot) {}, 2, []uint64{2, 5}, 0, 0},
		{"more than there are", func(*wpp.Snapshot) {}, 9, []uint64{0, 2, 5}, 0, 0},
		{"one that ends otherwise", func(s *wpp.Snapshot) { s.Symbols[1].End = ops.EndCut }, 0,
			[]uint64{0, 5}, 1, 0},
		{"one of other blocks", func(s *wpp.Snapshot) {
			s.Symbols[2].Blocks = s.Symbols[0].Blocks
		}, 0, []uint64{0, 2}, 1, 0},
		{"a part of a path", func(s *wpp.Snapshot) { s.Symbols[0].Path = s.Routines[0].Paths }, 0,
			[]uint64{2, 5}, 0, 0},
		{"other numbers of paths", func(s *wpp.Snapshot) { s.Routines[0].Paths++ }, 0, nil, 3, 0},
		{"a routine elsewhere", func(s *wpp.Snapshot) { s.Routines[0].Entry++ }, 0, nil, 0, 3},
		{"of another image", func(s *wpp.Snapshot) { s.Routines[0].Image = 0 }, 0, nil, 0, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := snapshot(t, p, many, map[uint64]int{0: 1, 2: 300, 5: 200})
			test.change(s)
			set, err := Of(p, s, Choice{Hot: test.hottest})
			if err != nil {
				t.Fatal(err)
			}
			var got []uint64
			for _, r := range set.Routines {
				if r.Routine != many {
					t.Errorf("paths of %s", r.Routine.Name)
				}
				got = append(got, r.Paths...)
			}
			if !slices.Equal(got, test.want) || set.Unknown != test.unknown ||
				set.Untraced != test.others {
				t.Errorf("%d, %d unknown, %d untraced", got, set.Unknown, set.Untraced)
			}
			if (set.Example != "") != (test.unknown > 0) || (set.HitsPerPath() > 0) !=
				(len(test.want) > 0) {
				t.Errorf("example %q, %v hits a path", set.Example, set.HitsPerPath())
			}
		})
	}
}

// TestChoice takes the paths that a pattern names, where they ran as a part of it, the hottest of
// these, and all that a routine has.
func TestChoice(t *testing.T) {
	p, many := program(t, "-Wl,--build-id")
	s := snapshot(t, p, many, map[uint64]int{0: 1, 2: 300, 5: 200, 7: 100})
	for _, test := range []struct {
		choice Choice
		want   []uint64
	}{
		{Choice{Pattern: "many"}, []uint64{0, 2, 5, 7}},
		{Choice{Pattern: "many#5"}, []uint64{5}},
		{Choice{Pattern: "many#1"}, nil},
		{Choice{Pattern: "many#2 many"}, []uint64{2, 5}},
		{Choice{Pattern: "many#5 many#2"}, nil},
		{Choice{Pattern: "many#0 ** many#7"}, nil},
		{Choice{Pattern: "many#0 * many"}, []uint64{0, 2}},
		{Choice{Pattern: "many", Hot: 2}, []uint64{2, 5}},
		{Choice{All: true}, []uint64{0, 1, 2, 3, 4, 5, 6, 7}},
	} {
		set, err := Of(p, s, test.choice)
		if err != nil {
			t.Fatal(err)
		}
		var got []uint64
		for _, r := range set.Routines {
			got = append(got, r.Paths...)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%+v: %d, not %d", test.choice, got, test.want)
		}
	}
	if _, err := Of(p, s, Choice{Pattern: "none"}); err == nil {
		t.Error("a routine that there is not has paths")
	}
}

// TestWrong names flags that do not go together.
func TestWrong(t *testing.T) {
	for _, test := range []struct {
		choice Choice
		flags  string
		want   string
	}{
		{Choice{}, "", ""},
		{Choice{Hot: 1}, "hot", "--hot needs --interesting"},
		{Choice{Pattern: "f"}, "pattern", "--pattern needs --interesting"},
		{Choice{}, "interesting", "needs a SNAPSHOT"},
		{Choice{Snapshot: "x", All: true}, "interesting all-paths", "needs -F"},
		{Choice{Snapshot: "x", All: true, Hot: 1}, "all-paths func", "neither --hot nor"},
		{Choice{Snapshot: "x", All: true}, "all-paths func", ""},
		{Choice{Snapshot: "x", Hot: -1}, "hot", "below 0"},
		{Choice{Snapshot: "x", Others: "none"}, "others", "count or ignore"},
		{Choice{Snapshot: "x", Others: CountOthers, Pattern: "f", Hot: 3}, "hot pattern", ""},
	} {
		given := strings.Fields(test.flags)
		got := test.choice.Wrong(func(flag string) bool { return slices.Contains(given, flag) })
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%+v: %q, not %q", test.choice, got, test.want)
		}
	}
}

// TestOtherBuild: what was recorded of another one, or of what no build id names, is no answer.
func TestOtherBuild(t *testing.T) {
	for flag, want := range map[string]string{
		"-Wl,--build-id":      "that is a recording of another build",
		"-Wl,--build-id=none": "has no build id, so that nothing says whether that is a recording",
	} {
		p, many := program(t, flag)
		s := snapshot(t, p, many, map[uint64]int{0: 1})
		s.Images[1].BuildID = []byte{1, 2, 3}
		if _, err := Of(p, s, Choice{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// TestReport has each figure of a routine with some interesting paths, within the width of tables.
func TestReport(t *testing.T) {
	p, many := program(t, "-Wl,--build-id")
	s := snapshot(t, p, many, map[uint64]int{0: 1, 2: 300, 5: 200, 7: 1})
	s.Symbols[3].End = ops.EndCut
	file := filepath.Join(t.TempDir(), "x.wpp")
	if err := store.WriteFile(file, s); err != nil {
		t.Fatal(err)
	}
	r, err := New(p, "prog", Choice{Snapshot: file})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Routines) != 1 || r.Paths != 3 || r.Counters < 3 || r.Unknown != 1 || r.Some != 1 ||
		r.Compact != 1 || *r.Median != float64(r.Counters)/3 || r.Routines[0].Interesting != 3 ||
		r.Routines[0].Range != r.Counters || r.Routines[0].Name != "many" {
		t.Errorf("%+v", r)
	}
	r.Routines[0].Name, r.Program = strings.Repeat("long\x1b", 50), "\x1b"
	var out strings.Builder
	if err := r.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"interesting     3 paths of 1 routine\n",
		"not found       1 more, which are no paths of this program, as many#7\n",
		"at most 1.5 in 100.0% of 1 routine with 2 to 100 interesting paths\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	for line := range strings.Lines(out.String()) {
		if utf8.RuneCountInString(line)-1 > report.TableColumns &&
			!strings.HasPrefix(line, "snapshot") || strings.Contains(line, "\x1b") {
			t.Errorf("%q", line)
		}
	}
	if empty, err := Number(&Set{}, "prog", "x.wpp"); err != nil || empty.Median != nil {
		t.Errorf("%+v, %v", empty, err)
	}
}

// TestProbes has probes that count some paths of a routine, and their hits: by hand, a hit of the
// blocks that the paths have and the others have not, for each time that one ran.
func TestProbes(t *testing.T) {
	p, many := program(t, "-Wl,--build-id")
	s := snapshot(t, p, many, map[uint64]int{0: 100, 2: 300, 5: 200, 7: 400})
	file := filepath.Join(t.TempDir(), "x.wpp")
	if err := store.WriteFile(file, s); err != nil {
		t.Fatal(err)
	}
	for _, others := range []string{CountOthers, IgnoreOthers} {
		r, err := New(p, "prog", Choice{Snapshot: file, Hot: 1, Others: others})
		if err != nil {
			t.Fatal(err)
		}
		x := r.Probes
		if x == nil || x.Others != others || x.NotTold != 0 || x.Probes == 0 || *x.PlanHits < 1 ||
			*x.HitsPerPath < *x.Share || *x.Share < 0.1 || *x.Share > 0.4 {
			t.Fatalf("others %s: %+v", others, x)
		}
		if least := 1.0; others == CountOthers && *x.HitsPerPath < least {
			t.Errorf("%.2f hits a path count all of them", *x.HitsPerPath)
		}
		var out strings.Builder
		if err := r.WriteText(&out); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "others: "+others) {
			t.Errorf("others %s:\n%s", others, out.String())
		}
	}
}
