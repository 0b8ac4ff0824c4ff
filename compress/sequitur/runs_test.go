package sequitur

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"wpptrace/internal/testenv"
)

// checkFolding reports what is not as promised of a folding grammar: in the grammar of runs the
// invariants, of the rules what they derive and their uses.
func checkFolding(g *Grammar, stream []uint32) error {
	c := clone(g)
	var folded []uint32
	for i := 0; i < len(stream); {
		n := 1
		for i+n < len(stream) && stream[i+n] == stream[i] {
			n++
		}
		if n == 1 {
			folded = append(folded, stream[i])
		} else {
			c.flush() // numbers the last run
			folded = append(folded, MaxTerminal-c.runs.number(run{stream[i], uint32(n)}))
		}
		i += n
	}
	if err := checkInvariants(c, folded); err != nil {
		return err
	}
	bodies := c.Rules()
	if got := expanded(bodies); !equalStreams(got, stream) {
		return fmt.Errorf("%s derives %v, appended %v", render(bodies), got, stream)
	}
	uses := make([]int, len(bodies))
	for _, body := range bodies {
		for _, v := range body {
			if IsRule(v) {
				uses[RuleOf(v)]++
			}
		}
	}
	for r, n := range uses[1:] {
		if n < 2 {
			return fmt.Errorf("%s: rule %d is used %d times", render(bodies), r+1, n)
		}
	}
	return nil
}

func expanded(bodies [][]uint32) []uint32 {
	var expand func(r int) []uint32
	expand = func(r int) (stream []uint32) {
		for _, v := range bodies[r] {
			if IsRule(v) {
				stream = append(stream, expand(RuleOf(v))...)
			} else {
				stream = append(stream, v)
			}
		}
		return stream
	}
	return expand(0)
}

func TestFoldingOnEveryShortStream(t *testing.T) {
	const length = 11
	stream := make([]uint32, length)
	for code := range 1 << length {
		for i := range stream {
			stream[i] = uint32(code >> i & 1)
		}
		g := NewFolding()
		for i, v := range stream {
			g.Append(v)
			if err := checkFolding(g, stream[:i+1]); err != nil {
				t.Fatalf("after %v: %v", stream[:i+1], err)
			}
		}
	}
}

func TestFoldingRuns(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 5))
	for range 200 {
		g, stream := NewFolding(), []uint32(nil)
		for range 1 + random.IntN(40) {
			part := slices.Repeat([]uint32{random.Uint32N(3)}, 1+random.IntN(1<<random.IntN(7)))
			stream = append(stream, part...)
			g.AppendAll(part)
			if random.IntN(10) == 0 {
				g.Rules() // changes nothing but where a run may be parted
			}
		}
		if got := expanded(g.Rules()); !equalStreams(got, stream) ||
			g.Length() != uint64(len(stream)) {
			t.Fatalf("%s of length %d derives %v, appended %v", render(g.Rules()), g.Length(), got,
				stream)
		}
	}
}

// Appending one by one, all at once, and as the chunks of AppendAll part runs is the same.
func TestFoldingAppendAll(t *testing.T) {
	stream := slices.Concat(slices.Repeat([]uint32{1}, 5000),
		slices.Repeat([]uint32{1, 2, 2}, 3000))
	one, all := NewFolding(), NewFolding()
	for _, v := range stream {
		one.Append(v)
	}
	all.AppendAll(stream)
	if got, want := render(all.Rules()), render(one.Rules()); got != want {
		t.Errorf("%s, one by one %s", got, want)
	}
}

func TestFoldingExamples(t *testing.T) {
	for stream, want := range map[string]string{
		"":                     "S->",
		"a":                    "S->a",
		"aa":                   "S->aa",
		"aaaaa":                "S->AAa A->aa",
		"aaabaaabaaab":         "S->AAA A->aaab",
		"aaaaabaaab":           "S->AAabAab A->aa",
		"aaaaaaaabaaaaaaaacaa": "S->CbCcA A->aa B->AA C->BB",
	} {
		g := NewFolding()
		g.AppendAll(runes(stream))
		if got := render(g.Rules()); got != want {
			t.Errorf("%s: %s, want %s", stream, got, want)
		}
	}
}

// A run that is appended at once is what it is one by one.
func TestAppendRun(t *testing.T) {
	for name, make := range map[string]func() *Grammar{"plain": New, "folding": NewFolding} {
		t.Run(name, func(t *testing.T) {
			one, run := make(), make()
			for i, times := range []uint64{1, 3, 0, 2, 700, 5, 1, 700, 4096, 2, 700} {
				symbol := uint32(i % 3)
				for range times {
					one.Append(symbol)
				}
				run.AppendRun(symbol, times)
			}
			if got, want := render(run.Rules()), render(one.Rules()); got != want ||
				run.Length() != one.Length() {
				t.Errorf("%d symbols, %s; one by one %d, %s", run.Length(), got, one.Length(), want)
			}
		})
	}
}

// A run longer than a number of 32 bits is several.
func TestFoldingOfTheLongestRun(t *testing.T) {
	const most = math.MaxUint32
	for name, appendTo := range map[string]func(g *Grammar){
		"one by one": func(g *Grammar) {
			g.Append(7)
			g.runs.last.length = most
			g.length = most
			g.AppendAll([]uint32{7, 7})
		},
		"at once":       func(g *Grammar) { g.AppendRun(7, most+2) },
		"to a run":      func(g *Grammar) { g.AppendRun(7, most-1); g.AppendRun(7, 3) },
		"to a full run": func(g *Grammar) { g.AppendRun(7, most); g.AppendRun(7, 2) },
	} {
		g := NewFolding()
		appendTo(g)
		if n := derived(g.Rules()); n != most+2 || g.Length() != n {
			t.Errorf("%s: %d symbols, said to be %d", name, n, g.Length())
		}
	}
}

// derived is how many terminals the start rule of a folding grammar derives.
func derived(bodies [][]uint32) uint64 {
	lengths := make([]uint64, len(bodies))
	for i := range bodies {
		r := (i + 1) % len(bodies) // the start rule last: each power stands before the next
		for _, v := range bodies[r] {
			if IsRule(v) {
				lengths[r] += lengths[RuleOf(v)]
			} else {
				lengths[r]++
			}
		}
	}
	return lengths[0]
}

// TestUnfoldedBodiesArePacked: the grammars of thousands of threads that had ended took twice what
// they were counted as.
func TestUnfoldedBodiesArePacked(t *testing.T) {
	g := NewFolding()
	for symbol := range uint32(20_000) {
		for range 2 { // so that there is a rule
			g.AppendAll([]uint32{symbol, symbol, symbol, 1 << 20})
		}
	}
	before := testenv.Heap() // without the grammars of tests before
	bodies := g.Rules()
	took, symbols := testenv.Heap()-before, 0
	for _, body := range bodies {
		symbols += len(body)
	}
	if has := 4*symbols + 24*len(bodies); took < has*7/8 || took > has*9/8 {
		t.Errorf("%d rules with %d symbols take %d bytes, want %d", len(bodies), symbols, took, has)
	}
	runtime.KeepAlive(g)
}

// Runs that share nothing take the most to unfold, and that is what they are said to take.
func TestUnfoldingBytes(t *testing.T) {
	for name, lengths := range map[string][]int{"short": {2}, "medium": {21},
		"of many lengths": {3, 30, 300}} {
		t.Run(name, func(t *testing.T) {
			g := NewFolding()
			for symbol := range uint32(20_000) {
				for _, n := range lengths {
					g.AppendAll(slices.Repeat([]uint32{symbol}, n))
					g.Append(1 << 20)
				}
			}
			g.NumRules()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			bodies := g.Rules()
			runtime.ReadMemStats(&after)
			took, copied := after.TotalAlloc-before.TotalAlloc, uint64(4*g.Symbols()+32*len(bodies))
			if said := g.UnfoldingBytes(); took > said+copied || took < said/8 {
				t.Errorf("%d bytes for %d runs and %d of copies, said to be %d", took,
					len(g.runs.all), copied, said)
			}
		})
	}
	if n := New().UnfoldingBytes(); n != 0 {
		t.Errorf("%d bytes where runs are not folded", n)
	}
}
