package coding

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/sequitur"
)

func grammarOf(stream ...uint32) [][]uint32 {
	g := sequitur.New()
	g.AppendAll(stream)
	return g.Rules()
}

func rule(n int) uint32 { return sequitur.RuleSymbol(n) }

// chain is a grammar of n rules, each of which begins with the next: the ways to them get long.
func chain(n int) [][]uint32 {
	bodies := [][]uint32{{rule(1)}}
	for r := 1; r < n; r++ {
		bodies = append(bodies, []uint32{rule(r + 1), uint32(r)})
	}
	bodies = append(bodies, []uint32{0})
	for r := n; r > 0; r-- {
		bodies[0] = append(bodies[0], rule(r))
	}
	return bodies
}

// checkRoundTrip codes in every number of contexts.
func checkRoundTrip(t interface{ Fatalf(string, ...any) }, bodies [][]uint32) {
	for mixed := range contexts + 1 {
		got, err := Decode(encode([]byte{byte(mixed)}, bodies, symbolsOf(bodies), mixed), 1<<30,
			1<<30)
		if err != nil || !slices.EqualFunc(got, bodies, slices.Equal) {
			t.Fatalf("%v in %d contexts: got %v, %v", bodies, mixed, got, err)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	for name, bodies := range map[string][][]uint32{
		"empty":            {nil},
		"one terminal":     {{7}},
		"largest terminal": {{sequitur.MaxTerminal, 0, sequitur.MaxTerminal, 1 << 30, 1<<30 - 1}},
		"rules of one":     {{rule(1), rule(1)}, {rule(2)}, {5}},
		"figure 5":         {{rule(1), rule(1), rule(1)}, {rule(2), rule(3)}, {0, 1}, {1, 2}},
		"long ways":        chain(5 * deepest),
		"deep bodies":      chain(20_000),
		"repetitions":      grammarOf(slices.Repeat([]uint32{3}, 1000)...),
	} {
		t.Run(name, func(t *testing.T) { checkRoundTrip(t, bodies) })
	}
}

// What is in files stays readable: how many contexts were mixed before files said how many.
func TestDecodeEarly(t *testing.T) {
	for symbols, mixed := range map[uint64]int{100: 3, 1 << 17: 3, 1<<20 - 1: 3, 1 << 20: 2,
		1 << 22: 1} {
		if got := mixedEarly(symbols); got != mixed {
			t.Errorf("%d symbols: %d contexts, want %d", symbols, got, mixed)
		}
	}
	for _, length := range []int{0, 100, 1 << 18} {
		bodies := grammarOf(stream(length)...)
		symbols := symbolsOf(bodies)
		got, err := DecodeEarly(encode(nil, bodies, symbols, mixedEarly(symbols)), 1<<30, 1<<30)
		if err != nil || !slices.EqualFunc(got, bodies, slices.Equal) {
			t.Errorf("stream of %d symbols: it comes back otherwise, or not: %v", length, err)
		}
	}
}

func TestDecodeRefusesContexts(t *testing.T) {
	for _, mixed := range []int{contexts + 1, 255} {
		coded := Encode([][]uint32{{1, 2, 3}})
		coded[0] = byte(mixed)
		if _, err := Decode(coded, 100, 100); !errors.Is(err, errMixed) {
			t.Errorf("%d contexts: %v", mixed, err)
		}
	}
}

func TestRoundTripOfAnyStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		largest := rapid.SampledFrom([]uint32{0, 1, 3, 100, sequitur.MaxTerminal}).Draw(t,
			"largest")
		n := rapid.IntRange(0, 2000).Draw(t, "length")
		checkRoundTrip(t, grammarOf(rapid.SliceOfN(rapid.Uint32Range(0, largest), n, n).Draw(t,
			"stream")...))
	})
}

// expanded is what the rule of some bodies derives, up to so many terminals.
func expanded(bodies [][]uint32, of, most int) (list []uint32) {
	for _, v := range bodies[of] {
		switch {
		case len(list) >= most:
			return list[:most]
		case sequitur.IsRule(v):
			list = append(list, expanded(bodies, sequitur.RuleOf(v), most-len(list))...)
		default:
			list = append(list, v)
		}
	}
	return list
}

// What is decoded for the first terminals derives them, and is no more than what derives all.
func TestDecodeFirstOfAnyStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		largest := rapid.SampledFrom([]uint32{0, 1, 3, 100}).Draw(t, "largest")
		n := rapid.IntRange(1, 2000).Draw(t, "length")
		stream := rapid.SliceOfN(rapid.Uint32Range(0, largest), n, n).Draw(t, "stream")
		first := rapid.IntRange(1, n+1).Draw(t, "first")
		all := grammarOf(stream...)
		for _, coded := range [][]byte{Encode(all), EncodeQuick(all)} {
			got, err := DecodeFirst(coded, 1<<30, 1<<30, uint64(first))
			if err != nil {
				t.Fatal(err)
			}
			if want := stream[:min(first, n)]; !slices.Equal(expanded(got, 0, first), want) {
				t.Fatalf("%v derives %v, want %v", got, expanded(got, 0, first), want)
			}
			if symbolsOf(got) > symbolsOf(all) || len(got) > len(all) {
				t.Fatalf("%v is more than %v", got, all)
			}
		}
	})
}

// What is behind the first terminals is not read: it takes no time, and may be damaged.
func TestDecodeFirstReadsNoMore(t *testing.T) {
	all := grammarOf(stream(20_000)...)
	coded := EncodeQuick(all)
	got, err := DecodeFirst(coded[:len(coded)/2], 1<<30, 1<<30, 5_000)
	if n := symbolsOf(got); err != nil || n == 0 || n > symbolsOf(all)/2 {
		t.Errorf("%d symbols of %d, %v", n, symbolsOf(all), err)
	}
}

// Rules need not be numbered in the order of their first use, but they come back so.
func TestEncodeNumbersRules(t *testing.T) {
	coded := Encode([][]uint32{{0, rule(2), rule(2)}, {1, 2}, {rule(1), 3, rule(1)}})
	want := [][]uint32{{0, rule(1), rule(1)}, {rule(2), 3, rule(2)}, {1, 2}}
	if got, err := Decode(coded, 100, 100); err != nil || !slices.EqualFunc(got, want,
		slices.Equal) {
		t.Fatal(got, err)
	}
}

// stream is a program of sorts: loops of loops, with some chance in them.
func stream(n int) []uint32 {
	var s []uint32
	for x := uint32(1); len(s) < n; x = x*1664525 + 1013904223 {
		for range x >> 29 {
			s = append(s, 10, 11, x>>20&3, 12, 13)
		}
		s = append(s, 20+x>>27)
	}
	return s[:n]
}

// Large grammars are coded in one context.
func TestRoundTripOfManySymbols(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	body := make([]uint32, manySymbols)
	for i := range body {
		body[i] = random.Uint32N(4)
	}
	coded := Encode([][]uint32{body})
	if coded[0] != 0 {
		t.Errorf("%d contexts are mixed", coded[0])
	}
	got, err := Decode(coded, manySymbols, 1)
	if err != nil || len(got) != 1 || !slices.Equal(got[0], body) {
		t.Errorf("%d symbols do not come back: %v", len(body), err)
	}
	if bits := 8 * float64(len(coded)) / float64(len(body)); bits > 2.1 {
		t.Errorf("%d symbols take %.2f bits each, want 2", len(body), bits)
	}
}

// The bytes are the format: a change of any context or constant that makes others makes files
// unreadable.
func TestFormatStaysAsItIs(t *testing.T) {
	for n, want := range map[int]struct {
		early  uint32 // checksum of what DecodeEarly reads
		coded  uint32 // and of what Decode does
		bytes  int    // of that
		random bool   // symbols that hardly repeat
	}{
		100:     {early: 0xda6ab2d5, coded: 0x68b391f7, bytes: 42},
		100_000: {early: 0x7ec7f168, coded: 0x6c84d409, bytes: 5951},
		200_000: {early: 0x90f9fd2b, coded: 0xab1f585a, bytes: 295884, random: true},
	} {
		s := stream(n)
		for i := range s {
			if want.random {
				s[i] = uint32(hash(uint64(i), 0)) & 1023
			}
		}
		bodies := grammarOf(s...)
		symbols := symbolsOf(bodies)
		early, coded := encode(nil, bodies, symbols, mixedEarly(symbols)), Encode(bodies)
		if a, b := crc32.ChecksumIEEE(early), crc32.ChecksumIEEE(coded); len(coded) != want.bytes ||
			a != want.early || b != want.coded {
			t.Errorf("%d symbols in %d bytes, checksums %#x and early %#x, want %+v", n, len(coded),
				b, a, want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	coded := Encode(grammarOf(stream(1000)...))
	symbols, n := binary.Uvarint(coded[1:])
	n++
	declaring := func(symbols uint64) []byte {
		return append(binary.AppendUvarint(coded[:1:1], symbols), coded[n:]...)
	}
	for name, c := range map[string]struct {
		coded []byte
		want  string
	}{
		"nothing":       {nil, "coded grammar ends too early"},
		"only a number": {coded[:n], "coded grammar ends too early"},
		"an endless one": {append(coded[:1:1], slices.Repeat([]byte{0xff}, 20)...),
			"coded grammar ends too early"},
		"a byte missing": {coded[:len(coded)-1], "coded grammar ends too early"},
		"a byte more": {append(slices.Clone(coded), 0),
			"coded grammar goes on behind its end"},
		"too many symbols": {declaring(10_001), "coded grammar declares 10001 symbols, more than " +
			"the 10000 that may be left"},
		"fewer declared": {declaring(symbols - 1),
			"coded grammar has other than the declared number of symbols"},
		"more declared": {declaring(symbols + 1),
			"coded grammar has other than the declared number of symbols"},
	} {
		if _, err := Decode(c.coded, 10_000, 10_000); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// A rule takes far more memory than a symbol, and is charged for.
func TestDecodeRefusesTooManyRules(t *testing.T) {
	bodies := grammarOf(stream(1000)...)
	rules := uint64(len(bodies))
	for name, c := range map[string]struct {
		coded  []byte
		decode func(coded []byte, mostSymbols, mostRules uint64) ([][]uint32, error)
	}{"mixed": {Encode(bodies), Decode}, "plain": {EncodePlain(bodies), DecodePlain}} {
		if _, err := c.decode(c.coded, 1000, rules); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := c.decode(c.coded, 1000, rules-1); err == nil || !strings.Contains(err.Error(),
			"rules, more than the ") && !strings.Contains(err.Error(), "more rules than the ") {
			t.Errorf("%s: one rule more than there may be: %v", name, err)
		}
	}
}

// A declared number costs no memory beyond the predictor's: symbols are believed when they come.
func TestDecodeAllocatesWhatIsThere(t *testing.T) {
	for mixed, most := range map[int]map[uint64]int64{contexts: {1 << 40: 8 << 20, 1: 128 << 10},
		0: {1 << 40: 8 << 20, 1: 128 << 10}} {
		for symbols, most := range most {
			coded := binary.AppendUvarint([]byte{byte(mixed)}, symbols)
			if n := testing.Benchmark(func(b *testing.B) {
				for b.Loop() {
					if _, err := Decode(coded, 1<<50, 1<<50); err != errShort {
						b.Fatal(err)
					}
				}
				b.ReportAllocs()
			}).AllocedBytesPerOp(); n > most {
				t.Errorf("%d contexts, %d symbols declared: %d bytes allocated, more than %d",
					mixed, symbols, n, most)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(nil))
	for _, n := range []int{0, 1, 10, 300} {
		bodies := grammarOf(stream(n)...)
		f.Add(Encode(bodies))
		f.Add(encode([]byte{0}, bodies, symbolsOf(bodies), 0))
	}
	f.Add(Encode(chain(2 * deepest)))
	f.Fuzz(func(t *testing.T, coded []byte) {
		bodies, err := Decode(coded, 10_000, 10_000)
		if err != nil {
			return
		}
		symbols := 0
		for r, body := range bodies {
			symbols += len(body)
			if r > 0 && len(body) == 0 {
				t.Fatalf("rule %d is empty", r)
			}
		}
		if symbols > 10_000 {
			t.Fatalf("%d symbols", symbols)
		}
		checkRoundTrip(t, bodies)
	})
}

func ExampleEncode() {
	r := sequitur.RuleSymbol
	coded := Encode([][]uint32{{r(1), r(1), 7}, {1, 2, 3}})
	bodies, err := Decode(coded, 1000, 1000)
	fmt.Println(bodies[0][2], bodies[1], err)
	// Output: 7 [1 2 3] <nil>
}
