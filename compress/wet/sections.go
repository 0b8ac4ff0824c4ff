package wet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"

	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wet/memory"
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
// takes as long as Encode.
func (l *Log) Section(thread int) *wpp.Section { return SectionOf(thread, l.Encode()) }

// SectionOf returns the section of a segment of a thread, which Encode has made.
func SectionOf(thread int, segment []byte) *wpp.Section {
	return wpp.NewSection(LogKind, append(binary.AppendUvarint(nil, uint64(thread)), segment...))
}

// A Segment is a part of a thread's stream with the values of what ran there. It is immutable: any
// number of goroutines may replay it, and others of its thread.
type Segment struct {
	snapshot *wpp.Snapshot
	code     *Code
	thread   int
	size     int // of its section
	log      []byte
	start    *start // nil: it is the first
	end      *start // nil: it is the last
}

// Segments returns the segments of a thread in their order, by its index in s.Threads, of a
// snapshot that was read with the kinds above as known ones; none: no values were recorded. It
// fails where a section is damaged.
func Segments(s *wpp.Snapshot, thread int) (list []Segment, err error) {
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
		if r.err == nil && of != thread {
			continue
		}
		if code == nil {
			r.fail("a thread's values, and there are no instructions")
		}
		g := Segment{snapshot: s, code: code, thread: thread, size: len(data)}
		if r.err == nil {
			g.start = readStart(r, code)
			g.log = r.rest
		}
		switch n := len(list); {
		case r.err != nil:
		case (g.start == nil) != (n == 0),
			n > 1 && g.start.at.compare(list[n-1].start.at) <= 0:
			r.fail("a segment that is not in its place")
		case n > 0:
			list[n-1].end = g.start
		}
		if r.err != nil {
			return nil, fmt.Errorf("read the section of values: %w", r.err)
		}
		list = append(list, g)
	}
	return list, nil
}

// CodeOf returns the instructions of a snapshot that was read with CodeKind as a known one, nil if
// it has none. They are decoded once, and immutable. It fails where their section is damaged.
func CodeOf(s *wpp.Snapshot) (*Code, error) {
	for section := range s.SectionsOf(CodeKind) {
		read := func() (any, error) {
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
		c, err := section.Decoded(read)
		if err == nil && !c.(*Code).isOf(s) {
			c, err = read()
		}
		if err != nil {
			return nil, err
		}
		return c.(*Code), nil
	}
	return nil, nil
}

// First returns the position of the symbol of the thread's stream that the segment begins in.
func (g *Segment) First() uint64 {
	if g.start == nil {
		return 0
	}
	return g.start.at.Symbol
}

// Size is how many bytes the segment has in a file, but for its frame there.
func (g *Segment) Size() int { return g.size }

// Replay tells an observer what was executed at the symbols [from, to) of the thread's stream, as
// far as that is in the segment. It takes time linear in the segment's instructions up to there.
func (g *Segment) Replay(from, to uint64, o Observer) error {
	if to <= g.First() || g.end != nil && from > g.end.at.Symbol {
		return nil
	}
	_, err := g.walk(math.MaxUint64, from, to, o)
	return err
}

// Before returns what is known before the nth instruction of the segment, from 0 on; it stays good.
// Behind the last one it is what is known at the end, and has no instruction. It takes time linear
// in n, some 100 ns an instruction.
func (g *Segment) Before(n uint64) (*Before, error) {
	w, err := g.walk(n, math.MaxUint64, math.MaxUint64, nil)
	if err != nil {
		return nil, err
	}
	w.before.walker = w
	return &w.before, nil
}

// walk walks along the segment, to the nth instruction and the symbol to, and tells an observer
// what was executed at symbols from another on.
func (g *Segment) walk(n, from, to uint64, o Observer) (*Walker, error) {
	thread := &g.snapshot.Threads[g.thread]
	p := readLog(&reader{rest: g.log})
	x := &window{observer: o, from: from, tid: thread.TID}
	var observer Observer = x
	if watcher, ok := o.(Watcher); ok {
		observer = &watchingWindow{x, watcher}
	}
	w := NewWalker(g.code, p, observer)
	x.memory, w.stop = w.Memory(), n
	at, err := g.begin(w)
	for sym := range expand(thread.Grammar, at) {
		if at >= to || err != nil {
			break
		}
		if at == p.symbols {
			w.Lose()
		}
		at++
		if s := &g.snapshot.Symbols[sym]; s.IsMark {
			err = w.Mark(s.Mark, s.N)
		} else {
			err = w.Path(&Path{s.Routine, s.Start, s.Blocks, s.Skip, s.Cut})
		}
		if failed := p.failed(); failed != nil && err == nil {
			err = failed
		}
	}
	if err != nil && !errors.Is(err, errEnd) {
		return nil, fmt.Errorf("replay the values of thread %d: symbol %d of its stream: %w",
			thread.TID, at, err)
	}
	return w, nil
}

// begin begins a walk, and returns the position of its first symbol.
func (g *Segment) begin(w *Walker) (symbol uint64, err error) {
	if g.end != nil {
		w.ends, w.end = true, g.end.at
	}
	if g.start == nil {
		return 0, w.Begin()
	}
	m, _, err := machine.ParseState(g.start.state)
	if err == nil {
		w.Resume(g.start.at, m, g.start.external)
	}
	return g.start.at.Symbol, err
}

// expand iterates over the symbols that a grammar derives from a position on. To get there costs as
// much as the bodies of rules on the way.
func expand(g *wpp.Grammar, from uint64) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		stack := [][]uint32{g.Body(0)}
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if len(*top) == 0 {
				stack = stack[:len(stack)-1]
				continue
			}
			v, n := (*top)[0], uint64(1)
			if *top = (*top)[1:]; wpp.IsRule(v) {
				n = g.Length(wpp.RuleOf(v))
			}
			switch {
			case from >= n:
				from -= n
			case wpp.IsRule(v):
				stack = append(stack, g.Body(wpp.RuleOf(v)))
			case !yield(v):
				return
			}
		}
	}
}

// A window passes on what was executed from a symbol on.
type window struct {
	observer Observer
	memory   *memory.Memory
	from     uint64
	tid      int
}

var errTooLarge = errors.New("it accesses more memory than a recording keeps: it is damaged")

// Executed is for the walker: see Observer.
func (x *window) Executed(e *Executed) error {
	if x.memory.IsTooLarge() {
		return errTooLarge
	}
	if e.Symbol < x.from {
		return nil
	}
	e.TID = x.tid
	return x.observer.Executed(e)
}
