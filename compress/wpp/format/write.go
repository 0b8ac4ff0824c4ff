package format

import (
	"crypto/sha256"
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"

	"wpptrace/compress/wpp"
)

// Write writes a snapshot as a .wpp file. It refuses a snapshot that Check refuses. Cost: a pass
// over the snapshot; the columns and the compressed bytes of one section at a time are held in
// memory besides it. Rules are renumbered in the order of their first use, as those of FromSequitur
// are already. A large grammar becomes a segment; segments of files are copied as they are.
func Write(w io.Writer, s *wpp.Snapshot) error {
	if err := s.Check(); err != nil {
		return err
	}
	f, err := NewWriter(w)
	if err != nil {
		return err
	}
	return f.Finish(s)
}

// A Writer writes a snapshot part by part: tables and segments, as often as needed, then what is
// left. It belongs to one goroutine. After an error it is of no use.
type Writer struct {
	frame    *frameWriter
	program  [sha256.Size]byte               // of the last one written
	symbols  int                             // that are written
	segments map[*wpp.Segment]uint32         // that are written, and their numbers
	others   map[*wpp.Section]*storedSection // that are written, without their file
}

// NewWriter writes the header of a file, and returns a writer of the rest.
func NewWriter(w io.Writer) (*Writer, error) {
	f, err := newFrameWriter(w)
	return &Writer{frame: f, segments: map[*wpp.Segment]uint32{},
		others: map[*wpp.Section]*storedSection{}}, err
}

// Segments returns how many segments are written.
func (f *Writer) Segments() int { return len(f.segments) }

// Tables writes figures, program and symbols; of the program only what differs from what was
// written before. Symbols are added to those that are written.
func (f *Writer) Tables(s *wpp.Snapshot) error {
	if err := f.frame.section(figuresSection, encodeFigures(&s.Figures)); err != nil {
		return err
	}
	program := encodeProgram(s)
	if err := f.frame.rows.program(program); err != nil {
		return fmt.Errorf("section %v: %w", programSection, err)
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(program)
	if err != nil {
		return fmt.Errorf("encode section %v: %w", programSection, err)
	}
	if sum := sha256.Sum256(raw); sum != f.program {
		f.program = sum
		if err := f.frame.section(programSection, program); err != nil {
			return err
		}
	}
	if err := f.alphabet(s.Symbols); err != nil {
		return err
	}
	return f.sections(s.Sections)
}

// Finish writes what is not written yet of a snapshot that Check accepts, and the end.
func (f *Writer) Finish(s *wpp.Snapshot) error {
	tables := *s
	tables.Symbols = s.Symbols[f.symbols:]
	if err := f.Tables(&tables); err != nil {
		return err
	}
	numbers := make([][]uint32, len(s.Threads))
	// what the grammars that are no segments may take of a file's limits
	inThreads := room{f.frame.left / 2, maxRules}
	for i := range s.Threads {
		t := &s.Threads[i]
		list := inThreads.segments(t.Grammar)
		thread := uint32(i) | unspilled
		if len(list) > 0 {
			if stored, ok := list[0].Source().(*storedSegment); ok {
				thread = stored.about.Thread
			}
		}
		for _, x := range list {
			n, err := f.add(x, thread, t.TID, t.Name)
			if err != nil {
				return err
			}
			numbers[i] = append(numbers[i], n)
		}
	}
	for i := range s.Threads {
		if numbers[i] == nil {
			if err := f.frame.spend(symbolBytes * s.Threads[i].Grammar.BodySymbols()); err != nil {
				return err
			}
		}
		if err := f.frame.section(threadSection,
			encodeThread(&s.Threads[i], numbers[i])); err != nil {
			return err
		}
	}
	return f.frame.section(endSection, nil)
}

// unspilled is added to the number of a thread that no segment was spilled of.
const unspilled = 1 << 31

// Room is what may be left for grammars that are no segments.
type room struct{ bytes, rules int }

// segments returns the segments that a grammar is written in; none: it is written with its thread,
// and takes some of what is left for such.
func (left *room) segments(g *wpp.Grammar) []*wpp.Segment {
	size := symbolBytes * g.BodySymbols()
	switch {
	case g.NumSegments() > 0:
		return g.Segments()
	case g.BodySymbols() > atOnce || size > left.bytes || g.Rules() > left.rules:
		return []*wpp.Segment{wpp.NewSegment(g)}
	}
	left.bytes, left.rules = left.bytes-size, left.rules-g.Rules()
	return nil
}

// alphabetPart is how many symbols are in a section at most, so that their columns take little
// memory.
const alphabetPart = 1 << 17

// alphabet adds symbols to those written.
func (f *Writer) alphabet(symbols []wpp.Symbol) error {
	for {
		n := min(len(symbols), alphabetPart)
		if err := f.frame.rows.symbols(n); err != nil {
			return fmt.Errorf("section %v: %w", symbolSection, err)
		}
		if err := f.frame.section(symbolSection, encodeSymbols(symbols[:n])); err != nil {
			return err
		}
		f.symbols += n
		if symbols = symbols[n:]; len(symbols) == 0 {
			return nil
		}
	}
}

// add writes a segment of a thread, unless it is written, and returns its number. Its symbols must
// be written.
func (f *Writer) add(s *wpp.Segment, thread uint32, tid int, name string) (uint32, error) {
	if n, ok := f.segments[s]; ok {
		return n, nil
	}
	n := uint32(len(f.segments))
	f.segments[s] = n
	_, err := f.code(s, thread, tid, name)
	return n, err
}

// Segment writes a grammar as a segment of a thread, whose number is the thread's alone, and
// returns it as it is in the file that is written. Its symbols must be written.
func (f *Writer) Segment(thread int, t wpp.Thread, file io.ReaderAt) (*wpp.Segment, error) {
	stored, err := f.code(wpp.NewSegment(t.Grammar), uint32(thread), t.TID, t.Name)
	if err != nil {
		return nil, err
	}
	stored.file = file
	s := stored.segment()
	f.segments[s] = uint32(len(f.segments))
	return s, nil
}

// code writes a segment of a thread, and returns it as it is written; what it does not know is the
// file.
func (f *Writer) code(s *wpp.Segment, thread uint32, tid int, name string) (*storedSegment, error) {
	about, coded, err := codedSegment(s)
	if err != nil {
		return nil, err
	}
	about.Thread, about.Tid, about.Name = thread, int64(tid), []byte(name)
	at, h, err := f.frame.segment(about, coded)
	return &storedSegment{about: about, at: at, stored: h.stored, checked: h.storedChecked,
		terminals: f.symbols}, err
}
