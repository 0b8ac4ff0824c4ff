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
	for text, want := range map[rune]uint64{'a': 3, 'b': 6, 'c': 3} {
		if got := f.Symbol(querytest.Letter(s, text)); got != want {
			t.Errorf("%c occurs %d times, want %d", text, got, want)
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
		want := make([]uint64, len(s.Symbols))
		for _, sym := range slices.Concat(querytest.Streams(s)...) {
			want[sym]++
		}
		for sym, n := range want {
			if got := f.Symbol(uint32(sym)); got != n {
				t.Fatalf("symbol %v occurs %d times, want %d", sym, got, n)
			}
		}
	})
}

func TestFrequenciesSaturate(t *testing.T) {
	s := querytest.Doubling(t)
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
