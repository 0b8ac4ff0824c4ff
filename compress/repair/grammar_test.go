package repair

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/sequitur"
)

func rule(n int) uint32 { return sequitur.RuleSymbol(n) }

func text(s string) []uint32 {
	var symbols []uint32
	for _, c := range s {
		symbols = append(symbols, uint32(c))
	}
	return symbols
}

// expand appends what a rule derives.
func expand(to []uint32, bodies [][]uint32, r int) []uint32 {
	for _, v := range bodies[r] {
		if sequitur.IsRule(v) {
			to = expand(to, bodies, sequitur.RuleOf(v))
		} else {
			to = append(to, v)
		}
	}
	return to
}

func TestCompact(t *testing.T) {
	for name, c := range map[string]struct{ bodies, want [][]uint32 }{
		"empty":        {[][]uint32{nil}, [][]uint32{nil}},
		"one":          {[][]uint32{{7}}, [][]uint32{{7}}},
		"does not pay": {[][]uint32{text("abcab")}, [][]uint32{text("abcab")}},
		"pays": {[][]uint32{text("abcdeabcdexabcde")},
			[][]uint32{{rule(1), rule(1), 'x', rule(1)}, text("abcde")}},
		"equal symbols": {[][]uint32{slices.Repeat([]uint32{5}, 64)},
			[][]uint32{slices.Repeat([]uint32{rule(1)}, 8), slices.Repeat([]uint32{5}, 8)}},
		"across bodies": {[][]uint32{append(text("abcdefghxabcdefgh"), rule(1), rule(1),
			rule(1)), text("_abcdefgh_")}, nil},
		"used once":       {[][]uint32{{rule(1), 9}, {1, 2}}, [][]uint32{{1, 2, 9}}},
		"overlap is gone": {[][]uint32{{1, 1, 0, 1, 0, 1, 1, 1}}, nil},
		"rules of one": {[][]uint32{{rule(1), rule(1), rule(1), rule(1), rule(1), rule(1)},
			{rule(2)}, {7}}, [][]uint32{{7, 7, 7, 7, 7, 7}}},
		"longest terminal": {[][]uint32{{sequitur.MaxTerminal, sequitur.MaxTerminal}},
			[][]uint32{{sequitur.MaxTerminal, sequitur.MaxTerminal}}},
	} {
		t.Run(name, func(t *testing.T) {
			derived := expand(nil, c.bodies, 0)
			got := Compact(c.bodies)
			if c.want != nil && !slices.EqualFunc(got, c.want, slices.Equal) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if !slices.Equal(expand(nil, got, 0), derived) {
				t.Errorf("%v derives other than %v", got, derived)
			}
		})
	}
}

// anyBodies draws the grammar of a stream, as one body or as sequitur's.
func anyBodies(t *rapid.T) [][]uint32 {
	largest := rapid.SampledFrom([]uint32{0, 1, 3, 20}).Draw(t, "largest")
	n := rapid.IntRange(0, 600).Draw(t, "length")
	stream := rapid.SliceOfN(rapid.Uint32Range(0, largest), n, n).Draw(t, "stream")
	if rapid.Bool().Draw(t, "one body") {
		return [][]uint32{stream}
	}
	g := sequitur.New()
	g.AppendAll(stream)
	return g.Rules()
}

func TestCompactAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bodies := anyBodies(t)
		want := expand(nil, bodies, 0)
		got := Compact(bodies)
		if !slices.Equal(expand(nil, got, 0), want) {
			t.Fatalf("%v derives other than %v", got, want)
		}
		uses := make([]int, len(got))
		for _, body := range got {
			for _, v := range body {
				if sequitur.IsRule(v) {
					uses[sequitur.RuleOf(v)]++
				}
			}
		}
		for r, n := range uses {
			if r > 0 && (n-1)*(len(got[r])-1)-1 < leastSaved {
				t.Fatalf("rule %d: used %d times: %v", r, n, got[r])
			}
		}
	})
}

// Before rules are taken out, no pair occurs twice, and each rule is used twice.
func TestNoPairIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bodies := anyBodies(t)
		met := map[[2]uint32]bool{}
		for r, body := range replacePairs(bodies) {
			for i := 1; i < len(body); i++ {
				pair := [2]uint32{body[i-1], body[i]}
				if met[pair] && !(i > 1 && body[i-2] == body[i-1] && body[i-1] == body[i]) {
					t.Fatalf("rule %d: %v once more", r, pair)
				}
				met[pair] = true
			}
		}
	})
}

func TestBottomUp(t *testing.T) {
	bodies := [][]uint32{{rule(2), rule(1)}, {rule(3), 5, rule(3)}, {rule(1), rule(3)}, {1}}
	if got := bottomUp(bodies, []int{0, 2, 1, 3}); !slices.Equal(got, []int{3, 1, 2, 0}) {
		t.Error(got)
	}
}

func ExampleCompact() {
	stream := slices.Repeat([]uint32{1, 4, 2, 4, 2, 5, 3}, 10)
	bodies := Compact([][]uint32{stream})
	fmt.Println(len(bodies), "rules derive", len(expand(nil, bodies, 0)), "symbols")
	// Output: 2 rules derive 70 symbols
}

func BenchmarkCompact(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	stream := make([]uint32, 0, 1_000_000)
	for len(stream) < cap(stream)-60 {
		for range random.IntN(10) {
			stream = append(stream, 10, 11, random.Uint32N(4), 12, 13)
		}
		stream = append(stream, 20+random.Uint32N(30))
	}
	for b.Loop() {
		Compact([][]uint32{stream})
	}
	b.ReportMetric(float64(b.N*len(stream))/b.Elapsed().Seconds()/1e6, "Msymbols/s")
}
