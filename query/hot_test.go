package query

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/compress/wpp"
	"wpptrace/query/querytest"
)

func TestHotOfWorkedExample(t *testing.T) {
	tests := []struct {
		name                 string
		snapshot             *wpp.Snapshot
		minLength, maxLength int
		minCost              uint64
		want                 []string
	}{
		{"larus section 4.2", querytest.Letters("abbcabbcabbc"), 2, 3, 6,
			[]string{"ab", "bb", "bc", "cab"}},
		{"larus figure 5", querytest.Figure5(t), 2, 3, 6, []string{"ab", "bb", "bc", "cab"}},
		{"one path", querytest.Letters("abbcabbcabbc"), 1, 3, 6, []string{"b", "ab", "cab"}},
		{"all that repeats", querytest.Letters("abbcabbcabbc"), 4, 12, 12,
			[]string{"abbc", "bbcabb", "bcabbc"}},
		{"a mark is crossed by none", querytest.Letters("ab#ab#ab"), 2, 8, 1, []string{"ab"}},
		{"threads are apart", querytest.Letters("ab", "ba", "ab"), 2, 4, 4, []string{"ab"}},
		{"nothing", querytest.Letters(""), 2, 100, 1, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := Hot(tt.snapshot,
				HotQuery{MinLength: tt.minLength, MaxLength: tt.maxLength, MinCost: tt.minCost,
					Metric: Instructions})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range r.Subpaths {
				got = append(got, querytest.Spell(tt.snapshot, p.Symbols))
			}
			slices.Sort(got)
			slices.Sort(tt.want)
			if !slices.Equal(got, tt.want) {
				t.Errorf("hot subpaths %q, want %q", got, tt.want)
			}
		})
	}
}

func TestHotEqualsBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := querytest.DrawSnapshot(t)
		q := HotQuery{
			MinLength: rapid.IntRange(1, 4).Draw(t, "min length"),
			MinShare:  1 / float64(rapid.IntRange(1, 40).Draw(t, "min share")),
			Metric:    rapid.SampledFrom([]Metric{Instructions, Executions}).Draw(t, "metric"),
			Top:       rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "top"),
		}
		q.MaxLength = q.MinLength + rapid.IntRange(0, 12).Draw(t, "more length")
		if len(s.Threads) > 1 && rapid.Bool().Draw(t, "some threads") {
			q.TIDs = []int{100}
		}
		got, err := Hot(s, q)
		if err != nil {
			t.Fatal(err)
		}
		q.MinCost = got.MinCost
		if diff := gocmp.Diff(bruteHot(s, q), got.Subpaths); diff != "" {
			t.Fatalf("brute force -, Hot +:\n%s", diff)
		}
	})
}

// bruteHot finds the minimal hot subpaths on the expansion.
func bruteHot(s *wpp.Snapshot, q HotQuery) []Subpath {
	texts := querytest.Streams(s)
	if q.TIDs != nil {
		texts = texts[:1]
	}
	return bruteHotIn(texts, costsOf(s, q), q)
}

func bruteHotIn(texts [][]uint32, c *costs, q HotQuery) []Subpath {
	cost := c.of
	counts := make(map[string]uint64)
	for _, text := range texts {
		for i := range text {
			for j := i + 1; j <= len(text) && j-i <= q.MaxLength && !c.isMark[text[j-1]]; j++ {
				counts[key(text[i:j])]++
			}
		}
	}
	hot := func(k string) bool {
		return len([]rune(k)) >= q.MinLength && counts[k]*costOf(unkey(k), cost) >= q.MinCost
	}
	var found []Subpath
	for k, n := range counts {
		symbols := unkey(k)
		minimal := hot(k)
		for l := 1; l < len(symbols); l++ {
			minimal = minimal && !hot(key(symbols[:l]))
		}
		if minimal {
			p := Subpath{Symbols: symbols, Count: n, Cost: n * costOf(symbols, cost)}
			p.Covered = bruteCover(texts, cost, [][]uint32{symbols})
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b Subpath) int {
		return cmp.Or(cmp.Compare(b.Covered, a.Covered), cmp.Compare(b.Count, a.Count),
			slices.Compare(a.Symbols, b.Symbols))
	})
	if q.Top > 0 {
		found = found[:min(q.Top, len(found))]
	}
	var ranked [][]uint32
	for i := range found {
		ranked = append(ranked, found[i].Symbols)
		found[i].Cumulative = bruteCover(texts, cost, ranked)
	}
	return found
}

func bruteCover(texts [][]uint32, cost []uint64, patterns [][]uint32) uint64 {
	var sum uint64
	for _, text := range texts {
		covered := make([]bool, len(text))
		for i := range text {
			for _, p := range patterns {
				if i+len(p) <= len(text) && slices.Equal(text[i:i+len(p)], p) {
					for j := range p {
						covered[i+j] = true
					}
				}
			}
		}
		for i, sym := range text {
			if covered[i] {
				sum += cost[sym]
			}
		}
	}
	return sum
}

func key(symbols []uint32) string {
	var r []rune
	for _, sym := range symbols {
		r = append(r, rune(sym)+'0')
	}
	return string(r)
}

func unkey(k string) []uint32 {
	var symbols []uint32
	for _, r := range k {
		symbols = append(symbols, uint32(r-'0'))
	}
	return symbols
}

func TestDearestWindowEqualsBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := querytest.DrawSnapshot(t)
		cost := symbolCosts(s, Instructions)
		width := rapid.IntRange(1, 12).Draw(t, "width")
		var want uint64
		for _, stream := range querytest.Streams(s) {
			for i := range stream {
				want = max(want, costOf(stream[i:min(len(stream), i+width)], cost))
			}
		}
		threads, err := Threads(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := costliestWindow(newForest(s, threads), width, cost); got != want {
			t.Fatalf("costliest window of %d costs %d, want %d", width, got, want)
		}
	})
}

func TestHotRefusesSenselessQueries(t *testing.T) {
	tests := map[string]func(q *HotQuery){
		"find hot subpaths: minimum length 0 is below 1": func(q *HotQuery) {
			q.MinLength = 0
		},
		"find hot subpaths: maximum length 1 is not between the minimum length 2 and 10000": func(q *HotQuery) {
			q.MaxLength = 1
		},
		"find hot subpaths: maximum length 10001 is not between the minimum length 2 and 10000": func(q *HotQuery) {
			q.MaxLength = 10_001
		},
		"find hot subpaths: minimum share 1.5 is not between 0 and 1": func(q *HotQuery) {
			q.MinShare = 1.5
		},
		"find hot subpaths: minimum share NaN is not between 0 and 1": func(q *HotQuery) {
			q.MinShare = math.NaN()
		},
		`find hot subpaths: unknown cost "cycles": use "instructions" or "count"`: func(q *HotQuery) {
			q.Metric = "cycles"
		},
		"find hot subpaths: number of subpaths -1 is below 0": func(q *HotQuery) {
			q.Top = -1
		},
		"select thread 7: the snapshot has threads 4711 4712": func(q *HotQuery) {
			q.TIDs = []int{7}
		},
		`find hot subpaths: unknown kind "warm": use "minimal", "maximal" or "larus"`: func(q *HotQuery) {
			q.Kind = "warm"
		},
	}
	for want, spoil := range tests {
		q := DefaultHotQuery()
		spoil(&q)
		if _, err := Hot(querytest.Compressor(), q); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// TestHotRefusesWhatIsTooMuch: of a stream that repeats so many different paths, every stretch is
// as frequent as its beginnings.
func TestHotRefusesWhatIsTooMuch(t *testing.T) {
	const length = 100
	lowerLimit(t, &mostFoundSymbols, 1<<16)
	lowerLimit(t, &mostSequences, 1<<16)
	for period, want := range map[int]string{
		mostFoundSymbols/length - 1: "",
		mostFoundSymbols/length + 1: "find hot subpaths: the hot subpaths have more than 65536 " +
			"paths together, which is too much to keep in mind: ask for a greater least cost, or " +
			"shorter ones",
		mostSequences/length + 100: "find hot subpaths: more than 65536 sequences of up to 87 " +
			"paths may be hot, which is too much to keep in mind: ask for a greater least cost, " +
			"or shorter ones",
	} {
		var once []uint32
		for sym := range period {
			once = append(once, uint32(sym))
		}
		times := slices.Repeat([]uint32{wpp.RuleSymbol(1)}, 4)
		g, err := wpp.NewGrammar([][]uint32{times, once})
		if err != nil {
			t.Fatal(err)
		}
		s := &wpp.Snapshot{Images: []wpp.Image{{Name: "many"}},
			Routines: []wpp.Routine{{Name: "r", Paths: uint64(period)}},
			Threads:  []wpp.Thread{{Grammar: g}}}
		for sym := range period {
			s.Symbols = append(s.Symbols, wpp.Symbol{Path: uint64(sym)})
		}
		_, err = Hot(s, HotQuery{MinLength: length, MaxLength: length, MinCost: 3 * length, Top: 1})
		if got := fmt.Sprint(err); err == nil && want != "" || err != nil && got != want {
			t.Errorf("period %d: error %v, want %q", period, err, want)
		}
	}
}

// TestLongSeams has a start rule so long that its line is settled on the way, and patterns that lie
// across.
func TestLongSeams(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	for text.Len() < 6000 {
		text.WriteByte("abcdefghij"[random.IntN(10)])
	}
	s := querytest.Letters(text.String())
	q := HotQuery{MinLength: 3, MaxLength: 5, MinCost: 30, Metric: Instructions, Top: 40}
	got, err := Hot(s, q)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Subpaths) == 0 {
		t.Fatal("nothing is hot")
	}
	if diff := gocmp.Diff(bruteHot(s, q), got.Subpaths); diff != "" {
		t.Errorf("brute force -, Hot +:\n%s", diff)
	}
}

// TestRareDearPath prunes by a path that costs much and ran once beside a loop of cheap ones.
func TestRareDearPath(t *testing.T) {
	s := querytest.Letters("x" + strings.Repeat("abc", 50) + "x")
	s.RoutineOf(querytest.Letter(s, 'x')).Blocks[0].Lengths = slices.Repeat([]byte{1}, 60)
	q := HotQuery{MinLength: 2, MaxLength: 8, MinCost: 300, Metric: Instructions}
	got, err := Hot(s, q)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Subpaths) == 0 {
		t.Fatal("nothing is hot")
	}
	if diff := gocmp.Diff(bruteHot(s, q), got.Subpaths); diff != "" {
		t.Errorf("brute force -, Hot +:\n%s", diff)
	}
}

// TestCoveredIsExactBeyondItsTerms: the cost of all occurrences together passed 2^64, and with it
// went what they cover.
func TestCoveredIsExactBeyondItsTerms(t *testing.T) {
	s := querytest.Letters("ab")
	s.Threads[0].Grammar = querytest.Repeated(t, 60, []uint32{wpp.RuleSymbol(1), 0}, []uint32{0, 1})
	r, err := Hot(s, HotQuery{MinLength: 90, MaxLength: 90, MinShare: 0.01, Metric: Executions})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Subpaths) != 2 {
		t.Fatalf("%d subpaths, want 2", len(r.Subpaths))
	}
	for _, p := range r.Subpaths {
		if r.Total-p.Covered > 1 || p.Count < 1<<59 {
			t.Errorf("%d times, covers %d of %d", p.Count, p.Covered, r.Total)
		}
	}
}

func BenchmarkHot(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	for text.Len() < 1<<18 {
		text.WriteString([]string{"abcab", "abd", "eeeef", "g"}[random.IntN(4)])
	}
	s := querytest.Letters(text.String())
	for b.Loop() {
		if _, err := Hot(s, DefaultHotQuery()); err != nil {
			b.Fatal(err)
		}
	}
}

// TestShareOfIsExact: 7 % of 100 were 8, since no binary number is 0.07.
func TestShareOfIsExact(t *testing.T) {
	for percent := range uint64(101) {
		for _, total := range []uint64{0, 1, 99, 100, 1000, math.MaxUint64 / 100 * 100} {
			want := total/100*percent + (total%100*percent+99)/100
			if got := shareOf(total, float64(percent)/100); got != want {
				t.Errorf("%d %% of %d: %d, want %d", percent, total, got, want)
			}
		}
	}
}
