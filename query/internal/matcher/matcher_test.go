package matcher_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/query/internal/matcher"
)

func ExampleNew() {
	m := matcher.New([][]uint32{{0, 1}, {1}}, 2)
	state := uint32(0)
	for i, sym := range []uint32{0, 0, 1, 1} {
		state = m.Next(state, sym)
		for p := m.Longest(state); p != 0; p = m.Shorter(p) {
			fmt.Printf("pattern %d ends at %d\n", m.Rank(p), i)
		}
	}
	// Output:
	// pattern 0 ends at 2
	// pattern 1 ends at 2
	// pattern 1 ends at 3
}

// TestMatchesEqualBruteForce: each occurrence of each pattern is found, the longest first.
func TestMatchesEqualBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const symbols = 3
		letters := rapid.Uint32Range(0, symbols-1)
		patterns := rapid.SliceOfN(rapid.SliceOfN(letters, 1, 5), 1, 8).Draw(t, "patterns")
		text := rapid.SliceOf(letters).Draw(t, "text")
		m, state := matcher.New(patterns, symbols), uint32(0)
		for i, sym := range text {
			var want, got []uint32 // ranks
			for rank, p := range patterns {
				isP := func(q []uint32) bool { return slices.Equal(p, q) }
				if slices.IndexFunc(patterns, isP) == rank && len(p) <= i+1 &&
					isP(text[i+1-len(p):i+1]) {
					want = append(want, uint32(rank))
				}
			}
			slices.SortFunc(want,
				func(a, b uint32) int { return cmp.Compare(len(patterns[b]), len(patterns[a])) })
			state = m.Next(state, sym)
			for p := m.Longest(state); p != 0; p = m.Shorter(p) {
				got = append(got, m.Rank(p))
				if m.Length(p) != len(patterns[m.Rank(p)]) ||
					m.RankOf(patterns[m.Rank(p)]) != m.Rank(p) {
					t.Fatalf("pattern %d has length %d", m.Rank(p), m.Length(p))
				}
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Fatalf("at %d: brute force -, matcher +:\n%s", i, diff)
			}
		}
	})
}
