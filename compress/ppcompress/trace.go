package ppcompress

import (
	"cmp"
	"io"
	"slices"

	"wpptrace/compress/ops"
	"wpptrace/compress/raw"
	"wpptrace/compress/sequitur"
	"wpptrace/compress/wpp"
)

// Trace compresses a raw trace. The snapshot names its one image as it is told to. Where the trace is cut off it returns a snapshot of what there is,
// and an error that is raw.ErrTruncated; on any other error, no snapshot.
func Trace(r io.Reader, image string) (*wpp.Snapshot, error) {
	c := &compressor{reader: raw.NewReader(r)}
	err := c.reader.Read(c.begin)
	if err != nil && !isTruncated(err) {
		return nil, err
	}
	return c.snapshot(image), err
}

// A compressor is a trace in the making.
type compressor struct {
	reader   *raw.Reader
	alphabet ops.Symbols
	threads  []*thread
}

// A thread takes the operations of one.
type thread struct {
	*ops.Recorder
	raw.Thread
	grammar *sequitur.Grammar
	lost    uint64
	gaps    uint64
}

// Mark records a mark, and counts what it says is lost.
func (t *thread) Mark(m ops.Mark, n uint64) {
	if m == ops.Gap {
		t.lost += n
		t.gaps++
	}
	t.Recorder.Mark(m, n)
}

func (c *compressor) begin(id raw.Thread) ops.Sink {
	g := sequitur.NewFolding()
	t := &thread{Recorder: ops.NewRecorder(&c.alphabet, g.Append), Thread: id, grammar: g}
	c.threads = append(c.threads, t)
	return t
}

func (c *compressor) snapshot(image string) *wpp.Snapshot {
	s := &wpp.Snapshot{Images: []wpp.Image{{Name: image}}}
	for _, r := range c.reader.Routines() {
		s.Routines = append(s.Routines, wpp.Routine{Name: r.Name, Entry: r.Entry})
	}
	for i := range c.alphabet.Len() {
		s.Symbols = append(s.Symbols, c.symbol(c.alphabet.Meaning(uint32(i))))
	}
	for i := range s.Symbols {
		if r := s.RoutineOf(uint32(i)); r != nil {
			r.Paths = max(r.Paths, s.Symbols[i].Path+1)
		}
	}
	slices.SortStableFunc(c.threads, func(a, b *thread) int { return cmp.Compare(a.Start, b.Start) })
	for _, t := range c.threads {
		s.Threads = append(s.Threads, wpp.Thread{TID: t.TID, Name: t.Name, Grammar: wpp.FromSequitur(t.grammar), Lost: t.lost, Gaps: t.gaps})
		s.Figures.Lost += t.lost
		s.Figures.Gaps += t.gaps
	}
	return s
}

func (c *compressor) symbol(m ops.Meaning) wpp.Symbol {
	if m.IsMark {
		return wpp.Symbol{IsMark: true, Mark: m.Mark, N: m.N}
	}
	start, end := c.reader.Path(m.Routine, m.Path)
	return wpp.Symbol{Routine: m.Routine, Path: m.Path, Start: start, End: end}
}
