package query

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"wpptrace/compress/sequitur"
	"wpptrace/compress/wpp"
	"wpptrace/query/querytest"
)

// beginnings are streams of which tests take the first symbols: some that are made up, and those of
// the files that WPP_TRACES lists.
func beginnings(t *testing.T, most int) map[string][]uint32 {
	random := rand.New(rand.NewPCG(7, 8))
	runs, noise := make([]uint32, most), make([]uint32, most)
	for i := range runs {
		if noise[i] = random.Uint32N(12); i > 0 && random.IntN(20) > 0 {
			runs[i] = runs[i-1]
		} else {
			runs[i] = noise[i]
		}
	}
	all := map[string][]uint32{"program": program(most), "runs": runs, "noise": noise}
	for _, file := range filepath.SplitList(os.Getenv("WPP_TRACES")) {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(file)] = symbolsOf(raw, most)
	}
	return all
}

// spelled is a snapshot of a grammar in which three symbols are the paths of routines a, b and c,
// and all others are of routine x.
func spelled(g *wpp.Grammar, last uint32, abc []uint32) *wpp.Snapshot {
	s := querytest.Letters("", "abcx")
	s.Symbols = make([]wpp.Symbol, last+1)
	for sym := range s.Symbols {
		routine := slices.Index(abc, uint32(sym))
		if routine < 0 {
			routine = 3
		}
		s.Symbols[sym] = wpp.Symbol{Routine: routine, Path: uint64(sym), Blocks: []int{0}}
	}
	s.Threads = s.Threads[:1]
	s.Threads[0].Grammar = g
	return s
}

// TestPrefixesEqualBruteForce: what is asked of the beginnings of traces is answered as their
// expansion does.
func TestPrefixesEqualBruteForce(t *testing.T) {
	lengths := []int{1, 60, 700, 3000}
	for name, whole := range beginnings(t, slices.Max(lengths)) {
		for _, length := range lengths {
			t.Run(fmt.Sprint(name, " ", length), func(t *testing.T) {
				stream := whole[:min(length, len(whole))]
				folding := sequitur.NewFolding() // as wpptrace does
				folding.AppendAll(stream)
				g := wpp.FromSequitur(folding)
				checkGrams(t, g, stream)
				random := rand.New(rand.NewPCG(9, uint64(length)))
				for range 4 {
					abc := []uint32{random.Uint32N(slices.Max(stream) + 2), stream[random.IntN(len(stream))], stream[random.IntN(len(stream))]}
					random.Shuffle(len(abc), func(i, j int) { abc[i], abc[j] = abc[j], abc[i] })
					s := spelled(g, slices.Max(append(abc, stream...)), abc)
					for _, items := range []string{"ab", "a.b", "a~b", "ba~c", "b~.a", "a"} {
						checkFind(t, s, items, 4, 1+random.IntN(3))
					}
					checkRules(t, s, random.IntN(3))
					if querytest.Letter(s, 'a') != querytest.Letter(s, 'b') {
						checkOrder(t, s)
					}
				}
			})
		}
	}
}

// checkGrams compares the counts of all sequences of up to eight symbols with those of the stream,
// and of some that are hardly in it.
func checkGrams(t *testing.T, g *wpp.Grammar, stream []uint32) {
	s := spelled(g, slices.Max(stream), nil)
	f, err := NewFrequencies(s)
	if err != nil {
		t.Fatal(err)
	}
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
			checkFrequency(t, f, [][]uint32{stream}, sequence)
			sequence[random.IntN(q)] = stream[random.IntN(len(stream))]
			checkFrequency(t, f, [][]uint32{stream}, sequence)
		}
	}
}
