package report

import (
	"io"
	"slices"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/query/profile"
	"wpptrace/query/querytest"
)

// textBytes are the bytes of an image from 0x900 on.
type textBytes []byte

func (b textBytes) Bytes(lo, hi uint64) []byte {
	if lo < 0x900 || hi-0x900 > uint64(len(b)) {
		return nil
	}
	return b[lo-0x900 : hi-0x900]
}

// eachLine is a snapshot in which the lines of all instructions are known.
func eachLine() *wpp.Snapshot {
	s := querytest.InlinedCompressor()
	s.EachLine = true
	for i := range s.Routines {
		for b := range s.Routines[i].Blocks {
			block := &s.Routines[i].Blocks[b]
			if block.Spans == nil && block.Last > block.Line {
				block.Spans = []wpp.Span{{To: 1, File: block.File, Line: block.Line,
					Last: block.Line}, {From: 1, To: len(block.Lengths), File: block.File,
					Line: block.Last, Last: block.Last}}
			}
			for k := range block.Spans {
				block.Spans[k].Last = block.Spans[k].Line
			}
		}
	}
	return s
}

func TestLinesGolden(t *testing.T) {
	s := eachLine()
	r, err := profile.Lines(s, "main.c")
	if err != nil {
		t.Fatal(err)
	}
	source := Source{"main.c", slices.Repeat([]string{"int f(int x)", "{", "\tfor \x1b[2J (;;)",
		"\t\tx\t= ü;\t// ä", ""}, 3)}
	checkGolden(t, "lines.txt", func(w io.Writer) error { return WriteLines(w, s, r, source) })
	checkGolden(t, "lines.json", func(w io.Writer) error { return WriteLinesJSON(w, s, r, source) })
	s = inWindows(s)
	checkGolden(t, "lines-bare.txt",
		func(w io.Writer) error { return WriteLines(w, s, r, Source{}) })
}

func TestDisasmGolden(t *testing.T) {
	s := eachLine()
	text := make(textBytes, 0x800)
	main := text[0x1000-0x900:]
	copy(main, "\x55"+"\x48\x89\xe5"+"\xe8\xf7\x0f\x00\x00"+ // push, mov, call longest_match
		"\x74\x02"+"\x66\x90"+ // je, nop of two bytes
		"\x06\x06\x06\x06"+"\xc3") // none in 64-bit code, ret
	s.Routines[0].Blocks[2].Addr += 0x10
	copy(text[0x101d-0x900:], "\x06\x06\x06\x06\xc3")
	list, err := profile.Listings(s, "main")
	if err != nil {
		t.Fatal(err)
	}
	checkGolden(t, "disasm.txt",
		func(w io.Writer) error { return WriteDisasm(w, s, &list[0], text) })
	checkGolden(t, "disasm.json", func(w io.Writer) error {
		return WriteDisasmJSON(w, s, "main", list, []Code{text})
	})
	if list, err = profile.Listings(inWindows(s), "longest_match..."); err != nil {
		t.Fatal(err)
	}
	checkGolden(t, "disasm-none.txt",
		func(w io.Writer) error { return WriteDisasm(w, s, &list[0], textBytes(nil)) })
}
