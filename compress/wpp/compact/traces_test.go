package compact

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wpptrace/compress/coding"
	"wpptrace/compress/sequitur"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/wpptest"
)

// benchmarkGrammars runs a benchmark on the grammar of each of the traces that WPP_TRACES lists
// with colons between: files of symbols, 4 bytes each, little-endian. Where there are none, it
// makes do with a stream of its own.
func benchmarkGrammars(b *testing.B, bench func(b *testing.B, g *wpp.Grammar)) {
	files := filepath.SplitList(os.Getenv("WPP_TRACES"))
	if len(files) == 0 {
		b.Run("loops",
			func(b *testing.B) { bench(b, wpptest.GrammarOf(wpptest.Loops(100_000)...)) })
	}
	for _, path := range files {
		b.Run(strings.TrimSuffix(filepath.Base(path), ".u32"),
			func(b *testing.B) { bench(b, grammarOfTrace(b, path)) })
	}
}

func grammarOfTrace(b *testing.B, path string) *wpp.Grammar {
	raw, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	g := sequitur.NewFolding() // as wpptrace does
	for ; len(raw) >= 4; raw = raw[4:] {
		g.Append(binary.LittleEndian.Uint32(raw))
	}
	return wpp.FromSequitur(g)
}

func reportSymbols(b *testing.B, symbols uint64) {
	b.ReportMetric(float64(b.N)*float64(symbols)/b.Elapsed().Seconds()/1e6, "Msymbols/s")
}

func BenchmarkEncodeGrammar(b *testing.B) {
	benchmarkGrammars(b, func(b *testing.B, g *wpp.Grammar) {
		size := 0
		for b.Loop() {
			size = len(coding.Encode(g.Bodies()))
		}
		b.ReportMetric(float64(size), "bytes")
		reportSymbols(b, uint64(g.BodySymbols()))
	})
}

func BenchmarkDecodeGrammar(b *testing.B) {
	benchmarkGrammars(b, func(b *testing.B, g *wpp.Grammar) {
		coded := coding.Encode(g.Bodies())
		for b.Loop() {
			if _, err := coding.Decode(coded, 1<<40, 1<<40); err != nil {
				b.Fatal(err)
			}
		}
		reportSymbols(b, uint64(g.BodySymbols()))
	})
}

func BenchmarkCompact(b *testing.B) {
	benchmarkGrammars(b, func(b *testing.B, g *wpp.Grammar) {
		var c *wpp.Grammar
		for b.Loop() {
			var err error
			if c, err = Grammar(g); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(codedSize(c)), "bytes")
		reportSymbols(b, g.Length(0))
	})
}
