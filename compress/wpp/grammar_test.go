package wpp_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/wpptest"
)

// grammar makes a grammar of lines like "S AAB": upper-case letters are rules, S the start rule,
// others terminals.
func grammar(t *testing.T, lines ...string) *wpp.Grammar {
	t.Helper()
	g, err := wpp.NewGrammar(wpptest.Bodies(lines))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Figure 5 of Larus 1999, a grammar that the paper gives and SEQUITUR does not yield.
func figure5(t *testing.T) *wpp.Grammar { return grammar(t, "S AAA", "A BC", "B ab", "C bc") }

func TestFigure5(t *testing.T) {
	g := figure5(t)
	for r, want := range []struct{ uses, length uint64 }{{1, 12}, {3, 4}, {3, 2}, {3, 2}} {
		if g.Uses(r) != want.uses || g.Length(r) != want.length {
			t.Errorf("rule %d: %d uses, length %d, want %v", r, g.Uses(r), g.Length(r), want)
		}
	}
	var s strings.Builder
	for v := range g.Expand(0) {
		s.WriteRune(rune(v))
	}
	if s.String() != "abbcabbcabbc" {
		t.Errorf("derives %s", s.String())
	}
	if g.Rules() != 4 || g.BodySymbols() != 9 {
		t.Errorf("%d rules, %d symbols", g.Rules(), g.BodySymbols())
	}
}

func TestNewGrammarRefuses(t *testing.T) {
	for _, c := range []struct {
		want  string
		lines []string
	}{
		{"grammar has no start rule", nil},
		{"rule 1 of 2 is empty", []string{"S A", "A "}},
		{"the start rule is used by a rule", []string{"S SA"}},
		{"the start rule is used by a rule", []string{"S AA", "A aS"}},
		{"1 of 2 rules are unused or derive themselves", []string{"S a", "A ab"}},
		{"1 of 2 rules are unused or derive themselves", []string{"S A", "A aA"}},
		{"2 of 3 rules are unused or derive themselves", []string{"S A", "A aB", "B bA"}},
		{"2 of 3 rules are unused or derive themselves", []string{"S a", "A aB", "B bA"}},
	} {
		if _, err := wpp.NewGrammar(wpptest.Bodies(c.lines)); err == nil || err.Error() != c.want {
			t.Errorf("%q: %v, want %s", c.lines, err, c.want)
		}
	}
	if _, err := wpp.NewGrammar([][]uint32{{wpp.RuleSymbol(1)}}); err == nil ||
		err.Error() != "rule 0 refers to rule 1 of 1" {
		t.Error(err)
	}
}

func TestHugeExpansions(t *testing.T) {
	for n, want := range map[int]uint64{61: 1 << 60, 64: 1 << 63, 65: math.MaxUint64,
		100_000: math.MaxUint64} {
		g, err := wpp.NewGrammar(wpptest.Doubling(n))
		if err != nil {
			t.Fatal(err)
		}
		if g.Length(0) != want || g.Uses(n) != want {
			t.Errorf("%d rules: length %d, %d uses, want %d", n, g.Length(0), g.Uses(n), want)
		}
		first := 0
		for v := range g.Expand(0) {
			if v != 7 {
				t.Fatal(v)
			}
			if first++; first == 1000 {
				break
			}
		}
	}
}

func TestGrammarOfAnyStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stream := rapid.SliceOfN(rapid.Uint32Range(0, 3), 0, 200).Draw(t, "stream")
		g := wpptest.GrammarOf(stream...)
		if got := slices.Collect(g.Expand(0)); !slices.Equal(got, stream) {
			t.Fatalf("derives %v", got)
		}
		if g.Length(0) != uint64(len(stream)) {
			t.Fatalf("length %d", g.Length(0))
		}
		uses := make([]uint64, g.Rules())
		countUses(g, 0, uses)
		place := make([]int, g.Rules())
		for i, r := range g.Order() {
			place[r] = i
		}
		for r := range uses {
			if g.Uses(r) != uses[r] {
				t.Fatalf("rule %d is used %d times, want %d", r, g.Uses(r), uses[r])
			}
			for _, v := range g.Body(r) {
				if wpp.IsRule(v) && place[wpp.RuleOf(v)] <= place[r] {
					t.Fatalf("rule %d stands before rule %d, which uses it", wpp.RuleOf(v), r)
				}
			}
		}
	})
}

// countUses counts the nodes of the derivation tree.
func countUses(g *wpp.Grammar, rule int, uses []uint64) {
	uses[rule]++
	for _, v := range g.Body(rule) {
		if wpp.IsRule(v) {
			countUses(g, wpp.RuleOf(v), uses)
		}
	}
}

func TestWriteASCII(t *testing.T) {
	var b bytes.Buffer
	n, err := figure5(t).WriteASCII(&b)
	if err != nil {
		t.Fatal(err)
	}
	want := "S -> R1 R1 R1\nR1 -> R2 R3\nR2 -> 97 98\nR3 -> 98 99\n"
	if b.String() != want || n != int64(len(want)) {
		t.Errorf("%d bytes: %s", n, b.String())
	}
	if _, err := figure5(t).WriteASCII(fullDisk{}); err != errFullDisk {
		t.Error(err)
	}
}

func TestWriteDot(t *testing.T) {
	var b bytes.Buffer
	label := func(v uint32) string { return string(rune(v)) + "\"\\\x00" }
	if err := grammar(t, "S AaA", "A bb").WriteDot(&b, label); err != nil {
		t.Fatal(err)
	}
	want := `digraph wpp {
	ordering=out
	S [label="S\n1"]
	S -> R1
	S -> t97
	S -> R1
	R1 [label="R1\n2"]
	R1 -> t98
	R1 -> t98
	t97 [shape=box label="a\"\\?\n1"]
	t98 [shape=box label="b\"\\?\n4"]
}
`
	if b.String() != want {
		t.Error(b.String())
	}
	if err := figure5(t).WriteDot(fullDisk{}, label); err != errFullDisk {
		t.Error(err)
	}
}

func ExampleNewGrammar() {
	// Figure 5 of Larus 1999, with a = 0, b = 1, c = 2: S -> AAA, A -> BC, B -> ab, C -> bc.
	a, b, c := wpp.RuleSymbol(1), wpp.RuleSymbol(2), wpp.RuleSymbol(3)
	g, err := wpp.NewGrammar([][]uint32{{a, a, a}, {b, c}, {0, 1}, {1, 2}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("length", g.Length(0), "frequency of A", g.Uses(1))
	for v := range g.Expand(1) {
		fmt.Print(v, " ")
	}
	// Output:
	// length 12 frequency of A 3
	// 0 1 1 2
}

func ExampleGrammar_WriteASCII() {
	var b strings.Builder
	size, err := wpptest.GrammarOf(0, 1, 0, 1, 0, 1, 2).WriteASCII(&b)
	fmt.Print(b.String(), size, " bytes, ", err)
	// Output:
	// S -> R1 R1 R1 2
	// R1 -> 0 1
	// 26 bytes, <nil>
}

func BenchmarkExpand(b *testing.B) {
	g, err := wpp.NewGrammar(wpptest.Doubling(21))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for range g.Expand(0) {
		}
	}
	b.ReportMetric(float64(b.N)*float64(g.Length(0))/b.Elapsed().Seconds()/1e6, "Msymbols/s")
}

var errFullDisk = errors.New("no space left on device")

// A fullDisk takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFullDisk }
