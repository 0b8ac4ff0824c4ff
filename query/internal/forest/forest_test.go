package forest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/compress/sequitur"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/wpptest"
	"wpptrace/query/querytest"
)

func ExampleForest_CountAll() {
	s := querytest.Letters("abcabc", "bcb")
	f := of(s)
	b, c := querytest.Letter(s, 'b'), querytest.Letter(s, 'c')
	fmt.Println(f.CountAll([][]uint32{{b, c}, {b, c, b}}))
	// Output: [3 1]
}

// of is the forest of a snapshot's threads.
func of(s *wpp.Snapshot) *Forest {
	var grammars []*wpp.Grammar
	for i := range s.Threads {
		grammars = append(grammars, s.Threads[i].Grammar)
	}
	return New(len(s.Symbols), grammars, nil)
}

// piecewise has the pieces of a forest read one after the other.
func piecewise(s *wpp.Snapshot) *Forest {
	f := of(s)
	f.whole, f.grammars = nil, nil
	for i := range s.Threads {
		f.grammars = append(f.grammars, s.Threads[i].Grammar)
	}
	return f
}

// eachWay are the forests of a trace, as one piece, by thread and by segment.
func eachWay(t *rapid.T, s *wpp.Snapshot) map[string]*Forest {
	cut := wpptest.InSegments(s, wpptest.Cuts(t))
	return map[string]*Forest{"one piece": of(s), "by thread": piecewise(s),
		"segments at once": of(cut), "by segment": piecewise(cut)}
}

func TestCountAllOfFigure5(t *testing.T) {
	s := querytest.Figure5(t)
	f := of(s)
	for text, want := range map[string]uint64{
		"a": 3, "b": 6, "c": 3, "ab": 3, "bb": 3, "bc": 3, "ca": 2, "abbc": 3, "bcab": 2,
		"cabbcab": 1, "abbcabbcabbc": 1, "abbcabbcabbca": 0, "cb": 0,
	} {
		var symbols []uint32
		for _, c := range text {
			symbols = append(symbols, querytest.Letter(s, c))
		}
		if got := f.CountAll([][]uint32{symbols})[0]; got != want {
			t.Errorf("%s occurs %d times, want %d", text, got, want)
		}
	}
}

// draw draws a sequence, most often one that occurs.
func draw(t *rapid.T, s *wpp.Snapshot) []uint32 {
	all := slices.Concat(querytest.Streams(s)...)
	if len(all) > 0 && rapid.Bool().Draw(t, "taken from the stream") {
		from := rapid.IntRange(0, len(all)-1).Draw(t, "from")
		return all[from:min(len(all), from+rapid.IntRange(1, 20).Draw(t, "length"))]
	}
	return rapid.SliceOfN(rapid.Uint32Range(0, uint32(len(s.Symbols)-1)), 1, 6).Draw(t, "sequence")
}

func TestCountsEqualBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := querytest.DrawSnapshot(t)
		sequences := [][]uint32{draw(t, s), draw(t, s), draw(t, s)}
		want := bruteCounts(querytest.Streams(s), sequences)
		symbols := make([]uint64, len(s.Symbols))
		for _, sym := range slices.Concat(querytest.Streams(s)...) {
			symbols[sym]++
		}
		for way, f := range eachWay(t, s) {
			if diff := gocmp.Diff(want, f.CountAll(sequences)); diff != "" {
				t.Fatalf("%v, %s: brute force -, CountAll +:\n%s", sequences, way, diff)
			}
			if diff := gocmp.Diff(symbols, f.Counts()); diff != "" {
				t.Fatalf("%s: brute force -, Counts +:\n%s", way, diff)
			}
		}
	})
}

func bruteCounts(streams, sequences [][]uint32) []uint64 {
	counts := make([]uint64, len(sequences))
	for k, sequence := range sequences {
		for _, stream := range streams {
			for i := range len(stream) + 1 - min(len(stream)+1, len(sequence)) {
				if slices.Equal(stream[i:i+len(sequence)], sequence) {
					counts[k]++
				}
			}
		}
	}
	return counts
}

// TestCoveredEqualsBruteForce: each execution is counted with the first sequence that covers it.
func TestCoveredEqualsBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := querytest.DrawSnapshot(t)
		sequences := [][]uint32{draw(t, s), draw(t, s), draw(t, s)}
		cost := make([]uint64, len(s.Symbols))
		for sym := range cost {
			cost[sym] = rapid.Uint64Range(0, 9).Draw(t, "cost")
		}
		want := make([]uint64, len(sequences))
		for _, stream := range querytest.Streams(s) {
			covered := make([]bool, len(stream))
			for k, sequence := range sequences {
				for i := range stream {
					if end := i + len(sequence); end <= len(stream) &&
						slices.Equal(stream[i:end], sequence) {
						copy(covered[i:end], slices.Repeat([]bool{true}, len(sequence)))
					}
				}
				for i, sym := range stream {
					if covered[i] {
						want[k] += cost[sym]
					}
				}
			}
		}
		for way, f := range eachWay(t, s) {
			if diff := gocmp.Diff(want, f.Covered(sequences, cost)); diff != "" {
				t.Fatalf("%v, %s: brute force -, Covered +:\n%s", sequences, way, diff)
			}
		}
	})
}

// TestGramsEqualBruteForce: sequences of up to eight symbols that are in the beginnings of traces,
// or hardly, are as frequent as in their expansions.
func TestGramsEqualBruteForce(t *testing.T) {
	lengths := []int{1, 60, 700, 3000}
	random := rand.New(rand.NewPCG(11, 12))
	for name, whole := range querytest.Beginnings(t, slices.Max(lengths)) {
		for _, length := range lengths {
			stream := whole[:min(length, len(whole))]
			folding := sequitur.NewFolding() // as wpptrace does
			folding.AppendAll(stream)
			f := of(querytest.Spelled(wpp.FromSequitur(folding), slices.Max(stream), nil))
			var sequences [][]uint32
			for q := 1; q <= min(8, len(stream)); q++ {
				for range 20 {
					from := random.IntN(len(stream) - q + 1)
					sequence := slices.Clone(stream[from : from+q])
					sequences = append(sequences, slices.Clone(sequence))
					sequence[random.IntN(q)] = stream[random.IntN(len(stream))]
					sequences = append(sequences, sequence)
				}
			}
			want := bruteCounts([][]uint32{stream}, sequences)
			if diff := gocmp.Diff(want, f.CountAll(sequences)); diff != "" {
				t.Errorf("%s, %d symbols: brute force -, CountAll +:\n%s", name, length, diff)
			}
		}
	}
}

func TestCountsSaturate(t *testing.T) {
	const want uint64 = 1<<60 - 2
	s := querytest.Doubling(t)
	if got := of(s).CountAll([][]uint32{{0, 0, 0}})[0]; got != want {
		t.Errorf("aaa occurs %d times, want %d", got, want)
	}
	for range 31 {
		s.Threads = append(s.Threads, s.Threads[0])
	}
	if got := of(s).Counts()[0]; got != math.MaxUint64 {
		t.Errorf("a occurs %d times, want %d", got, uint64(math.MaxUint64))
	}
}

// TestRenamed: what has been counted, and what has not, goes by the new names.
func TestRenamed(t *testing.T) {
	for _, counted := range []bool{false, true} {
		for _, lay := range []func(*wpp.Snapshot) *Forest{of, piecewise} {
			f := lay(querytest.Letters("abcab", "bc"))
			if counted {
				f.Counts()
			}
			f.Rename([]uint32{1, 3, 1}, 4)
			if got := f.Counts(); !slices.Equal(got, []uint64{0, 4, 0, 3}) {
				t.Errorf("counted before: %v: %v", counted, got)
			}
			if got := f.CountAll([][]uint32{{3, 1}}); !slices.Equal(got, []uint64{2}) {
				t.Errorf("counted before: %v: %v", counted, got)
			}
		}
	}
}

// TestFewAtOnceInLittleMemory: a recorder that was allowed 64 MiB was killed as it reported, of
// thousands of threads too, none of them in segments.
func TestFewAtOnceInLittleMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	two := []string{"abcabc", "abcabc"}
	segmented := func(streams []string) *wpp.Snapshot {
		return wpptest.InSegments(querytest.Letters(streams...),
			func(int) []int { return []int{3} })
	}
	for _, c := range []struct {
		limit      int64
		name       string
		s          *wpp.Snapshot
		wantAtOnce bool
	}{
		{math.MaxInt64, "two threads", querytest.Letters(two...), true},
		{1 << 30, "two threads", querytest.Letters(two...), true},
		{128, "two threads", querytest.Letters(two...), false},
		{128, "a thread", querytest.Letters(two[:1]...), true}, // less is not possible
		{1 << 30, "segments", segmented(two), true},
		{128, "segments", segmented(two[:1]), false},
	} {
		debug.SetMemoryLimit(c.limit)
		if got := of(c.s).AtOnce(); got != c.wantAtOnce {
			t.Errorf("memory %d, %s: at once %v, want %v", c.limit, c.name, got, c.wantAtOnce)
		}
		debug.SetMemoryLimit(before)
	}
}
