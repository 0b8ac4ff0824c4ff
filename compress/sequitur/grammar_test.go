package sequitur

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func runes(s string) []uint32 {
	var stream []uint32
	for _, r := range s {
		stream = append(stream, uint32(r))
	}
	return stream
}

// render writes bodies with letters for rules: S, then A, B ... in the order of Rules.
func render(bodies [][]uint32) string {
	var b strings.Builder
	for r, body := range bodies {
		if r > 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(ruleLetter(r))
		b.WriteString("->")
		for _, v := range body {
			if IsRule(v) {
				b.WriteRune(ruleLetter(RuleOf(v)))
			} else {
				b.WriteRune(rune(v))
			}
		}
	}
	return b.String()
}

func ruleLetter(r int) rune {
	if r == 0 {
		return 'S'
	}
	return rune('A' + r - 1)
}

// The examples of Larus 1999 and its slides as SEQUITUR itself yields them; rules are named in the
// order of their first use.
func TestWorkedExamples(t *testing.T) {
	for stream, want := range map[string]string{
		"":  "S->",
		"a": "S->a",
		// section 3, with the three symbols that the text dropped
		"abcabcabcabcabc":   "S->AAB A->BB B->abc",
		"abcab":             "S->AcA A->ab",
		"abcabdabcabd":      "S->AA A->BcBd B->ab",           // section 3.1
		"11111211111":       "S->AB2BA A->11 B->A1",          // section 3.2, before the look-ahead
		"1212131214":        "S->AB3B4 A->12 B->A1",          // figure 4
		"abbcabbcabbc":      "S->AAA A->abbc",                // section 4
		"14242424252525253": "S->1AACCC53 A->BB B->42 C->52", // slides: a loop
	} {
		g := New()
		g.AppendAll(runes(stream))
		if got := render(g.Rules()); got != want {
			t.Errorf("%s: %s, want %s", stream, got, want)
		}
	}
}

func appendChecked(t interface{ Fatalf(string, ...any) }, stream []uint32) *Grammar {
	g := New()
	for i, v := range stream {
		g.Append(v)
		if err := checkInvariants(g, stream[:i+1]); err != nil {
			t.Fatalf("after %v: %v", stream[:i+1], err)
		}
	}
	return g
}

// Small alphabets make runs of equal symbols, whose digrams overlap.
func TestInvariantsOnEveryShortStream(t *testing.T) {
	for _, c := range []struct{ alphabet, length int }{{2, 13}, {3, 8}} {
		stream := make([]uint32, c.length)
		for more := true; more; {
			g := New()
			g.AppendAll(stream)
			if err := checkInvariants(g, stream); err != nil {
				t.Fatalf("after %v: %v", stream, err)
			}
			more = false
			for i := range stream {
				if stream[i]++; int(stream[i]) < c.alphabet {
					more = true
					break
				}
				stream[i] = 0
			}
		}
	}
}

func TestInvariantsAfterEveryAppend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		alphabet := rapid.SampledFrom([]uint32{1, 2, 3, 5, 20}).Draw(t, "alphabet")
		stream := rapid.SliceOfN(rapid.Uint32Range(0, alphabet-1), 60, 150).Draw(t, "stream")
		appendChecked(t, stream)
	})
}

// Streams of a few phrases over and over are what programs make; rules grow, are lengthened and
// inlined.
func TestInvariantsOnPhrases(t *testing.T) {
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 0))
		appendChecked(t, phrases(random, 150))
	}
}

// phrases returns a stream of at least n symbols made of up to five phrases in random order, one
// symbol dominating.
func phrases(random *rand.Rand, n int) []uint32 {
	alphabet := 1 + random.Uint32N(4)
	dominance := random.Float64()
	var vocabulary [5][]uint32
	for i := range vocabulary {
		for range 1 + random.IntN(7) {
			var v uint32
			if random.Float64() > dominance {
				v = random.Uint32N(alphabet)
			}
			vocabulary[i] = append(vocabulary[i], v)
		}
	}
	var stream []uint32
	for len(stream) < n {
		stream = append(stream, vocabulary[random.IntN(len(vocabulary))]...)
	}
	return stream
}

// A long stream of calls, loops and returns in nested order, checked now and then.
func TestInvariantsOnNestedLoops(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	g := New()
	var stream []uint32
	add := func(v uint32) {
		g.Append(v)
		stream = append(stream, v)
		if len(stream)%1999 == 0 {
			if err := checkInvariants(g, stream); err != nil {
				t.Fatalf("after %d symbols: %v", len(stream), err)
			}
		}
	}
	for range 60 {
		add(1)
		for range 5 + random.IntN(10) {
			add(2)
			for range 1 + random.IntN(30) {
				add(3 + uint32(random.IntN(3)/2))
			}
		}
		add(5)
	}
	if err := checkInvariants(g, stream); err != nil {
		t.Fatal(err)
	}
	if 4*g.Symbols() > len(stream) {
		t.Errorf("%d symbols became %d", len(stream), g.Symbols())
	}
}

// In a run of three equal symbols either digram may be the recorded one. No stream is known to
// record the second and then to make the run longer, so the test moves the record itself.
func TestRunWhoseMiddleIsRecorded(t *testing.T) {
	for _, side := range []string{"right", "left"} {
		g := New()
		g.AppendAll(runes("xaaay"))
		g.flush()
		x := g.built.at(g.built.rules[start].guard).next
		first := g.built.at(x).next
		g.built.move(g.built.find('a', 'a'), first)
		second := g.built.at(first).next
		if side == "right" {
			g.built.move(first, second)
			insertAfter(g, g.built.at(second).next, 'a')
		} else {
			insertAfter(g, x, 'a')
		}
		if err := checkInvariants(g, runes("xaaaay")); err != nil {
			t.Errorf("%s: %v", side, err)
		}
	}
}

// insertAfter puts a symbol behind node n, as inlining a rule of that symbol alone would.
func insertAfter(g *Grammar, n uint32, v uint32) {
	right := g.built.at(n).next
	g.built.cut(n)
	m := g.built.take(v)
	g.built.link(n, m)
	g.built.link(m, right)
	g.built.suspect(m)
	g.built.suspect(n)
	g.built.settle()
}

func TestRulesIsACopy(t *testing.T) {
	g := New()
	g.AppendAll(runes("abcabcabcabcabc"))
	bodies := g.Rules()
	before := render(bodies)
	g.AppendAll(runes("abcabcabcxyxyabc"))
	if after := render(bodies); after != before {
		t.Errorf("%s became %s", before, after)
	}
	for r := range bodies {
		_ = append(bodies[r], 'z')
	}
	if after := render(bodies); after != before {
		t.Errorf("appending to a body made %s of %s", after, before)
	}
}

func TestFigures(t *testing.T) {
	g := New()
	empty := g.Bytes()
	g.AppendAll(runes("abcabcabcabcabc")) // S->AAB A->BB B->abc
	if g.NumRules() != 3 || g.Symbols() != 8 || g.Length() != 15 {
		t.Errorf("%d rules, %d symbols, length %d", g.NumRules(), g.Symbols(), g.Length())
	}
	for i := range uint32(10_000) {
		g.Append(i)
	}
	if grown := g.Bytes() - empty; grown < 10_000*12 || grown > 10_000*80 {
		t.Errorf("10,000 new symbols take %d bytes", grown)
	}
}

func TestAppendRefusesNonterminals(t *testing.T) {
	for most, g := range map[uint32]*Grammar{MaxTerminal: New(), MaxFoldingTerminal: NewFolding()} {
		g.AppendAll([]uint32{most, 5, 5, 6, most, most, 7})
		got := fmt.Sprint(g.Rules())
		if want := fmt.Sprint([][]uint32{{most, 5, 5, 6, most, most, 7}}); got != want {
			t.Errorf("the largest terminal: %s, want %s", got, want)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d is accepted", most+1)
				}
			}()
			g.Append(most + 1)
		}()
	}
}

func FuzzAppend(f *testing.F) {
	f.Add([]byte("abcabdabcabd"))
	f.Add([]byte("11111211111"))
	f.Add([]byte("aaaaaaaaabaaaaab"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var stream []uint32
		for _, c := range b[:min(len(b), 400)] {
			stream = append(stream, uint32(c))
		}
		appendChecked(t, stream)
		g := NewFolding()
		g.AppendAll(stream)
		if err := checkFolding(g, stream); err != nil {
			t.Fatal(err)
		}
	})
}

func ExampleNewFolding() {
	g := NewFolding()
	g.AppendAll(runes("aaaaabaaaaac"))
	fmt.Println(render(g.Rules()))
	// Output: S->BbBc A->aa B->AAa
}

func ExampleGrammar_AppendRun() {
	g := NewFolding()
	g.AppendRun(7, 1<<40) // a loop that ran for minutes
	fmt.Println(g.Length(), g.Symbols() < 200)
	// Output: 1099511627776 true
}

func Example() {
	g := New()
	g.AppendAll([]uint32{1, 2, 1, 2, 1, 3, 1, 2, 1, 4}) // Larus 1999, figure 4
	for r, body := range g.Rules() {
		fmt.Print("R", r, " ->")
		for _, v := range body {
			if IsRule(v) {
				fmt.Print(" R", RuleOf(v))
			} else {
				fmt.Print(" ", v)
			}
		}
		fmt.Println()
	}
	// Output:
	// R0 -> R1 R2 3 R2 4
	// R1 -> 1 2
	// R2 -> R1 1
}
