package compact

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/coding"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/wpptest"
)

func codedSize(g *wpp.Grammar) int { return len(coding.Encode(g.Bodies())) }

func TestCompact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		largest := rapid.SampledFrom([]uint32{0, 2, 9}).Draw(t, "largest")
		n := rapid.IntRange(0, 300).Draw(t, "length")
		stream := rapid.SliceOfN(rapid.Uint32Range(0, largest), n, n).Draw(t, "stream")
		g := wpptest.GrammarOf(stream...)
		c, err := Grammar(g)
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
		g := wpptest.GrammarOf(stream...)
		most := rapid.Uint64Range(0, 300).Draw(t, "most")
		u, err := wpp.NewGrammar(unfolded(g, most))
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

// nested is a grammar of n rules, each with the next one twice and something between that is the
// same in every third.
func nested(n int) [][]uint32 {
	bodies := make([][]uint32, n)
	for r := range n - 1 {
		bodies[r] = []uint32{wpp.RuleSymbol(r + 1), uint32(r % 3), 3, wpp.RuleSymbol(r + 1)}
	}
	bodies[n-1] = []uint32{4, 5, 6, 4, 5, 6}
	return bodies
}

// What derives more than is looked at together is compacted within its rules. It derives the same:
// all of it, where that can be expanded.
func TestCompactHugeExpansions(t *testing.T) {
	for name, bodies := range map[string][][]uint32{
		"2^60": wpptest.Doubling(60), "2^70": wpptest.Doubling(70),
		"2^1000":    wpptest.Doubling(1000),
		"nested 16": nested(16), "nested 60": nested(60), "nested 1000": nested(1000),
	} {
		g, err := wpp.NewGrammar(bodies)
		if err != nil {
			t.Fatal(err)
		}
		c, err := compact(g, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		if fingerprint(c) != fingerprint(g) || c.Length(0) != g.Length(0) ||
			codedSize(c) > codedSize(g) {
			t.Errorf("%s: length %d, want %d; %d bytes, were %d", name, c.Length(0), g.Length(0),
				codedSize(c), codedSize(g))
		}
		if g.Length(0) < 1<<20 && !slices.Equal(slices.Collect(c.Expand(0)),
			slices.Collect(g.Expand(0))) {
			t.Errorf("%s derives something else", name)
		}
	}
}

// A fingerprint is of what is derived: another grammar has the same, another stream, as long, has
// not.
func TestFingerprint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stream := rapid.SliceOfN(rapid.Uint32Range(0, 3), 1, 200).Draw(t, "stream")
		g := wpptest.GrammarOf(stream...)
		flat, err := wpp.NewGrammar([][]uint32{stream})
		if err != nil {
			t.Fatal(err)
		}
		if fingerprint(g) != fingerprint(flat) {
			t.Fatalf("%v has two", stream)
		}
		at, by := rapid.IntRange(0, len(stream)-1).Draw(t, "at"), rapid.IntRange(0,
			len(stream)-1).Draw(t, "by")
		other := slices.Clone(stream)
		other[at], other[by] = other[by], other[at]
		if same := slices.Equal(stream,
			other); (fingerprint(wpptest.GrammarOf(other...)) == fingerprint(g)) != same {
			t.Fatalf("%v and %v have the same: %v", stream, other, !same)
		}
		other[at]++
		if fingerprint(wpptest.GrammarOf(other...)) == fingerprint(g) {
			t.Fatalf("%v and %v have the same", stream, other)
		}
	})
}

func ExampleGrammar() {
	g := wpptest.GrammarOf(0, 1, 2, 3, 4, 0, 1, 2, 5, 1, 2, 3, 4, 6, 0, 1, 2, 3, 7, 1, 2, 3, 4, 0,
		1, 2, 3, 4, 0, 1, 2, 3, 4)
	c, err := Grammar(g)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(g.BodySymbols(), "symbols to", c.BodySymbols(), "for a stream of", c.Length(0))
	// Output: 23 symbols to 22 for a stream of 33
}

// Sections that refer to rules go only where grammars are changed.
func TestSnapshot(t *testing.T) {
	const kept, ofRules = wpp.SectionKind(1 << 20), wpp.SectionKind(1<<20) | wpp.OfRules
	for name, c := range map[string]struct {
		stream  []uint32
		leftOut []wpp.SectionKind
	}{
		"changed": {[]uint32{0, 1, 2, 3, 4, 0, 1, 2, 5, 1, 2, 3, 4, 6, 0, 1, 2, 3, 7, 1, 2, 3, 4,
			0, 1, 2, 3, 4, 0, 1, 2, 3, 4}, []wpp.SectionKind{ofRules}},
		"unchanged": {[]uint32{0, 1, 2}, nil},
	} {
		s := &wpp.Snapshot{Threads: []wpp.Thread{{Grammar: wpptest.GrammarOf(c.stream...)}}}
		for _, kind := range []wpp.SectionKind{kept, ofRules, kept, ofRules} {
			s.Sections = append(s.Sections, wpp.NewSection(kind, nil))
		}
		before := slices.Clone(s.Sections)
		leftOut, err := Snapshot(s)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(leftOut, c.leftOut) {
			t.Errorf("%s: left out %v, want %v", name, leftOut, c.leftOut)
		}
		want := before
		if c.leftOut != nil {
			want = []*wpp.Section{before[0], before[2]}
		}
		if !slices.Equal(s.Sections, want) || !slices.Equal(slices.Collect(s.SectionsOf(kept)),
			[]*wpp.Section{before[0], before[2]}) {
			t.Errorf("%s: %d sections stay", name, len(s.Sections))
		}
	}
}
