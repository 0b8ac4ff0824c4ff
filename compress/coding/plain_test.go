package coding

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/sequitur"
)

func grammarOfStream(stream []uint32) [][]uint32 {
	g := sequitur.New()
	g.AppendAll(stream)
	return g.Rules()
}

func TestPlainRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stream := rapid.SliceOfN(rapid.Uint32Range(0,
			rapid.SampledFrom([]uint32{2, 300, sequitur.MaxTerminal}).Draw(t, "most")), 0,
			200).Draw(t, "stream")
		want := grammarOfStream(stream)
		got, err := DecodePlain(EncodePlain(want), uint64(len(stream)), uint64(len(want)))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(want, got, slices.Equal) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

// Of what does not repeat itself, next to nothing is lost against the entropy, over several blocks
// too.
func TestPlainSize(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	stream := make([]uint32, 2*plainBlock+17)
	for i := range stream {
		stream[i] = random.Uint32N(1 << 16)
	}
	bodies := [][]uint32{stream}
	coded := EncodePlain(bodies)
	if most := 2*len(stream) + len(stream)/50; len(coded) > most {
		t.Errorf("%d symbols of 16 bits take %d bytes, more than %d", len(stream), len(coded), most)
	}
	got, err := DecodePlain(coded, uint64(len(stream)), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, bodies) {
		t.Error("not what was written")
	}
}

func TestDecodePlainRefuses(t *testing.T) {
	coded := EncodePlain([][]uint32{{1, 2, sequitur.RuleSymbol(1), sequitur.RuleSymbol(1)}, {3, 4}})
	if _, err := DecodePlain(coded, 5, 5); err == nil || !strings.Contains(err.Error(),
		"declares 6 symbols, more than the 5") {
		t.Errorf("too many symbols: %v", err)
	}
	for n := range coded {
		if _, err := DecodePlain(coded[:n], 6, 6); err == nil {
			t.Errorf("the first %d of %d bytes are accepted", n, len(coded))
		}
	}
	if _, err := DecodePlain(append(coded, 0), 6, 6); err != errLong {
		t.Errorf("one byte more: %v", err)
	}
}

func FuzzDecodePlain(f *testing.F) {
	f.Add(EncodePlain([][]uint32{{1, 2, sequitur.RuleSymbol(1), sequitur.RuleSymbol(1)}, {3, 4}}))
	f.Add(EncodePlain([][]uint32{{}}))
	f.Fuzz(func(t *testing.T, coded []byte) {
		const most = 1 << 20
		bodies, err := DecodePlain(coded, most, most)
		symbols := 0
		for _, body := range bodies {
			symbols += len(body)
		}
		if err == nil && (len(bodies) == 0 || symbols > most) {
			t.Errorf("%d rules, %d symbols", len(bodies), symbols)
		}
	})
}

func BenchmarkPlain(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	stream := make([]uint32, 1<<22)
	for i := range stream {
		stream[i] = random.Uint32N(1 << 16)
	}
	coded := EncodePlain([][]uint32{stream})
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			EncodePlain([][]uint32{stream})
		}
		b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N*len(stream)), "ns/symbol")
		b.ReportMetric(float64(len(coded))/float64(len(stream)), "bytes/symbol")
	})
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			if _, err := DecodePlain(coded, 1<<22, 1<<22); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N*len(stream)), "ns/symbol")
	})
}

func ExampleEncodePlain() {
	coded := EncodePlain([][]uint32{{1, sequitur.RuleSymbol(1), 2, sequitur.RuleSymbol(1)}, {3, 4}})
	bodies, err := DecodePlain(coded, 100, 100)
	fmt.Println(len(bodies), bodies[1], err)
	// Output: 2 [3 4] <nil>
}
