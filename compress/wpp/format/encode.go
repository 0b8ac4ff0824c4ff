package wpp

import (
	"crypto/sha256"
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"

	"wpptrace/compress/coding"
)

// Write writes a snapshot as a .wpp file. It refuses a snapshot that Check refuses. Cost: a pass
// over the snapshot; the columns and the compressed bytes of one section at a time are held in
// memory besides it. Rules are renumbered in the order of their first use, as those of FromSequitur
// are already. A large grammar becomes a segment; segments of files are copied as they are.
func Write(w io.Writer, s *Snapshot) error {
	if err := s.Check(); err != nil {
		return err
	}
	f, err := newFileWriter(w)
	if err != nil {
		return err
	}
	return f.finish(s)
}

// A fileWriter writes the sections of a snapshot.
type fileWriter struct {
	*frameWriter
	program  [sha256.Size]byte   // of the last one written
	symbols  int                 // that are written
	segments map[*Segment]uint32 // that are written, and their numbers
}

func newFileWriter(w io.Writer) (*fileWriter, error) {
	f, err := newFrameWriter(w)
	return &fileWriter{frameWriter: f, segments: map[*Segment]uint32{}}, err
}

// tables writes figures, program and symbols; of the program only what differs from what was
// written before.
func (f *fileWriter) tables(s *Snapshot) error {
	if err := f.section(figuresSection, encodeFigures(&s.Figures)); err != nil {
		return err
	}
	program := encodeProgram(s)
	if err := f.rows.program(program); err != nil {
		return fmt.Errorf("section %v: %w", programSection, err)
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(program)
	if err != nil {
		return fmt.Errorf("encode section %v: %w", programSection, err)
	}
	if sum := sha256.Sum256(raw); sum != f.program {
		f.program = sum
		if err := f.section(programSection, program); err != nil {
			return err
		}
	}
	return f.alphabet(s.Symbols)
}

// finish writes what is not written yet.
func (f *fileWriter) finish(s *Snapshot) error {
	tables := *s
	tables.Symbols = s.Symbols[f.symbols:]
	if err := f.tables(&tables); err != nil {
		return err
	}
	numbers := make([][]uint32, len(s.Threads))
	inThreads := room{f.left / 2, maxRules} // what the grammars that are no segments may take of a file's limits
	for i := range s.Threads {
		t := &s.Threads[i]
		list := t.Grammar.written(&inThreads)
		thread := uint32(i) | unspilled
		if len(list) > 0 && list[0].grammar == nil {
			thread = list[0].about.Thread
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
			if err := f.spend(symbolBytes * s.Threads[i].Grammar.BodySymbols()); err != nil {
				return err
			}
		}
		if err := f.section(threadSection, encodeThread(&s.Threads[i], numbers[i])); err != nil {
			return err
		}
	}
	return f.section(endSection, nil)
}

// unspilled is added to the number of a thread that no segment was spilled of.
const unspilled = 1 << 31

// Room is what may be left for grammars that are no segments.
type room struct{ bytes, rules int }

// written returns the segments that a grammar is written in; none: it is written with its thread,
// and takes some of what is left for such.
func (g *Grammar) written(left *room) []*Segment {
	size := symbolBytes * g.BodySymbols()
	switch {
	case g.segments != nil:
		return g.segments.list
	case g.BodySymbols() > atOnce || size > left.bytes || g.Rules() > left.rules:
		return []*Segment{NewSegment(g)}
	}
	left.bytes, left.rules = left.bytes-size, left.rules-g.Rules()
	return nil
}

// alphabetPart is how many symbols are in a section at most, so that their columns take little
// memory.
const alphabetPart = 1 << 17

// alphabet adds symbols to those written.
func (f *fileWriter) alphabet(symbols []Symbol) error {
	for {
		n := min(len(symbols), alphabetPart)
		if err := f.rows.symbols(n); err != nil {
			return fmt.Errorf("section %v: %w", symbolSection, err)
		}
		if err := f.section(symbolSection, encodeSymbols(symbols[:n])); err != nil {
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
func (f *fileWriter) add(s *Segment, thread uint32, tid int, name string) (uint32, error) {
	if n, ok := f.segments[s]; ok {
		return n, nil
	}
	n := uint32(len(f.segments))
	f.segments[s] = n
	_, err := f.code(s, thread, tid, name)
	return n, err
}

// code writes a segment of a thread, and returns it as it is written; what it does not know is the
// file.
func (f *fileWriter) code(s *Segment, thread uint32, tid int, name string) (*Segment, error) {
	about, coded, err := s.coded()
	if err != nil {
		return nil, err
	}
	about = proto.CloneOf(about)
	about.Thread, about.Tid, about.Name = thread, int64(tid), []byte(name)
	at, h, err := f.segment(about, coded)
	return &Segment{about: about, at: at, stored: h.stored, checked: h.storedChecked, terminals: f.symbols}, err
}

func encodeFigures(f *Figures) *FiguresSection {
	m := &FiguresSection{
		Tool:             []byte(f.Tool),
		Pid:              int64(f.PID),
		Kernel:           []byte(f.Kernel),
		StartUnixNs:      f.Start.UnixNano(),
		DurationNs:       int64(f.Duration),
		Ended:            []byte(f.Ended),
		Hits:             f.Hits,
		HitsSingleStep:   f.HitsSingleStep,
		HitNs:            uint64(f.HitTime),
		ReportNs:         uint64(f.ReportTime),
		CpuNs:            uint64(f.CPUTime),
		Words:            f.Words,
		Lost:             f.Lost,
		Gaps:             f.Gaps,
		Probes:           f.Probes,
		ProbesSingleStep: f.ProbesSingleStep,
		SlowDown:         f.SlowDown,
		Anomalies:        f.Anomalies,
		Windows:          f.Windows,
		Sampled:          f.Sampled,
		SampledMost:      f.SampledMost,
		SlowDownVague:    f.SlowDownVague,
		SlowDownMost:     f.SlowDownMost,
		SlowDownLikely:   f.SlowDownLikely,
		WaitStatus:       f.WaitStatus,
	}
	if f.Start.IsZero() { // that year has no Unix nanoseconds
		m.StartUnixNs = 0
	}
	for _, arg := range f.Command {
		m.Command = append(m.Command, []byte(arg))
	}
	return m
}

// A textTable gives each distinct text a number.
type textTable struct {
	numbers map[string]uint32
	m       *ProgramSection
}

func (t *textTable) number(text string) uint32 {
	n, ok := t.numbers[text]
	if !ok {
		n = uint32(len(t.numbers))
		t.numbers[text] = n
		t.m.Text = append(t.m.Text, text...)
		t.m.TextLength = append(t.m.TextLength, uint32(len(text)))
	}
	return n
}

func encodeProgram(s *Snapshot) *ProgramSection {
	m := &ProgramSection{}
	texts := textTable{map[string]uint32{}, m}
	for i := range s.Images {
		m.ImageName = append(m.ImageName, texts.number(s.Images[i].Name))
		m.ImageBuildId = append(m.ImageBuildId, texts.number(string(s.Images[i].BuildID)))
	}
	for _, file := range s.Files {
		m.File = append(m.File, texts.number(file))
	}
	var entry, rangeEnd uint64
	var blocks blockEncoder
	for i := range s.Routines {
		r := &s.Routines[i]
		m.RoutineName = append(m.RoutineName, texts.number(r.Name))
		m.RoutineSymbol = append(m.RoutineSymbol, texts.number(r.Symbol))
		m.RoutineImage = append(m.RoutineImage, uint32(r.Image))
		m.RoutineEntry = append(m.RoutineEntry, int64(r.Entry-entry))
		entry = r.Entry
		m.RoutineLeftOut = append(m.RoutineLeftOut, texts.number(r.LeftOut))
		m.RoutinePaths = append(m.RoutinePaths, r.Paths)
		m.RoutineRanges = append(m.RoutineRanges, uint32(len(r.Ranges)))
		for _, rg := range r.Ranges {
			m.RangeLo = append(m.RangeLo, int64(rg.Lo-rangeEnd))
			m.RangeSize = append(m.RangeSize, rg.Hi-rg.Lo)
			rangeEnd = rg.Hi
		}
		m.RoutineBlocks = append(m.RoutineBlocks, uint32(len(r.Blocks)))
		for j := range r.Blocks {
			blocks.encode(m, &r.Blocks[j])
		}
	}
	encodeInlined(m, &texts, s)
	return m
}

func encodeInlined(m *ProgramSection, texts *textTable, s *Snapshot) {
	for i, c := range s.Calls {
		in := 0
		if c.In > 0 {
			in = i + 1 - c.In
		}
		m.CallName = append(m.CallName, texts.number(c.Name))
		m.CallFile = append(m.CallFile, fileOf(c.File, c.Line))
		m.CallLine = append(m.CallLine, uint32(c.Line))
		m.CallIn = append(m.CallIn, uint32(in))
	}
	call, line := 0, 0
	for i := range s.Routines {
		for j := range s.Routines[i].Blocks {
			spans := s.Routines[i].Blocks[j].Spans
			m.BlockSpans = append(m.BlockSpans, uint32(len(spans)))
			for _, x := range spans {
				m.SpanInstructions = append(m.SpanInstructions, uint32(x.To-x.From))
				m.SpanCall = append(m.SpanCall, int64(x.Call-call))
				m.SpanFile = append(m.SpanFile, fileOf(x.File, x.Line))
				m.SpanLine = append(m.SpanLine, int64(x.Line-line))
				m.SpanLast = append(m.SpanLast, uint64(x.Last-x.Line))
				call, line = x.Call, x.Last
			}
		}
	}
	if len(m.SpanInstructions) == 0 {
		m.BlockSpans = nil
	}
}

// fileOf is the number of a file, 0 where the line is not known.
func fileOf(file, line int) uint32 {
	if line == 0 {
		return 0
	}
	return uint32(file)
}

// A blockEncoder remembers what the next block is encoded against.
type blockEncoder struct {
	end  uint64
	line int
}

func (e *blockEncoder) encode(m *ProgramSection, b *Block) {
	m.BlockAddr = append(m.BlockAddr, int64(b.Addr-e.end))
	e.end = b.Addr
	for _, n := range b.Lengths {
		e.end += uint64(n)
	}
	m.BlockInstructions = append(m.BlockInstructions, uint32(len(b.Lengths)))
	m.InstructionLength = append(m.InstructionLength, b.Lengths...)
	m.BlockFile = append(m.BlockFile, fileOf(b.File, b.Line))
	m.BlockLine = append(m.BlockLine, int64(b.Line-e.line))
	m.BlockLast = append(m.BlockLast, uint64(b.Last-b.Line))
	e.line = b.Last
}

func encodeSymbols(symbols []Symbol) *SymbolSection {
	m := &SymbolSection{}
	routine := 0
	for i := range symbols {
		s := &symbols[i]
		if s.IsMark {
			s = &Symbol{IsMark: true, Mark: s.Mark, N: s.N, Routine: routine}
			m.Kind = append(m.Kind, 1+uint32(s.Mark))
			m.Number = append(m.Number, s.N)
		} else {
			m.Kind = append(m.Kind, 0)
			m.Number = append(m.Number, s.Path)
		}
		m.Routine = append(m.Routine, int64(s.Routine-routine))
		routine = s.Routine
		m.Start = append(m.Start, uint32(s.Start))
		m.End = append(m.End, uint32(s.End))
		m.Skip = append(m.Skip, uint32(s.Skip))
		m.Cut = append(m.Cut, uint32(s.Cut))
		m.Blocks = append(m.Blocks, uint32(len(s.Blocks)))
		block := 0
		for _, b := range s.Blocks {
			m.Block = append(m.Block, int64(b-block))
			block = b
		}
	}
	return m
}

// encodeThread makes the message of a thread, whose grammar is in the segments with these numbers,
// if there are any.
func encodeThread(t *Thread, segments []uint32) *ThreadSection {
	m := &ThreadSection{Tid: int64(t.TID), Name: []byte(t.Name), Lost: t.Lost, Gaps: t.Gaps, Ended: t.Ended, Segment: segments}
	if segments == nil {
		m.Grammar = coding.Encode(t.Grammar.bodies)
	}
	return m
}
