package ops

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestSymbolsAreDense(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Symbols
		known := map[Meaning]uint32{}
		for range rapid.IntRange(0, 300).Draw(t, "look-ups") {
			m := anyMeaning(t)
			sym := symbolOf(&s, m)
			want, ok := known[m]
			if !ok {
				want = uint32(len(known))
				known[m] = want
			}
			if sym != want {
				t.Fatalf("%+v is symbol %d, want %d", m, sym, want)
			}
			if s.Len() != len(known) {
				t.Fatalf("%d symbols, want %d", s.Len(), len(known))
			}
		}
		for m, sym := range known {
			if got := s.Meaning(sym); got != m {
				t.Fatalf("symbol %d means %+v, want %+v", sym, got, m)
			}
		}
	})
}

func symbolOf(s *Symbols, m Meaning) uint32 {
	if m.IsMark {
		return s.MarkSymbol(m.Mark, m.N)
	}
	return s.Symbol(m.Routine, m.Path)
}

func anyMeaning(t *rapid.T) Meaning {
	number := rapid.OneOf(rapid.Uint64Range(0, 20), rapid.Uint64()).Draw(t, "number")
	if rapid.Bool().Draw(t, "mark") {
		return Meaning{IsMark: true, Mark: Mark(rapid.IntRange(0, int(Handler)).Draw(t, "kind")),
			N: number}
	}
	return Meaning{Routine: rapid.OneOf(rapid.IntRange(0, 5),
		rapid.IntRange(0, math.MaxInt32)).Draw(t, "routine"), Path: number}
}

// A program of many routines with few paths each, as real ones are, must not make long probe
// sequences: the table is known by its slots.
func TestSymbolsSpread(t *testing.T) {
	var s Symbols
	for routine := range 20_000 {
		for path := range uint64(8) {
			s.Symbol(routine, path)
		}
	}
	mask := uint32(len(s.slots) - 1)
	far := 0
	for i, e := range s.slots {
		if e != 0 {
			far += int((uint32(i) - uint32(e>>32)>>s.shift) & mask)
		}
	}
	if mean := float64(far) / float64(s.Len()); mean > 2 {
		t.Errorf("symbols lie %.1f slots from home on average", mean)
	}
}

func TestSymbolsAllocateNothingOnceKnown(t *testing.T) {
	var s Symbols
	s.Symbol(3, 4)
	s.MarkSymbol(Gap, 5)
	if n := testing.AllocsPerRun(100, func() { s.Symbol(3, 4); s.MarkSymbol(Gap, 5) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		StartEntry.String(): "entry", StartResume.String(): "resume", Start(6).String(): "start(6)",
		EndLoop.String(): "loop", EndCut.String(): "cut", End(7).String(): "end(7)",
		Gap.String(): "gap", Handler.String(): "handler", Mark(5).String(): "mark(5)",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if !StartResume.Valid() || Start(6).Valid() || !EndCut.Valid() || End(7).Valid() ||
		!Handler.Valid() || Mark(5).Valid() {
		t.Error("wrong kinds are valid")
	}
}

func ExampleSymbols() {
	var s Symbols
	fmt.Println(s.Symbol(7, 0), s.Symbol(7, 2), s.MarkSymbol(Gap, 12), s.Symbol(7, 0))
	fmt.Println(s.Meaning(1).Path, s.Meaning(2).Mark, s.Meaning(2).N)
	// Output:
	// 0 1 2 0
	// 2 gap 12
}

func BenchmarkSymbol(b *testing.B) {
	for _, routines := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprintf("%d", 8*routines), func(b *testing.B) {
			var s Symbols
			for i := range 8 * routines {
				s.Symbol(i/8, uint64(i%8))
			}
			i := 0
			for b.Loop() {
				i = (i + 7919) % (8 * routines)
				s.Symbol(i/8, uint64(i%8))
			}
		})
	}
}
