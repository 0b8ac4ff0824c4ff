package query

import (
	"errors"
	"math"
	"slices"
	"testing"

	"wpptrace/compress/wpp/wpptest"
	"wpptrace/query/querytest"

	"pgregory.net/rapid"
)

func TestFrequenciesOfFigure5(t *testing.T) {
	s := querytest.Figure5(t)
	f, err := NewFrequencies(s)
	if err != nil {
		t.Fatal(err)
	}
	all := newForests(s, allThreads(s))
	for text, want := range map[string]uint64{
		"a": 3, "b": 6, "c": 3, "ab": 3, "bb": 3, "bc": 3, "ca": 2, "abbc": 3, "bcab": 2,
		"cabbcab": 1, "abbcabbcabbc": 1, "abbcabbcabbca": 0, "cb": 0,
	} {
		var symbols []uint32
		for _, c := range text {
			symbols = append(symbols, querytest.Letter(s, c))
		}
		if got := countAll(all, [][]uint32{symbols})[0]; got != want {
			t.Errorf("%s occurs %d times, want %d", text, got, want)
		}
	}
	if f.Symbol(9) != 0 {
		t.Error("what is no symbol of the alphabet occurs")
	}
}

func TestFrequenciesEqualBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := querytest.DrawSnapshot(t)
		f, err := NewFrequencies(s)
		if err != nil {
			t.Fatal(err)
		}
		sequence := rapid.SliceOfN(rapid.Uint32Range(0, uint32(len(s.Symbols)-1)), 1, 6).Draw(t,
			"sequence")
		if all := slices.Concat(querytest.Streams(s)...); len(all) > 0 && rapid.Bool().Draw(t,
			"taken from the stream") {
			from := rapid.IntRange(0, len(all)-1).Draw(t, "from")
			sequence = all[from:min(len(all), from+rapid.IntRange(1, 20).Draw(t, "length"))]
		}
		checkFrequency(t, f, newForests(s, allThreads(s)), querytest.Streams(s), sequence)
	})
}

// checkFrequency compares how often a sequence occurs with what counting in the streams gives.
func checkFrequency(
	t querytest.Fataler, f *Frequencies, all *forests, streams [][]uint32, sequence []uint32,
) {
	var want uint64
	for _, stream := range streams {
		for i := range stream {
			if i+len(sequence) <= len(stream) && slices.Equal(stream[i:i+len(sequence)], sequence) {
				want++
			}
		}
	}
	if got := countAll(all, [][]uint32{sequence})[0]; got != want {
		t.Fatalf("%v occurs %d times, want %d", sequence, got, want)
	}
	if got := f.Symbol(sequence[0]); len(sequence) == 1 && got != want {
		t.Fatalf("symbol %v occurs %d times, want %d", sequence[0], got, want)
	}
}

func TestFrequenciesSaturate(t *testing.T) {
	const want uint64 = 1<<60 - 2
	s := querytest.Doubling(t)
	if got := countAll(newForests(s, allThreads(s)), [][]uint32{{0, 0, 0}})[0]; got != want {
		t.Errorf("aaa occurs %d times, want %d", got, want)
	}
	for range 31 {
		s.Threads = append(s.Threads, s.Threads[0])
	}
	f, err := NewFrequencies(s)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Symbol(0); got != math.MaxUint64 {
		t.Errorf("a occurs %d times, want %d", got, uint64(math.MaxUint64))
	}
	report, err := Hot(s, DefaultHotQuery())
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Subpaths) != 1 || report.Total != math.MaxUint64 ||
		report.Subpaths[0].Cumulative != math.MaxUint64 {
		t.Errorf("hot subpaths of an endless grammar: %+v", report)
	}
}

func TestStatCountsResumedActivations(t *testing.T) {
	s := querytest.Compressor()
	// The worker enters longest_match and main where it resumes, and sub_3000 at its entry. A path,
	// a routine and a thread of it take 2 bytes or 3, two returns and two unwindings 1 each.
	s.Threads = s.Threads[1:]
	if got, want := statOf(t, s).TraceBytes, uint64(3+3*2+3*2+3); got != want {
		t.Errorf("trace bytes %d, want %d", got, want)
	}
	// A resumed activation whose first path starts at the entry is entered once.
	s.Threads[0].Grammar = wpptest.GrammarOf(7, 0)
	if got, want := statOf(t, s).TraceBytes, uint64(3+2+2); got != want {
		t.Errorf("trace bytes %d, want %d", got, want)
	}
}

func TestQueriesOfOneSnapshotAtOnce(t *testing.T) {
	s := querytest.Compressor()
	done := make(chan error)
	for range 4 {
		go func() {
			_, err := NewStat(s, 0)
			_, hot := Hot(s, DefaultHotQuery())
			done <- errors.Join(err, hot)
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
