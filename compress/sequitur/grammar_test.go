package sequitur

import (
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

// The examples of Larus 1999 and its slides as SEQUITUR itself yields them; rules are named in the order of their first use.
func TestWorkedExamples(t *testing.T) {
	for stream, want := range map[string]string{
		"":                  "S->",
		"a":                 "S->a",
		"abcabcabcabcabc":   "S->AAB A->BB B->abc", // section 3, with the three symbols that the text dropped
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
		stream := rapid.SliceOfN(rapid.Uint32Range(0, alphabet-1), 0, 150).Draw(t, "stream")
		appendChecked(t, stream)
	})
}

func TestInvariantsAfterEveryPhrase(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		phrase := rapid.SliceOfN(rapid.Uint32Range(0, 3), 1, 12)
		phrases := rapid.SliceOfN(phrase, 1, 4).Draw(t, "phrases")
		order := rapid.SliceOfN(rapid.IntRange(0, len(phrases)-1), 0, 60).Draw(t, "order")
		var stream []uint32
		g := New()
		for _, i := range order {
			for _, v := range phrases[i] {
				g.Append(v)
			}
			stream = append(stream, phrases[i]...)
			if err := checkInvariants(g, stream); err != nil {
				t.Fatalf("after %v: %v", stream, err)
			}
		}
	})
}
