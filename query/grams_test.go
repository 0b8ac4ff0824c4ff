package query

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"wpptrace/compress/sequitur"
	"wpptrace/compress/wpp"
	"wpptrace/query/querytest"
)

// TestGramsEqualBruteForce: sequences of up to eight symbols are as frequent in the beginnings of
// traces as in their expansions.
func TestGramsEqualBruteForce(t *testing.T) {
	lengths := []int{1, 60, 700, 3000}
	for name, whole := range querytest.Beginnings(t, slices.Max(lengths)) {
		for _, length := range lengths {
			t.Run(fmt.Sprint(name, " ", length), func(t *testing.T) {
				stream := whole[:min(length, len(whole))]
				folding := sequitur.NewFolding() // as wpptrace does
				folding.AppendAll(stream)
				checkGrams(t, wpp.FromSequitur(folding), stream)
			})
		}
	}
}

// checkGrams compares the counts of all sequences of up to eight symbols with those of the stream,
// and of some that are hardly in it.
func checkGrams(t *testing.T, g *wpp.Grammar, stream []uint32) {
	s := querytest.Spelled(g, slices.Max(stream), nil)
	f, err := NewFrequencies(s)
	if err != nil {
		t.Fatal(err)
	}
	all := newForests(s, allThreads(s))
	type gram [8]uint32
	of := func(symbols []uint32) (g gram) {
		copy(g[:], symbols)
		return g
	}
	random := rand.New(rand.NewPCG(11, 12))
	for q := 1; q <= min(len(gram{}), len(stream)); q++ {
		want, got := map[gram]uint64{}, map[gram]uint64{}
		for i := q; i <= len(stream); i++ {
			want[of(stream[i-q:i])]++
		}
		report, err := Hot(s, HotQuery{MinLength: q, MaxLength: q, MinCost: 1, Metric: Executions})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range report.Subpaths {
			got[of(p.Symbols)] = p.Count
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("sequences of %d: brute force -, Hot +:\n%s", q, diff)
		}
		for range 20 {
			from := random.IntN(len(stream) - q + 1)
			sequence := slices.Clone(stream[from : from+q])
			checkFrequency(t, f, all, [][]uint32{stream}, sequence)
			sequence[random.IntN(q)] = stream[random.IntN(len(stream))]
			checkFrequency(t, f, all, [][]uint32{stream}, sequence)
		}
	}
}
