package format

import (
	"google.golang.org/protobuf/proto"

	"wpptrace/compress/coding"
	"wpptrace/compress/wpp"
)

func encodeFigures(f *wpp.Figures) *FiguresSection {
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
		Events:           f.Events,
		Lost:             f.Lost,
		Gaps:             f.Gaps,
		Probes:           f.Probes,
		ProbesSingleStep: f.ProbesSingleStep,
		SlowDown:         f.SlowDown,
		Anomalies:        f.Anomalies,
		Windows:          f.Windows,
		Sampled:          f.Sampled,
		SampledMost:      f.SampledMost,
		SampledLeast:     f.SampledLeast,
		HeldUpNs:         int64(f.HeldUp),
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

func encodeProgram(s *wpp.Snapshot) *ProgramSection {
	m := &ProgramSection{Machine: proto.Uint32(uint32(s.Machine)), EachLine: s.EachLine}
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

func encodeInlined(m *ProgramSection, texts *textTable, s *wpp.Snapshot) {
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

func (e *blockEncoder) encode(m *ProgramSection, b *wpp.Block) {
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

func encodeSymbols(symbols []wpp.Symbol) *SymbolSection {
	m := &SymbolSection{}
	routine := 0
	for i := range symbols {
		s := &symbols[i]
		if s.IsMark {
			s = &wpp.Symbol{IsMark: true, Mark: s.Mark, N: s.N, Routine: routine}
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
func encodeThread(t *wpp.Thread, segments []uint32) *ThreadSection {
	m := &ThreadSection{Tid: int64(t.TID), Name: []byte(t.Name), Lost: t.Lost, Gaps: t.Gaps,
		Ended: t.Ended, Segment: segments}
	if segments == nil {
		m.Grammar = coding.Encode(t.Grammar.Bodies())
	}
	return m
}
