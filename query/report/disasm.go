package report

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"path"
	"strconv"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
	"wpptrace/query/names"
	"wpptrace/query/profile"
)

// A Code has the bytes of an image's instructions.
type Code interface {
	// Bytes returns the bytes from lo to hi (exclusive), link-time addresses; nil: it has none.
	Bytes(lo, hi uint64) []byte
}

// WriteDisasm writes the instructions of a routine, with how often each ran, in the syntax of GNU
// assemblers: COUNT ADDRESS INSTRUCTION SOURCE. An empty line stands where the next one does not
// follow. What is no instruction that the disassembler knows is written as bytes. The snapshot is
// the listing's.
func WriteDisasm(w io.Writer, s *wpp.Snapshot, l *profile.Listing, code Code) error {
	out := bufio.NewWriter(w)
	called := names.Of(s)
	r := &s.Routines[l.Routine]
	tail := fmt.Sprintf(" in %s: %s, called %s",
		names.ShortenMiddle(names.Printable(s.Images[r.Image].Base()), TableColumns/4),
		text.Count(len(l.Instructions), "instruction"), text.Count(l.Calls, "time"))
	writeFitted(out, "", called.Routine(l.Routine), tail)
	writeWindows(out, s, "counts")
	count, addr := len("COUNT"), len("ADDRESS")
	for i := range l.Instructions {
		q := &l.Instructions[i]
		count = max(count, len(strconv.FormatUint(q.Count, 10)))
		addr = max(addr, len(hex(q.Addr)))
	}
	room := TableColumns - count - addr - 6
	wide := room * 2 / 3
	row := func(n, at, instruction, source string) {
		line := fmt.Sprintf("%*s  %*s  %s  %s", count, n, addr, at, pad(instruction, wide),
			shortenPlace(source, max(room-wide, room-len(instruction))))
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	out.WriteByte('\n')
	row("COUNT", "ADDRESS", "INSTRUCTION", "SOURCE")
	d := newDisassembler(s, called, r.Image, code)
	before, end := "", uint64(0)
	for i := range l.Instructions {
		q := &l.Instructions[i]
		source := ""
		if q.Line > 0 {
			source = names.Printable(path.Base(s.Files[q.File])) + ":" + strconv.Itoa(q.Line)
		}
		if i > 0 && q.Addr != end {
			out.WriteByte('\n')
			before = ""
		}
		if end = q.Addr + uint64(q.Len); source == before {
			source = ""
		} else {
			before = source
		}
		row(strconv.FormatUint(q.Count, 10), hex(q.Addr), d.text(q, wide), source)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write instructions: %w", err)
	}
	return nil
}

// PathInstructions are the instructions that a path runs, in their order: ADDRESS INSTRUCTION. It
// takes time linear in the routines and in the path.
func PathInstructions(s *wpp.Snapshot, sym uint32, code Code) (list []string) {
	d := newDisassembler(s, names.Of(s), s.Routines[s.Symbols[sym].Routine].Image, code)
	for piece := range s.Pieces(sym) {
		at := piece.Addr()
		for k := piece.From; k < piece.To; k++ {
			q := profile.Instruction{Addr: at, Len: int(piece.Block.Lengths[k])}
			list = append(list, hex(at)+"  "+d.text(&q, TableColumns))
			at += uint64(q.Len)
		}
	}
	return list
}

// A disassembler prints instructions of an image.
type disassembler struct {
	code    Code
	entries map[uint64]string // names of routines
}

func newDisassembler(s *wpp.Snapshot, called *names.Names, image int, code Code) *disassembler {
	d := &disassembler{code, map[uint64]string{}}
	for i := range s.Routines {
		if s.Routines[i].Image == image {
			d.entries[s.Routines[i].Entry] = called.Routine(i)
		}
	}
	return d
}

// text is an instruction, with the name of the routine that it calls or jumps to, up to width
// columns wide; its bytes, where it is none that is known.
func (d *disassembler) text(q *profile.Instruction, width int) string {
	code := d.code.Bytes(q.Addr, q.Addr+uint64(q.Len))
	in, err := x86asm.Decode(code, 64)
	if err != nil || in.Len != q.Len {
		return strings.TrimSpace(fmt.Sprintf(".byte % x", code))
	}
	line := strings.TrimSpace(x86asm.GNUSyntax(in, q.Addr, nil))
	for _, a := range in.Args {
		if rel, ok := a.(x86asm.Rel); ok {
			if name := d.entries[q.Addr+uint64(q.Len)+uint64(int64(rel))]; name != "" {
				line += " <" + names.Shorten(name, width-len(line)-len(" <>")) + ">"
			}
		}
	}
	return line
}

// DisasmJSON is what hot --disasm --json prints. Of a recording in windows, counts are those of the
// windows.
type DisasmJSON struct {
	SchemaVersion int           `json:"schema_version"`
	Name          string        `json:"name"`     // as it was asked for
	Windows       uint64        `json:"windows"`  // that were traced; 0: all the time was
	Routines      []ListingJSON `json:"routines"` // of the name, that ran
	Inlined
}

// ListingJSON is the instructions of a routine.
type ListingJSON struct {
	Routine string `json:"routine"` // a name that no other routine of the snapshot has
	Image   string `json:"image"`   // base name of the file that the code is in
	Calls   uint64 `json:"calls"`   // activations whose beginning was recorded
	// by rising address
	Instructions []InstructionJSON `json:"instructions"`
}

// InstructionJSON is an instruction, with how often it ran.
type InstructionJSON struct {
	Address string `json:"address"` // link-time, in hex
	Count   uint64 `json:"count"`   // how often it ran
	Leads   bool   `json:"leads"`   // it is the first of a block
	Bytes   string `json:"bytes"`   // in hex
	// in the syntax of GNU assemblers; or its bytes, where it is none that is known
	Text string `json:"text"`
	File string `json:"file,omitempty"` // of its source; absent: not known
	Line int    `json:"line,omitempty"` // of its source; absent: not known
	// the calls that it is inlined for, the innermost first
	Inlined []InlinedCall `json:"inlined,omitempty"`
}

// WriteDisasmJSON writes the listings of a name, of which codes has the code at the same places, as
// one JSON object. The snapshot is the listings'.
func WriteDisasmJSON(w io.Writer, s *wpp.Snapshot, name string, list []profile.Listing,
	codes []Code) error {
	called := names.Of(s)
	object := DisasmJSON{SchemaVersion: SchemaVersion, Name: name, Windows: s.Figures.Windows,
		Inlined: inlinedOf(s, name)}
	for i := range list {
		l := &list[i]
		d := newDisassembler(s, called, s.Routines[l.Routine].Image, codes[i])
		row := ListingJSON{called.Routine(l.Routine), s.Images[s.Routines[l.Routine].Image].Base(),
			l.Calls, []InstructionJSON{}}
		for k := range l.Instructions {
			q := &l.Instructions[k]
			x := InstructionJSON{Address: hex(q.Addr), Count: q.Count, Leads: q.Leads,
				Bytes: fmt.Sprintf("%x", codes[i].Bytes(q.Addr, q.Addr+uint64(q.Len))),
				Text:  d.text(q, math.MaxInt32), Line: q.Line, Inlined: callsOf(s, q.Call)}
			if q.Line > 0 {
				x.File = s.Files[q.File]
			}
			row.Instructions = append(row.Instructions, x)
		}
		object.Routines = append(object.Routines, row)
	}
	return WriteJSON(w, object, "instructions")
}
