package ppcompress

import (
	"cmp"
	"io"
	"slices"
	"unsafe"

	"wpptrace/compress/ops"
	"wpptrace/compress/raw"
	"wpptrace/compress/spill"
	"wpptrace/compress/wpp"
)

// Trace compresses a raw trace. The snapshot names its one image as is asked for. Where the trace
// is cut off it returns a snapshot of what there is, and an error that is raw.ErrTruncated; on any
// other error, no snapshot. Grammars that do not fit into the recording's limits are in its draft,
// with which the snapshot is to be written.
func Trace(r io.Reader, image string, rec *spill.Recording) (*wpp.Snapshot, error) {
	c := &compressor{image: image, reader: raw.NewReader(stopping{r, rec}), recording: rec}
	rec.AddOther(func() uint64 { return alphabetBytes(&c.alphabet) })
	rec.Begin(c.tables)
	err := c.reader.Read(c.begin)
	if err != nil && !isTruncated(err) {
		return nil, err
	}
	s, threadsErr := c.snapshot(err == nil)
	if threadsErr != nil {
		return nil, threadsErr
	}
	return s, err
}

// alphabetBytes is what an alphabet takes, while it grows, and in the end as symbols of a snapshot.
func alphabetBytes(a *ops.Symbols) uint64 {
	return a.Bytes()*3/2 + uint64(a.Len())*uint64(unsafe.Sizeof(wpp.Symbol{}))
}

// A stopping reader reads no more when spilling has failed.
type stopping struct {
	io.Reader
	recording *spill.Recording
}

func (s stopping) Read(p []byte) (int, error) {
	if err := s.recording.Err(); err != nil {
		return 0, err
	}
	return s.Reader.Read(p)
}

// A compressor is a trace in the making.
type compressor struct {
	image     string
	reader    *raw.Reader
	recording *spill.Recording
	alphabet  ops.Symbols
	threads   []*thread
}

// A thread takes the operations of one.
type thread struct {
	*ops.Recorder
	raw.Thread
	stream *spill.Thread
	lost   uint64
	gaps   uint64
	open   int  // activations
	holes  bool // there may be activations that nothing mentions
}

// Mark records a mark, and counts what it says is lost.
func (t *thread) Mark(m ops.Mark, n uint64) {
	if m == ops.Gap {
		t.lost += n
		t.gaps++
	}
	t.holes = t.holes || m == ops.Gap || m == ops.Resume
	t.Recorder.Mark(m, n)
}

func (t *thread) EnterRoutine(routine int, by ops.Caller) {
	t.open++
	t.Recorder.EnterRoutine(routine, by)
}

func (t *thread) LeaveRoutine() {
	t.open--
	t.Recorder.LeaveRoutine()
}

// ended reports whether a thread has ended where a whole trace does.
func (t *thread) ended() bool { return t.open == 0 && !t.holes }

func (c *compressor) begin(id raw.Thread) ops.Sink {
	stream := c.recording.Thread(id.TID, id.Name)
	t := &thread{Recorder: ops.NewRecorder(&c.alphabet, stream.Append), Thread: id, stream: stream}
	c.threads = append(c.threads, t)
	return t
}

func (c *compressor) snapshot(isWhole bool) (*wpp.Snapshot, error) {
	for _, t := range c.threads {
		t.stream.End()
	}
	s := c.program(0)
	slices.SortStableFunc(c.threads,
		func(a, b *thread) int { return cmp.Compare(a.Start, b.Start) })
	s.Threads = make([]wpp.Thread, 0, len(c.threads))
	for _, t := range c.threads {
		grammar, err := t.stream.Copy()()
		if err != nil {
			return nil, err
		}
		s.Threads = append(s.Threads,
			wpp.Thread{TID: t.TID, Name: t.Name, Grammar: grammar, Lost: t.lost, Gaps: t.gaps,
				Ended: isWhole && t.ended()})
	}
	return s, nil
}

// tables makes what is known so far.
func (c *compressor) tables(from int) (to int, complete func() (*wpp.Snapshot, error)) {
	s := c.program(from)
	return c.alphabet.Len(), func() (*wpp.Snapshot, error) { return s, nil }
}

// program is a snapshot without threads, with the symbols from a number on.
func (c *compressor) program(from int) *wpp.Snapshot {
	s := &wpp.Snapshot{Images: []wpp.Image{{Name: c.image}}}
	for _, r := range c.reader.Routines() {
		s.Routines = append(s.Routines, wpp.Routine{Name: r.Name, Entry: r.Entry})
	}
	for i := range c.alphabet.Len() {
		m := c.alphabet.Meaning(uint32(i))
		if !m.IsMark {
			r := &s.Routines[m.Routine]
			r.Paths = max(r.Paths, m.Path+1)
		}
		if i >= from {
			s.Symbols = append(s.Symbols, c.symbol(m))
		}
	}
	for _, t := range c.threads {
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
