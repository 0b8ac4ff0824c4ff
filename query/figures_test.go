package query

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/wpp"
	"wpptrace/query/querytest"
)

// Of figure 5's grammar the first four symbols meet all rules, and each A is one symbol of the
// start rule more.
func TestGrowthOfFigure5(t *testing.T) {
	got, err := Growth(querytest.Figure5(t).Threads[0].Grammar, 6)
	if err != nil {
		t.Fatal(err)
	}
	want := []GrowthPoint{{2, 3, 5}, {4, 4, 7}, {6, 4, 8}, {8, 4, 8}, {10, 4, 9}, {12, 4, 9}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestGrowthEqualsBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := querytest.DrawGrammar(t, 5)
		points := rapid.IntRange(1, 20).Draw(t, "points")
		got, err := Growth(g, points)
		if err != nil {
			t.Fatal(err)
		}
		length := int(g.Length(0))
		if len(got) != min(points, length) {
			t.Fatalf("%d points of %d symbols", len(got), length)
		}
		for i, p := range got {
			if int(p.Position) != length*(i+1)/len(got) {
				t.Fatalf("point %d of %d at %d of %d", i, len(got), p.Position, length)
			}
			met := map[int]bool{0: true}
			symbols, left := 0, int(p.Position)
			bruteMeet(g, 0, met, &left, &symbols)
			for r := range met {
				if r > 0 {
					symbols += len(g.Body(r))
				}
			}
			// What lies within a rule that was met before is met with its beginning.
			if p.Rules < len(met) || p.Symbols < symbols ||
				i == len(got)-1 && (p.Rules != len(met) || p.Symbols != symbols) {
				t.Fatalf("%+v, want %d rules, %d symbols", p, len(met), symbols)
			}
		}
	})
}

// bruteMeet walks the derivation tree for so many terminals.
func bruteMeet(g *wpp.Grammar, rule int, met map[int]bool, left, symbols *int) {
	for _, v := range g.Body(rule) {
		if *left == 0 {
			return
		}
		if rule == 0 {
			*symbols++
		}
		if wpp.IsRule(v) {
			met[wpp.RuleOf(v)] = true
			bruteMeet(g, wpp.RuleOf(v), met, left, symbols)
		} else {
			*left--
		}
	}
}

func TestGrowthOfEndless(t *testing.T) {
	got, err := Growth(querytest.Doubling(t).Threads[0].Grammar, 4)
	if err != nil || len(got) != 4 || got[0].Position != 1<<58 || got[3].Position != 1<<60+1 ||
		got[3].Rules != 61 {
		t.Errorf("%v", got)
	}
}

// Figure 9 counts what Hot finds with each of its limits.
func TestFigure9(t *testing.T) {
	s := querytest.Letters(strings.Repeat("abcdefghijklmnopqrstuvwxyz", 800) + strings.Repeat("xy",
		900))
	got, err := HotByLength(s)
	if err != nil {
		t.Fatal(err)
	}
	var want []HotCount
	for _, cost := range []uint64{10_000, 100_000} {
		for length := 10; length <= 100; length += 10 {
			r, err := Hot(s, HotQuery{MinLength: 10, MaxLength: length, MinCost: cost,
				Metric: Instructions})
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, HotCount{cost, length, r.Found})
		}
	}
	if !slices.Equal(got, want) || !slices.Contains(want, HotCount{10_000, 100, 28}) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Where no instructions are known, each path costs 1.
func TestFigure9OfATrace(t *testing.T) {
	s := querytest.Letters(strings.Repeat("a", 10_010))
	s.Routines[0].Blocks, s.Symbols[0].Blocks = nil, nil
	got, err := HotByLength(s)
	if err != nil || !slices.Contains(got, HotCount{10_000, 10, 1}) {
		t.Errorf("%v, %v", got, err)
	}
}
