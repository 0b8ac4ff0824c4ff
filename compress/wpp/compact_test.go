package wpp

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/coding"
)

func codedSize(g *Grammar) int { return len(coding.Encode(g.bodies)) }

func TestCompact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		largest := rapid.SampledFrom([]uint32{0, 2, 9}).Draw(t, "largest")
		n := rapid.IntRange(0, 300).Draw(t, "length")
		stream := rapid.SliceOfN(rapid.Uint32Range(0, largest), n, n).Draw(t, "stream")
		g := grammarOf(stream...)
		c, err := g.Compact()
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Collect(c.Expand(0)); !slices.Equal(got, stream) {
			t.Fatalf("derives %v", got)
		}
		if codedSize(c) > codedSize(g) {
			t.Fatalf("%d bytes, were %d", codedSize(c), codedSize(g))
		}
	})
}

// However few symbols may be unfolded, the bodies derive the same.
func TestUnfolded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stream := rapid.SliceOfN(rapid.Uint32Range(0, 2), 0, 300).Draw(t, "stream")
		g := grammarOf(stream...)
		most := rapid.Uint64Range(0, 300).Draw(t, "most")
		u, err := NewGrammar(g.unfolded(most))
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Collect(u.Expand(0)); !slices.Equal(got, stream) {
			t.Fatalf("derives %v", got)
		}
		if n := uint64(u.BodySymbols()); n > most && n > uint64(g.BodySymbols()) {
			t.Fatalf("%d symbols", n)
		}
	})
}

// What derives more than could ever be expanded is compacted within its rules.
func TestCompactHugeExpansions(t *testing.T) {
	for _, n := range []int{60, 70, 1000} {
		g, err := NewGrammar(doubling(n))
		if err != nil {
			t.Fatal(err)
		}
		c, err := g.compact(10_000)
		if err != nil {
			t.Fatal(err)
		}
		if c.Length(0) != g.Length(0) || codedSize(c) > codedSize(g) {
			t.Errorf("%d rules: length %d, want %d; %d bytes, were %d", n, c.Length(0), g.Length(0), codedSize(c), codedSize(g))
		}
	}
}

func ExampleGrammar_Compact() {
	g := grammarOf(0, 1, 2, 3, 4, 0, 1, 2, 5, 1, 2, 3, 4, 6, 0, 1, 2, 3, 7, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4)
	c, err := g.Compact()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(g.BodySymbols(), "symbols to", c.BodySymbols(), "for a stream of", c.Length(0))
	// Output: 23 symbols to 22 for a stream of 33
}
