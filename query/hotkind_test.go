package query

import (
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/compress/wpp"
	"wpptrace/query/querytest"
)

func TestHotKindsOfWorkedExamples(t *testing.T) {
	tests := []struct {
		name                 string
		snapshot             *wpp.Snapshot
		kind                 HotKind
		minLength, maxLength int
		minCost              uint64
		want                 []string
	}{
		{"larus on figure 5", querytest.Figure5(t), Larus, 2, 3, 6, []string{"ab", "bc"}},
		{"larus on what sequitur makes of it", querytest.Letters("abbcabbcabbc"), Larus, 2, 3, 6,
			[]string{"ab", "bc"}},
		{"larus takes a beginning together", querytest.Figure5(t), Larus, 2, 3, 9, []string{"abb"}},
		{"larus crosses no mark", querytest.Letters("ab#ab#ab"), Larus, 2, 8, 1, []string{"ab"}},
		{"maximal on figure 5", querytest.Figure5(t), Maximal, 2, 4, 8,
			[]string{"abbc", "bbca", "bcab", "cabb"}},
		{"maximal, as long as it gets", querytest.Figure5(t), Maximal, 2, 12, 12,
			[]string{"abbc", "abbcabbc", "abbcabbcabbc"}},
		{"maximal, one path", querytest.Letters("aab"), Maximal, 1, 2, 1,
			[]string{"a", "aa", "ab"}},
		{"maximal crosses no mark", querytest.Letters("ab#ab#ab"), Maximal, 1, 8, 1,
			[]string{"ab"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := HotQuery{MinLength: tt.minLength, MaxLength: tt.maxLength, MinCost: tt.minCost,
				Metric: Instructions, Kind: tt.kind}
			r, err := Hot(tt.snapshot, q)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range r.Subpaths {
				got = append(got, querytest.Spell(tt.snapshot, p.Symbols))
			}
			slices.Sort(got)
			if !slices.Equal(got, tt.want) {
				t.Errorf("hot subpaths %q, want %q", got, tt.want)
			}
		})
	}
}

func TestMaximalEqualsBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := querytest.DrawSnapshot(t)
		q := drawHotQuery(t, Maximal)
		got, err := Hot(s, q)
		if err != nil {
			t.Fatal(err)
		}
		q.MinCost = got.MinCost
		if diff := gocmp.Diff(bruteMaximal(s, q), counted(s, got)); diff != "" {
			t.Fatalf("brute force -, Hot +:\n%s", diff)
		}
	})
}

func drawHotQuery(t *rapid.T, kind HotKind) HotQuery {
	q := HotQuery{
		MinLength: rapid.IntRange(1, 4).Draw(t, "min length"),
		MinShare:  1 / float64(rapid.IntRange(1, 40).Draw(t, "min share")),
		Metric:    rapid.SampledFrom([]Metric{Instructions, Executions}).Draw(t, "metric"),
		Kind:      kind,
	}
	q.MaxLength = q.MinLength + rapid.IntRange(0, 12).Draw(t, "more length")
	return q
}

func counted(s *wpp.Snapshot, r *HotReport) map[string]uint64 {
	counts := make(map[string]uint64)
	for _, p := range r.Subpaths {
		counts[querytest.Spell(s, p.Symbols)] = p.Count
	}
	return counts
}

// bruteMaximal counts every substring of the expansion.
func bruteMaximal(s *wpp.Snapshot, q HotQuery) map[string]uint64 {
	maximal := make(map[string]uint64)
	for _, p := range bruteMaximalIn(querytest.Streams(s), costsOf(s, q), q) {
		maximal[querytest.Spell(s, p.Symbols)] = p.Count
	}
	return maximal
}

func bruteMaximalIn(texts [][]uint32, c *costs, q HotQuery) (maximal []Subpath) {
	counts := make(map[string]uint64)
	for _, text := range texts {
		for i := range text {
			for j := i + 1; j <= len(text) && j-i <= q.MaxLength && !c.isMark[text[j-1]]; j++ {
				counts[key(text[i:j])]++
			}
		}
	}
	for k, n := range counts {
		symbols := unkey(k)
		isHot := len(symbols) >= q.MinLength && n*costOf(symbols, c.of) >= q.MinCost
		for longer, m := range counts {
			isHot = isHot && !(m == n && len(unkey(longer)) == len(symbols)+1 &&
				strings.Contains(longer, k))
		}
		if isHot {
			p := Subpath{Symbols: symbols, Count: n, Cost: n * costOf(symbols, c.of)}
			p.Covered = bruteCover(texts, c.of, [][]uint32{symbols})
			maximal = append(maximal, p)
		}
	}
	return maximal
}

// What figure 7 reports is hot, is of the lengths asked for, and crosses no mark.
func TestLarusReportsHotSubpaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := querytest.DrawSnapshot(t)
		q := drawHotQuery(t, Larus)
		got, err := Hot(s, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range got.Subpaths {
			var count uint64
			for _, text := range querytest.Streams(s) {
				for i := range text {
					if i+len(p.Symbols) <= len(text) && slices.Equal(text[i:i+len(p.Symbols)],
						p.Symbols) {
						count++
					}
				}
			}
			crosses := slices.ContainsFunc(p.Symbols,
				func(sym uint32) bool { return s.Symbols[sym].IsMark })
			if p.Count != count || p.Cost < got.MinCost || len(p.Symbols) < q.MinLength ||
				len(p.Symbols) > q.MaxLength || crosses {
				t.Fatalf("%s: %+v, occurs %d times, least cost %d", querytest.Spell(s, p.Symbols),
					p, count, got.MinCost)
			}
		}
	})
}
