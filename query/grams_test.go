package query

import (
	"fmt"
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

// checkGrams compares the counts of all sequences of up to eight symbols with those of the stream.
func checkGrams(t *testing.T, g *wpp.Grammar, stream []uint32) {
	s := querytest.Spelled(g, slices.Max(stream), nil)
	type gram [8]uint32
	of := func(symbols []uint32) (g gram) {
		copy(g[:], symbols)
		return g
	}
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
	}
}
