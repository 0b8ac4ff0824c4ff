package wet

import (
	"encoding/binary"
	"fmt"

	"wpptrace/compress/wpp"
)

// The kinds of section that hold values. None is critical: paths are whole without them.
const (
	CodeKind   = wpp.FirstSection + 16 // instructions
	LogKind    = wpp.FirstSection + 18 // of a thread
	CountsKind = wpp.FirstSection + 23
)

// version is that of the sections.
const version = 1

// Section returns the log as it is now, as that of a thread, by its index in Snapshot.Threads. It
// copies it.
func (l *Log) Section(thread int) *wpp.Section {
	return wpp.NewSection(LogKind, l.append(binary.AppendUvarint(nil, uint64(thread))))
}

// A Segment is a part of a thread's stream with the values of what ran there. It is immutable.
type Segment struct {
	snapshot *wpp.Snapshot
	code     *Code
	thread   int
	log      []byte
}

// Segments returns the segments of a thread, by its index in s.Threads, of a snapshot that was read
// with the kinds above as known ones; none: no values were recorded. It fails where a section is
// damaged.
func Segments(s *wpp.Snapshot, thread int) ([]Segment, error) {
	code, err := CodeOf(s)
	if err != nil {
		return nil, err
	}
	for section := range s.SectionsOf(LogKind) {
		data, err := section.Data()
		if err != nil {
			return nil, err
		}
		r := &reader{rest: data}
		of := r.count(len(s.Threads)-1, "thread")
		switch {
		case r.err == nil && of != thread:
			continue
		case r.err == nil && code == nil:
			r.fail("a thread's values, and there are no instructions")
		case r.err == nil:
			r.err = readLog(&reader{rest: r.rest}).failed()
		}
		if r.err != nil {
			return nil, fmt.Errorf("read the section of values: %w", r.err)
		}
		return []Segment{{s, code, thread, r.rest}}, nil
	}
	return nil, nil
}

// CodeOf returns the instructions of a snapshot that was read with CodeKind as a known one, nil if
// it has none. It fails where their section is damaged.
func CodeOf(s *wpp.Snapshot) (*Code, error) {
	for section := range s.SectionsOf(CodeKind) {
		data, err := section.Data()
		if err != nil {
			return nil, err
		}
		c, err := readCode(s, data)
		if err != nil {
			return nil, fmt.Errorf("read the section of instructions: %w", err)
		}
		return c, nil
	}
	return nil, nil
}

// Replay tells an observer what was executed at the symbols [from, to) of the thread's stream. It
// takes time linear in the instructions up to there.
func (g *Segment) Replay(from, to uint64, o Observer) error {
	p := readLog(&reader{rest: g.log})
	thread := &g.snapshot.Threads[g.thread]
	w := NewWalker(g.code, p, &window{observer: o, from: from, tid: thread.TID})
	err := w.Begin()
	n := uint64(0)
	for sym := range thread.Grammar.Expand(0) {
		if n == to || err != nil {
			break
		}
		if n == p.symbols {
			w.Lose()
		}
		n++
		if s := &g.snapshot.Symbols[sym]; s.IsMark {
			err = w.Mark(s.Mark, s.N)
		} else {
			err = w.Path(&Path{s.Routine, s.Start, s.Blocks, s.Skip, s.Cut})
		}
		if failed := p.failed(); failed != nil && err == nil {
			err = failed
		}
	}
	if err != nil {
		return fmt.Errorf("replay the values of thread %d: symbol %d of its stream: %w",
			thread.TID, n, err)
	}
	return nil
}

// A window passes on what was executed from a symbol on.
type window struct {
	observer Observer
	from     uint64
	tid      int
}

// Executed is for the walker: see Observer.
func (x *window) Executed(e *Executed) error {
	if e.Symbol < x.from {
		return nil
	}
	e.TID = x.tid
	return x.observer.Executed(e)
}
