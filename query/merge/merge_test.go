package merge

import (
	"bytes"
	"debug/elf"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/format"
	"wpptrace/compress/wpp/pathprofile"
	"wpptrace/compress/wpp/wpptest"
	"wpptrace/query"
	"wpptrace/query/querytest"
	"wpptrace/query/report"
)

// counts are how often each path ran that a report would show, and each kind of mark.
func counts(t querytest.Fataler, s *wpp.Snapshot) map[string]uint64 {
	f, err := query.NewFrequencies(s)
	if err != nil {
		t.Fatal(err)
	}
	labels, all := report.NewLabels(s), map[string]uint64{}
	for i := range s.Symbols {
		n, name := f.Symbol(uint32(i)), s.Symbols[i].Mark.String()
		if !s.Symbols[i].IsMark {
			l := labels.Of(uint32(i))
			name = l.Image + " " + l.Name(100) + " " + l.First
			if r := s.RoutineOf(uint32(i)); l.Path >= r.Paths { // its number is its own
				name = l.Image + " part of " + l.Routine + " " + l.First
			}
			name += fmt.Sprint(" at ", l.Where(), l.Inlined)
		}
		if n > 0 {
			all[name] += n
		}
	}
	return all
}

func merged(t querytest.Fataler, list ...*wpp.Snapshot) *wpp.Snapshot {
	m := New()
	for _, s := range list {
		if err := m.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	made := m.Snapshot()
	if err := made.Check(); err != nil {
		t.Fatal(err)
	}
	return made
}

// TestSums: counts of the same paths add up, in whatever order, of profiles, of whole program paths
// and of sums.
func TestSums(t *testing.T) {
	text := rapid.StringMatching(`[a-f#!]{0,30}`)
	rapid.Check(t, func(t *rapid.T) {
		var list []*wpp.Snapshot
		want := map[string]uint64{}
		for range rapid.IntRange(1, 4).Draw(t, "files") {
			s := querytest.Letters(text.Draw(t, "thread"), text.Draw(t, "thread"))
			s.Images[0].BuildID = []byte("one")
			for name, n := range counts(t, s) {
				want[name] += n
			}
			switch rapid.IntRange(0, 2).Draw(t, "as") {
			case 0:
				s = querytest.Counted(s)
			case 1:
				s = merged(t, s)
			}
			list = append(list, s)
		}
		got := merged(t, list...)
		if diff := cmp.Diff(want, counts(t, got)); diff != "" {
			t.Fatal(diff)
		}
		slices.Reverse(list)
		if diff := cmp.Diff(want, counts(t, merged(t, list...))); diff != "" {
			t.Fatalf("the other way round: %s", diff)
		}
		c, err := pathprofile.Of(got)
		if err != nil || c.Runs != uint64(len(list)) || c.Threads != 2*c.Runs {
			t.Fatalf("%v, %+v", err, c)
		}
	})
}

// A snapshot with one of everything comes through, its places in the source too, and what was
// merged can be written and read.
func TestEverythingComesThrough(t *testing.T) {
	small := wpptest.Small()
	small.Calls = []wpp.Call{{Name: "inner", File: 1, Line: 3}, {Name: "deeper", File: 0, Line: 2,
		In: 1}}
	small.Routines[0].Blocks[0].Spans = []wpp.Span{{To: 1, Call: 2, File: 1, Line: 3, Last: 3},
		{From: 1, To: 3, File: 0, Line: 10, Last: 12}}
	other := wpptest.Small()
	other.Images, other.Files = other.Images[:1], slices.Repeat([]string{"other.c"}, 2)
	other.Routines = other.Routines[:1]
	got := merged(t, small, other)
	var file bytes.Buffer
	if err := format.Write(&file, got); err != nil {
		t.Fatal(err)
	}
	read, err := format.Read(&file, query.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	want := counts(t, small)
	for name := range want {
		want[name] *= 2
	}
	if diff := cmp.Diff(want, counts(t, read)); diff != "" {
		t.Error(diff)
	}
	if f := read.Figures; f.Lost != 34 || f.Duration != 6*time.Second || f.PID != 4711 {
		t.Errorf("%+v", f)
	}
}

// numbered makes a snapshot of a routine of which paths with these numbers ran, each over a block
// of its own besides the first, by block.
func numbered(numbers map[int]uint64) *wpp.Snapshot {
	s := &wpp.Snapshot{Images: []wpp.Image{{Name: "/bin/x", BuildID: []byte{1}}}}
	r := wpp.Routine{Name: "f", Entry: 0x1000, Paths: 10,
		Ranges: []wpp.Range{{Lo: 0x1000, Hi: 0x1010}}}
	for i := range 8 {
		r.Blocks = append(r.Blocks, wpp.Block{Addr: 0x1000 + uint64(i), Lengths: []byte{1}})
	}
	s.Routines = []wpp.Routine{r}
	var stream []uint32
	for _, block := range slices.Sorted(maps.Keys(numbers)) {
		stream = append(stream, uint32(len(s.Symbols)))
		s.Symbols = append(s.Symbols, wpp.Symbol{End: ops.EndReturn, Path: numbers[block],
			Blocks: []int{0, block}})
	}
	s.Threads = []wpp.Thread{{TID: 1, Grammar: wpptest.GrammarOf(stream...)}}
	return s
}

// TestNumbering: a file that numbers paths otherwise is translated by the blocks that they run, or
// refused.
func TestNumbering(t *testing.T) {
	first := numbered(map[int]uint64{1: 0, 2: 1, 3: 2})
	more := numbered(map[int]uint64{1: 1, 2: 0})
	more.Routines[0].Paths = 11
	otherBlocks := numbered(map[int]uint64{1: 0})
	otherBlocks.Routines[0].Blocks[1].Lengths = []byte{1, 1}
	moved := numbered(map[int]uint64{1: 0})
	moved.Routines[0].Ranges[0].Hi++
	for _, c := range []struct {
		name   string
		second *wpp.Snapshot
		want   []uint64 // by number; nil: it is refused
		why    string
	}{
		{"the same", numbered(map[int]uint64{1: 0, 3: 2}), []uint64{2, 1, 2}, ""},
		{"a further path", numbered(map[int]uint64{1: 0, 4: 5}),
			[]uint64{2, 1, 1, 0, 0, 1}, ""},
		{"a path that alone is new", numbered(map[int]uint64{4: 5}),
			[]uint64{1, 1, 1, 0, 0, 1}, ""},
		{"numbers are exchanged", numbered(map[int]uint64{1: 1, 2: 0}), []uint64{2, 2, 1}, ""},
		{"one is moved", numbered(map[int]uint64{2: 7}), []uint64{1, 2, 1}, ""},
		{"more paths", more, []uint64{2, 2, 1}, ""},
		{"a new path under another numbering", numbered(map[int]uint64{1: 1, 4: 5}), nil,
			"f of x numbers its paths otherwise"},
		{"a number is taken", numbered(map[int]uint64{4: 1}), nil, "numbers its paths otherwise"},
		{"other blocks", otherBlocks, nil, "f of x has other blocks, as at 1001"},
		{"it lies elsewhere", moved, nil, "f of x lies elsewhere"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := New()
			if err := m.Add(first); err != nil {
				t.Fatal(err)
			}
			err := m.Add(c.second)
			if c.want == nil {
				if err == nil || !strings.Contains(err.Error(), c.why) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			s := m.Snapshot()
			got := make([]uint64, len(c.want))
			f, err := query.NewFrequencies(s)
			if err != nil {
				t.Fatal(err)
			}
			for sym := range s.Symbols {
				got[s.Symbols[sym].Path] += f.Symbol(uint32(sym))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// Two ways between the same blocks are two paths.
func TestParallelWays(t *testing.T) {
	s := numbered(map[int]uint64{1: 0, 2: 1})
	s.Symbols[1].Blocks = s.Symbols[0].Blocks
	got := merged(t, s, s)
	f, err := query.NewFrequencies(got)
	if err != nil || len(got.Symbols) != 2 || f.Symbol(0) != 2 || f.Symbol(1) != 2 {
		t.Errorf("%v, %+v", err, got.Symbols)
	}
}

// Other builds stand apart; what is not known to be the same is refused; and a sum that is too
// large says so.
func TestBuilds(t *testing.T) {
	other := numbered(map[int]uint64{1: 0})
	other.Images[0].BuildID = []byte{2}
	s := merged(t, numbered(map[int]uint64{1: 0}), other)
	if len(s.Images) != 2 || len(s.Symbols) != 2 || s.Symbols[0].Routine == s.Symbols[1].Routine {
		t.Errorf("%+v", s)
	}
	bare := func() *wpp.Snapshot {
		s := numbered(map[int]uint64{1: 0})
		s.Images[0].BuildID = nil
		return s
	}
	m := New()
	if err := m.Add(bare()); err != nil {
		t.Fatal(err)
	}
	if err := m.Add(bare()); err == nil || !strings.Contains(err.Error(), "x has no build id") {
		t.Error(err)
	}
	arm := numbered(map[int]uint64{1: 0})
	arm.Machine = elf.EM_AARCH64
	if err := New().Add(arm); err != nil {
		t.Error(err)
	}
	m = New()
	if err := m.Add(numbered(map[int]uint64{1: 0})); err != nil {
		t.Fatal(err)
	}
	if err := m.Add(arm); err == nil || !strings.Contains(err.Error(), "another machine") {
		t.Error(err)
	}
	large := querytest.Counted(numbered(map[int]uint64{1: 0}))
	large.Sections = []*wpp.Section{(&pathprofile.Counts{Of: []uint64{math.MaxUint64 - 1},
		Runs: 1}).Section()}
	object, err := report.NewProfileJSON(merged(t, large))
	if err != nil || object.Paths[0].Count != math.MaxUint64-1 || !object.Paths[0].Exact {
		t.Errorf("%v, %+v", err, object)
	}
	object, err = report.NewProfileJSON(merged(t, large, large))
	if err != nil || object.Paths[0].Count != math.MaxUint64 || object.Paths[0].Exact {
		t.Errorf("%v, %+v", err, object)
	}
}

// The share of several recordings that was traced lies between that of the least and of the most.
func TestShares(t *testing.T) {
	share := func(value, least, most float64, used time.Duration) *wpp.Snapshot {
		s := numbered(map[int]uint64{1: 0})
		s.Figures = wpp.Figures{Sampled: value, SampledLeast: least, SampledMost: most,
			CPUTime: used, Windows: 3}
		return s
	}
	all := numbered(map[int]uint64{1: 0})
	all.Figures.CPUTime = time.Second
	untraced := numbered(map[int]uint64{})
	untraced.Figures.SetUntraced()
	for _, c := range []struct {
		name               string
		list               []*wpp.Snapshot
		value, least, most float64
		known              bool
	}{
		{"all", []*wpp.Snapshot{all, all}, 0, 0, 0, true},
		{"two", []*wpp.Snapshot{share(.2, .1, .3, time.Second),
			share(.4, .35, .5, 3*time.Second)}, .35, .1, .5, true},
		{"one of two", []*wpp.Snapshot{all, share(.2, .1, .3, time.Second)}, .6, .1, 1, true},
		{"one that is not known", []*wpp.Snapshot{share(.2, 0, .3, time.Second),
			share(.2, .1, .4, time.Second)}, .2, 0, .4, false},
	} {
		f := merged(t, c.list...).Figures
		if math.Abs(f.Sampled-c.value) > 1e-9 || f.SampledLeast != c.least ||
			f.SampledMost != c.most || f.IsShareKnown() != c.known {
			t.Errorf("%s: %v from %v to %v, known: %v", c.name, f.Sampled, f.SampledLeast,
				f.SampledMost, f.IsShareKnown())
		}
	}
	if f := merged(t, untraced, share(.2, .1, .3, time.Second)).Figures; !f.IsSampled() ||
		f.IsUntraced() {
		t.Errorf("%+v", f)
	}
}

// FuzzAdd: whatever two files hold that can be read, their sum is a snapshot that can be, or they
// are refused.
func FuzzAdd(f *testing.F) {
	for _, s := range []*wpp.Snapshot{wpptest.Small(), numbered(map[int]uint64{1: 0, 2: 1}),
		querytest.Counted(numbered(map[int]uint64{1: 2}))} {
		var file bytes.Buffer
		if err := format.Write(&file, s); err != nil {
			f.Fatal(err)
		}
		f.Add(file.Bytes(), file.Bytes())
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		m := New()
		for _, file := range [][]byte{a, b} {
			s, err := format.Read(bytes.NewReader(file), query.Sections()...)
			if err != nil || m.Add(s) != nil {
				return
			}
		}
		if err := m.Snapshot().Check(); err != nil {
			t.Fatal(err)
		}
		if _, err := query.NewFrequencies(m.Snapshot()); err != nil {
			t.Fatal(err)
		}
	})
}
