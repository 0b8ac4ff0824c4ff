package query

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/wpptest"
	"wpptrace/query/internal/forest"
	"wpptrace/query/internal/stream"
	"wpptrace/query/names"
	"wpptrace/query/querytest"
)

// lowerLimit sets a limit for a test, so that little is too much.
func lowerLimit(t testing.TB, limit *int, to int) {
	before := *limit
	*limit = to
	t.Cleanup(func() { *limit = before })
}

// TestAnswersInLittleMemory: where there is no room for all threads at once, they are read one by
// one, with the same answers.
func TestAnswersInLittleMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	s, q, name := querytest.Letters("abcabcbb", "abcabcbb", "bbab"), HotQuery{MinLength: 1,
		MaxLength: 4, MinShare: .01}, "a"
	want, err := answers(s, q, name, 2)
	if err != nil {
		t.Fatal(err)
	}
	debug.SetMemoryLimit(128)
	got, err := answers(s, q, name, 2)
	if diff := gocmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("one by one: %v, %s", err, diff)
	}
}

// oneByOne has segments read one after the other.
func oneByOne(t testing.TB) {
	lowerLimit(t, &forest.MostAtOnce, 0)
}

// answers are those to all questions of this package but the ones about the
// grammar itself.
func answers(s *wpp.Snapshot, q HotQuery, name string, gap int) (map[string]any, error) {
	all := map[string]any{}
	var failed error
	put := func(what string, answer any, err error) {
		if err != nil {
			failed = fmt.Errorf("%s: %w", what, err)
		}
		all[what] = answer
	}
	for _, kind := range []HotKind{Minimal, Maximal} {
		q.Kind = kind
		r, err := Hot(s, q)
		put(string(kind), r, err)
	}
	context, err := ContextOf(s, name, 1+gap)
	put("context", context, err)
	blocks, entries, err := BlockCounts(s, 0)
	put("counts", []any{blocks, entries}, err)
	stat, err := NewStat(s, 0)
	put("stat", []any{stat.Paths, stat.DistinctPaths, stat.Instructions, stat.TraceBytes,
		stat.RoutinesMet}, err)
	put("streams", querytest.Streams(s), nil)
	for _, back := range []bool{false, true} {
		var parts [][]uint32
		for i := range s.Threads {
			parts = append(parts, slices.Collect(stream.Range(s.Threads[i].Grammar, 3, 20, back)))
		}
		put(fmt.Sprint("part ", back), parts, nil)
	}
	return all, failed
}

func sameAnswers(t querytest.Fataler, want, got map[string]any) {
	for what := range want {
		if diff := gocmp.Diff(want[what], got[what]); diff != "" {
			t.Fatalf("%s: in one piece -, in segments +:\n%s", what, diff)
		}
	}
}

// All answers are those of the same trace in one piece, whether segments are read at once or one
// after the other.
func TestSegmentsAnswerAsOne(t *testing.T) {
	check := func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			s := querytest.DrawSnapshot(t)
			q := drawHotQuery(t, Minimal)
			gap := rapid.IntRange(0, 3).Draw(t, "gap")
			name := s.Routines[0].Name
			want, err := answers(s, q, name, gap)
			if err != nil {
				t.Fatal(err)
			}
			got, err := answers(wpptest.InSegments(s, wpptest.Cuts(t)), q, name, gap)
			if err != nil {
				t.Fatal(err)
			}
			sameAnswers(t, want, got)
		})
	}
	t.Run("at once", check)
	t.Run("one by one", func(t *testing.T) {
		oneByOne(t)
		check(t)
	})
}

// What depends on the grammar is the same however it is read.
func TestSegmentsReadEitherWay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := wpptest.InSegments(querytest.DrawSnapshot(rt), wpptest.Cuts(rt))
		q := drawHotQuery(rt, Larus)
		ask := func() []any {
			hot, err := Hot(s, q)
			if err != nil {
				rt.Fatal(err)
			}
			var grammar bytes.Buffer
			for i := range s.Threads {
				if _, err := s.Threads[i].Grammar.WriteASCII(&grammar); err != nil {
					rt.Fatal(err)
				}
			}
			stat, err := NewStat(s, 0)
			if err != nil {
				rt.Fatal(err)
			}
			return []any{hot, grammar.String(), stat}
		}
		want := ask()
		before := forest.MostAtOnce
		forest.MostAtOnce = 0
		got := ask()
		forest.MostAtOnce = before
		if diff := gocmp.Diff(want, got); diff != "" {
			rt.Fatalf("at once -, one by one +:\n%s", diff)
		}
	})
}

func TestDiffOfSegments(t *testing.T) {
	oneByOne(t)
	rapid.Check(t, func(t *rapid.T) {
		a, b := querytest.DrawSnapshot(t), querytest.DrawSnapshot(t)
		for _, s := range []*wpp.Snapshot{a, b} {
			s.Images[0].BuildID = []byte{1}
		}
		q := DiffQuery{Hot: drawHotQuery(t, Minimal)}
		want, err := Diff(a, b, q)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Diff(wpptest.InSegments(a, wpptest.Cuts(t)),
			wpptest.InSegments(b, wpptest.Cuts(t)), q)
		if err != nil {
			t.Fatal(err)
		}
		if d := gocmp.Diff(want, got, gocmp.AllowUnexported(Difference{})); d != "" {
			t.Fatal(d)
		}
	})
}

// Where too many subpaths may be hot, there is an error, and not a gigabyte of memory.
func TestTooManyLevels(t *testing.T) {
	oneByOne(t)
	lowerLimit(t, &mostFollowers, 1<<14)
	random := rand.New(rand.NewPCG(1, 2))
	stream := make([]uint32, 3*mostFollowers)
	symbols := make([]wpp.Symbol, 375)
	for i := range stream {
		stream[i] = random.Uint32N(uint32(len(symbols)))
	}
	s := &wpp.Snapshot{Images: []wpp.Image{{Name: "x"}}, Routines: []wpp.Routine{{Name: "f"}},
		Symbols: symbols}
	for i := range symbols {
		symbols[i].Path = uint64(i)
	}
	g, err := wpp.NewGrammar([][]uint32{stream})
	if err != nil {
		t.Fatal(err)
	}
	s.Threads = []wpp.Thread{{Grammar: wpp.Join([]*wpp.Segment{wpp.NewSegment(g),
		wpp.NewSegment(wpptest.GrammarOf(1, 2))})}}
	_, err = Hot(s, HotQuery{MinLength: 2, MaxLength: 2, MinCost: 2, Metric: Executions})
	if err == nil || !strings.Contains(err.Error(), "too much to keep in mind") {
		t.Errorf("error %v", err)
	}
	lowerLimit(t, &mostShortContexts, 1<<14)
	if _, err = ContextOf(s, "f", 2); err == nil || !strings.Contains(err.Error(),
		"there are more than 16384 different ones") {
		t.Errorf("error %v", err)
	}
	ends := querytest.Letters("ab", "bca", "acbc", "ccab", "abbab", "bbacc", "cbacb")
	lowerLimit(t, &mostShortContexts, 8)
	if _, err := ContextOf(ends, "a", 100); err == nil || !strings.Contains(err.Error(),
		"there are more than 8 different ones") {
		t.Errorf("where threads begin and end: error %v", err)
	}
	r, err := Hot(s, HotQuery{MinLength: 2, MaxLength: 2, MinCost: 100, Metric: Executions})
	if err != nil || len(r.Subpaths) > 0 {
		t.Errorf("%d subpaths, %v", len(r.Subpaths), err)
	}
}

// The beginnings of real traces, in WPP_TRACES, cut anywhere.
func TestSegmentsOfTraces(t *testing.T) {
	list := os.Getenv("WPP_TRACES")
	if list == "" {
		t.Skip("WPP_TRACES names no traces: files of little-endian uint32, parted by colons")
	}
	for _, file := range strings.Split(list, ":") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := querytest.NewTrace(filepath.Base(file), querytest.SymbolsOf(raw, 200_000)).Packed
			random := rand.New(rand.NewPCG(3, 4))
			cut := wpptest.InSegments(s, func(length int) []int {
				cuts := []int{random.IntN(length), random.IntN(length), random.IntN(length)}
				slices.Sort(cuts)
				return cuts
			})
			q := HotQuery{MinLength: 2, MaxLength: 12, MinShare: 0.01, Metric: Executions}
			name := names.Plain(&s.Routines[0])
			want, err := answers(s, q, name, 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, most := range []int{math.MaxInt, 0} {
				before := forest.MostAtOnce
				forest.MostAtOnce = most
				got, err := answers(cut, q, name, 1)
				forest.MostAtOnce = before
				if err != nil {
					t.Fatal(err)
				}
				sameAnswers(t, want, got)
			}
		})
	}
}

// Long contexts take more memory each, so that fewer of them are kept in mind.
func TestContextsAreBoundedInBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long, and runs no goroutines")
	}
	stream := make([]uint32, 300_000)
	for i := range stream {
		if i%2 == 1 {
			stream[i] = 1 + uint32(i*i*31+i)%63
		}
	}
	s := querytest.PathsOfEight(63)
	g, err := wpp.NewGrammar([][]uint32{stream})
	if err != nil {
		t.Fatal(err)
	}
	oneByOne(t)
	inSegments := wpp.Join([]*wpp.Segment{wpp.NewSegment(g),
		wpp.NewSegment(wpptest.GrammarOf(1, 2))})
	for _, c := range []struct {
		grammar *wpp.Grammar
		k       int
		ok      bool
	}{{g, 2, true}, {g, MostNeighbours, false}, {inSegments, MostNeighbours, false}} {
		s.Threads = []wpp.Thread{{Grammar: c.grammar}}
		_, err := ContextOf(s, "r0#0", c.k)
		if (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(),
			fmt.Sprintf("there are more than %d different ones", mostContexts(c.k))) {
			t.Errorf("%d paths to each side: %v", c.k, err)
		}
	}
}
