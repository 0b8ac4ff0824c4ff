package format

import (
	"debug/elf"
	"errors"
	"fmt"
	"math"
	"time"

	"wpptrace/compress/coding"
	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
)

func decodeFigures(m *FiguresSection) wpp.Figures {
	f := wpp.Figures{
		Tool:             string(m.Tool),
		PID:              int(m.Pid),
		Kernel:           string(m.Kernel),
		Duration:         time.Duration(m.DurationNs),
		Ended:            string(m.Ended),
		Hits:             m.Hits,
		HitsSingleStep:   m.HitsSingleStep,
		HitTime:          time.Duration(m.HitNs),
		ReportTime:       time.Duration(m.ReportNs),
		CPUTime:          time.Duration(m.CpuNs),
		Events:           m.Events,
		Lost:             m.Lost,
		Gaps:             m.Gaps,
		Probes:           m.Probes,
		ProbesSingleStep: m.ProbesSingleStep,
		SlowDown:         m.SlowDown,
		Anomalies:        m.Anomalies,
		Windows:          m.Windows,
		Sampled:          m.Sampled,
		SampledMost:      m.SampledMost,
		SampledLeast:     m.SampledLeast,
		HeldUp:           time.Duration(m.HeldUpNs),
		SlowDownVague:    m.SlowDownVague,
		SlowDownMost:     m.SlowDownMost,
		SlowDownLikely:   m.SlowDownLikely,
		WaitStatus:       m.WaitStatus,
	}
	if m.StartUnixNs != 0 {
		f.Start = time.Unix(0, m.StartUnixNs).UTC()
	}
	for _, arg := range m.Command {
		f.Command = append(f.Command, string(arg))
	}
	return f
}

// errColumns says that the columns of a table do not have the same number of rows, or do not hold
// what another column counts.
var errColumns = errors.New("columns disagree")

// cutFront takes the first n elements off a column.
func cutFront[T any](column *[]T, n uint32) ([]T, error) {
	if uint64(n) > uint64(len(*column)) {
		return nil, errColumns
	}
	front := (*column)[:n:n]
	*column = (*column)[n:]
	return front, nil
}

func decodeTexts(m *ProgramSection) ([]string, error) {
	all := string(m.Text)
	texts := make([]string, len(m.TextLength))
	for i, n := range m.TextLength {
		if uint64(n) > uint64(len(all)) {
			return nil, errColumns
		}
		texts[i], all = all[:n], all[n:]
	}
	return texts, nil
}

// A programDecoder makes rows of the columns of a program section, and takes the columns of ranges
// and blocks off from the front.
type programDecoder struct {
	m     *ProgramSection
	texts []string

	entry, rangeEnd, blockEnd uint64
	line                      int64
	spanCall, spanLine        int64
}

// machineOf returns what machine a program is for, which files have said from version 6 on.
func machineOf(m *ProgramSection) (elf.Machine, error) {
	switch {
	case m.Machine == nil:
		return elf.EM_X86_64, nil
	case *m.Machine > math.MaxUint16:
		return 0, fmt.Errorf("machine %d", *m.Machine)
	}
	return elf.Machine(*m.Machine), nil
}

// decodeProgram sets the tables of the program.
func decodeProgram(s *wpp.Snapshot, m *ProgramSection) error {
	texts, err := decodeTexts(m)
	if err != nil {
		return err
	}
	d := &programDecoder{m: m, texts: texts}
	if !d.sameLengths() {
		return errColumns
	}
	s.EachLine = m.EachLine
	if s.Machine, err = machineOf(m); err != nil {
		return err
	}
	if s.Images, err = d.images(); err != nil {
		return err
	}
	if s.Files, err = d.files(); err != nil {
		return err
	}
	if s.Calls, err = d.calls(); err != nil {
		return err
	}
	s.Routines = make([]wpp.Routine, len(m.RoutineName))
	for i := range s.Routines {
		if err := d.routine(i, &s.Routines[i]); err != nil {
			return fmt.Errorf("routine %d: %w", i, err)
		}
	}
	if len(m.RangeLo) > 0 || len(m.BlockAddr) > 0 || len(m.InstructionLength) > 0 ||
		len(m.SpanCall) > 0 {
		return errColumns
	}
	return nil
}

func (d *programDecoder) sameLengths() bool {
	m := d.m
	routines, blocks := len(m.RoutineName), len(m.BlockAddr)
	calls, spans := len(m.CallName), len(m.SpanInstructions)
	return len(m.ImageName) == len(m.ImageBuildId) &&
		routines == len(m.RoutineSymbol) && routines == len(m.RoutineImage) &&
		routines == len(m.RoutineEntry) &&
		routines == len(m.RoutineLeftOut) && routines == len(m.RoutinePaths) &&
		routines == len(m.RoutineRanges) && routines == len(m.RoutineBlocks) &&
		len(m.RangeLo) == len(m.RangeSize) &&
		blocks == len(m.BlockInstructions) && blocks == len(m.BlockFile) &&
		blocks == len(m.BlockLine) && blocks == len(m.BlockLast) &&
		calls == len(m.CallFile) && calls == len(m.CallLine) && calls == len(m.CallIn) &&
		(len(m.BlockSpans) == 0 || len(m.BlockSpans) == blocks) &&
		spans == len(m.SpanCall) && spans == len(m.SpanFile) && spans == len(m.SpanLine) &&
		spans == len(m.SpanLast)
}

// text sets texts by their numbers.
func (d *programDecoder) text(to *string, number uint32) error {
	if uint64(number) >= uint64(len(d.texts)) {
		return fmt.Errorf("text %d of %d", number, len(d.texts))
	}
	*to = d.texts[number]
	return nil
}

func (d *programDecoder) images() ([]wpp.Image, error) {
	images := make([]wpp.Image, len(d.m.ImageName))
	for i := range images {
		var id string
		if err := errors.Join(d.text(&images[i].Name, d.m.ImageName[i]),
			d.text(&id, d.m.ImageBuildId[i])); err != nil {
			return nil, fmt.Errorf("image %d: %w", i, err)
		}
		if id != "" {
			images[i].BuildID = []byte(id)
		}
	}
	return images, nil
}

func (d *programDecoder) files() ([]string, error) {
	files := make([]string, len(d.m.File))
	for i := range files {
		if err := d.text(&files[i], d.m.File[i]); err != nil {
			return nil, fmt.Errorf("file %d: %w", i, err)
		}
	}
	return files, nil
}

func (d *programDecoder) calls() ([]wpp.Call, error) {
	m := d.m
	calls := make([]wpp.Call, len(m.CallName))
	for i := range calls {
		c := &calls[i]
		if err := d.text(&c.Name, m.CallName[i]); err != nil {
			return nil, fmt.Errorf("call %d: %w", i+1, err)
		}
		c.File, c.Line = int(m.CallFile[i]), int(m.CallLine[i])
		if m.CallIn[i] > 0 {
			c.In = i + 1 - int(m.CallIn[i])
		}
	}
	return calls, nil
}

func (d *programDecoder) routine(i int, r *wpp.Routine) error {
	m := d.m
	if err := d.text(&r.Name, m.RoutineName[i]); err != nil {
		return err
	}
	if err := d.text(&r.Symbol, m.RoutineSymbol[i]); err != nil {
		return err
	}
	if err := d.text(&r.LeftOut, m.RoutineLeftOut[i]); err != nil {
		return err
	}
	r.Image = int(m.RoutineImage[i])
	d.entry += uint64(m.RoutineEntry[i])
	r.Entry = d.entry
	r.Paths = m.RoutinePaths[i]
	if err := d.ranges(m.RoutineRanges[i], r); err != nil {
		return err
	}
	return d.blocks(m.RoutineBlocks[i], r)
}

func (d *programDecoder) ranges(n uint32, r *wpp.Routine) error {
	lo, err := cutFront(&d.m.RangeLo, n)
	if err != nil || n == 0 {
		return err
	}
	size, err := cutFront(&d.m.RangeSize, n)
	if err != nil {
		return err
	}
	r.Ranges = make([]wpp.Range, n)
	for i := range r.Ranges {
		rg := wpp.Range{Lo: d.rangeEnd + uint64(lo[i])}
		rg.Hi = rg.Lo + size[i]
		d.rangeEnd = rg.Hi
		r.Ranges[i] = rg
	}
	return nil
}

func (d *programDecoder) blocks(n uint32, r *wpp.Routine) error {
	if uint64(n) > uint64(len(d.m.BlockAddr)) {
		return errColumns
	}
	if n > 0 {
		r.Blocks = make([]wpp.Block, n)
	}
	for i := range r.Blocks {
		if err := d.block(&r.Blocks[i]); err != nil {
			return err
		}
	}
	return nil
}

// block makes the block at the front of the columns.
func (d *programDecoder) block(b *wpp.Block) (err error) {
	m := d.m
	if b.Lengths, err = cutFront(&m.InstructionLength, m.BlockInstructions[0]); err != nil {
		return err
	}
	b.Addr = d.blockEnd + uint64(m.BlockAddr[0])
	d.blockEnd = b.Addr
	for _, n := range b.Lengths {
		d.blockEnd += uint64(n)
	}
	b.File = int(m.BlockFile[0])
	line := d.line + m.BlockLine[0]
	d.line = line + int64(m.BlockLast[0])
	b.Line, b.Last = int(line), int(d.line)
	m.BlockAddr, m.BlockInstructions = m.BlockAddr[1:], m.BlockInstructions[1:]
	m.BlockFile, m.BlockLine, m.BlockLast = m.BlockFile[1:], m.BlockLine[1:], m.BlockLast[1:]
	if len(m.BlockSpans) == 0 {
		return nil
	}
	n := m.BlockSpans[0]
	m.BlockSpans = m.BlockSpans[1:]
	return d.spans(n, b)
}

// spans makes the spans at the front of the columns.
func (d *programDecoder) spans(n uint32, b *wpp.Block) error {
	m := d.m
	instructions, err := cutFront(&m.SpanInstructions, n)
	if err != nil || n == 0 {
		return err
	}
	b.Spans = make([]wpp.Span, n)
	at := 0
	for i, count := range instructions {
		d.spanCall += m.SpanCall[i]
		line := d.spanLine + m.SpanLine[i]
		d.spanLine = line + int64(m.SpanLast[i])
		b.Spans[i] = wpp.Span{From: at, To: at + int(count), Call: int(d.spanCall),
			File: int(m.SpanFile[i]), Line: int(line), Last: int(d.spanLine)}
		at += int(count)
	}
	m.SpanCall, m.SpanFile, m.SpanLine, m.SpanLast = m.SpanCall[n:], m.SpanFile[n:], m.SpanLine[n:],
		m.SpanLast[n:]
	return nil
}

func decodeSymbols(m *SymbolSection) ([]wpp.Symbol, error) {
	n := len(m.Kind)
	if n != len(m.Routine) || n != len(m.Number) || n != len(m.Start) || n != len(m.End) ||
		n != len(m.Blocks) || n != len(m.Skip) || n != len(m.Cut) {
		return nil, errColumns
	}
	symbols := make([]wpp.Symbol, n)
	routine := int64(0)
	arena := make([]int, 0, len(m.Block))
	for i := range symbols {
		blocks, err := cutFront(&m.Block, m.Blocks[i])
		if err != nil {
			return nil, err
		}
		routine += m.Routine[i]
		if m.Kind[i] > 0 {
			if symbols[i], err = decodeMark(m.Kind[i]-1, m.Number[i]); err != nil {
				return nil, fmt.Errorf("symbol %d: %w", i, err)
			}
			continue
		}
		if m.Start[i] > math.MaxUint8 || m.End[i] > math.MaxUint8 {
			return nil, fmt.Errorf("symbol %d: path from unknown start %d to end %d", i, m.Start[i],
				m.End[i])
		}
		symbols[i] = wpp.Symbol{
			Routine: int(routine),
			Path:    m.Number[i],
			Start:   ops.Start(m.Start[i]),
			End:     ops.End(m.End[i]),
			Skip:    int(m.Skip[i]),
			Cut:     int(m.Cut[i]),
		}
		block := int64(0)
		for _, delta := range blocks {
			block += delta
			arena = append(arena, int(block))
		}
		if k := len(arena); len(blocks) > 0 {
			symbols[i].Blocks = arena[k-len(blocks) : k : k]
		}
	}
	if len(m.Block) > 0 {
		return nil, errColumns
	}
	return symbols, nil
}

func decodeMark(mark uint32, n uint64) (wpp.Symbol, error) {
	if mark > math.MaxUint8 {
		return wpp.Symbol{}, fmt.Errorf("unknown mark %d", mark)
	}
	return wpp.Symbol{IsMark: true, Mark: ops.Mark(mark), N: n}, nil
}

// thread decodes a thread. segments are those of the file.
func (f *fileReader) thread(m *ThreadSection) (wpp.Thread, error) {
	grammar, err := f.grammar(m)
	return wpp.Thread{TID: int(m.Tid), Name: string(m.Name), Grammar: grammar, Lost: m.Lost,
		Gaps: m.Gaps, Ended: m.Ended}, err
}

func (f *fileReader) grammar(m *ThreadSection) (*wpp.Grammar, error) {
	if len(m.Segment) == 0 {
		bodies, err := f.bodies(m)
		if err != nil {
			return nil, err
		}
		return wpp.NewGrammar(bodies)
	}
	var list []*wpp.Segment
	for _, n := range m.Segment {
		if uint64(n) >= uint64(len(f.segments)) || f.segments[n] == nil {
			return nil, fmt.Errorf("segment %d of %d, which is not there or another thread's", n,
				len(f.segments))
		}
		list = append(list, f.segments[n].segment())
		f.segments[n] = nil
	}
	if err := wpp.CheckJoin(list); err != nil {
		return nil, err
	}
	return wpp.Join(list), nil
}

func (f *fileReader) bodies(m *ThreadSection) ([][]uint32, error) {
	coded, decode := m.Grammar, coding.Decode
	if len(m.Coded) > 0 {
		coded, decode = m.Coded, coding.DecodeEarly
	}
	if len(coded) == 0 {
		if err := f.frame.spend(symbolBytes * len(m.Tree)); err != nil {
			return nil, err
		}
		bodies, err := decodeTree(m.Tree, f.frame.rules)
		f.frame.rules -= len(bodies)
		return bodies, err
	}
	bodies, err := decode(coded, uint64(f.frame.left/symbolBytes), uint64(f.frame.rules))
	for _, body := range bodies {
		f.frame.left -= symbolBytes * len(body)
	}
	f.frame.rules -= len(bodies)
	return bodies, err
}
