package stepping

import (
	"cmp"
	"fmt"
	"math"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/query/values"
)

// A Position is an executed instruction of a thread, before which the thread stands.
type Position struct {
	Segment int // of the thread's values
	Insn    int // index among those of the segment
}

// A Place is an instruction of the program.
type Place struct {
	Routine, Block, Insn int
	Addr                 uint64   // link-time
	Span                 wpp.Span // its source line: Line is 0 if it is not known
}

// A Frame is an activation of a routine. Nothing changes it.
type Frame struct {
	Caller  *Frame // nil: code that is not traced, or what came before the recording
	Called  Place  // the call in Caller
	called  Position
	line    int32 // of it
	number  int   // of the activation, in their order; a jump to another routine goes on with it
	routine int
	depth   int
	returns uint64   // behind the call
	began   Position // of its first instruction, or of the first that was recorded
}

// A step is an executed instruction. It has no pointers: there are millions.
type step struct {
	addr        uint64
	frame       int32 // index in the segment's frames
	block, insn int32
	line        int32 // as in segments.lines: 0 where it is not known
	// it begins a line, or an activation, or goes on with one: resumes, if that is amid a line
	begins, resumes bool
}

// A spot is a step with its activation. It is good until another segment is needed.
type spot struct {
	*step
	frame *Frame
}

// A lineKey is a source line, or one of a call that is inlined.
type lineKey struct{ file, line, call int }

// A segment is the instructions of one, with what the frames are behind it.
type segment struct {
	number int
	steps  []step
	frames []*Frame // one behind the other, each time that another one goes on
	next   boundary
}

// A boundary is what is known of the thread between two segments.
type boundary struct {
	frame       *Frame // nil: nothing was executed
	routine     int    // of the last instruction, as all up to next
	block, insn int32
	addr        uint64
	at          Position
	line        int32
	op          machine.Op
	next        uint64 // address behind it
	made        int    // activations
}

// segments are those of a thread. They are read in their order first, so that what the frames are
// at the start of each is known.
type segments struct {
	snapshot *wpp.Snapshot
	list     []wet.Segment
	fault    *wet.Executed // that the thread ended by: the last step; nil: by none
	starts   []boundary
	loaded   [2]*segment // the one that was used last is the first
	lines    map[lineKey]int32
	ofBlocks [][][]int32 // the lines of instructions, by routine and block; nil: not yet made
}

func newSegments(s *wpp.Snapshot, thread int) (*segments, error) {
	list, err := wet.Segments(s, thread)
	if err != nil {
		return nil, err
	}
	fault, err := values.FaultOf(s, thread)
	if err != nil {
		return nil, err
	}
	return &segments{snapshot: s, list: list, fault: fault,
		starts: append(make([]boundary, 0, len(list)+1), boundary{at: Position{Insn: -1}}),
		lines:  map[lineKey]int32{}, ofBlocks: make([][][]int32, len(s.Routines))}, nil
}

// load returns a segment, of which the one before it has been loaded at some time.
func (g *segments) load(number int) (*segment, error) {
	for i, x := range g.loaded {
		if x != nil && x.number == number {
			g.loaded[0], g.loaded[i] = x, g.loaded[0]
			return x, nil
		}
	}
	x := &segment{number: number, next: g.starts[number]}
	if old := g.loaded[1]; old != nil {
		x.steps, x.frames = old.steps[:0], old.frames[:0]
		clear(old.frames)
	}
	r := &reading{segments: g, into: x}
	g.loaded[0], g.loaded[1] = nil, g.loaded[0]
	if err := g.list[number].Replay(0, math.MaxUint64, r); err != nil {
		return nil, err
	}
	if g.fault != nil && number == len(g.list)-1 {
		if err := r.Executed(g.fault); err != nil {
			return nil, err
		}
	}
	if number+1 == len(g.starts) {
		g.starts = append(g.starts, x.next)
	}
	g.loaded[0] = x
	return x, nil
}

// isFault reports whether the step at a position is the fault that the thread ended by.
func (g *segments) isFault(at Position) (bool, error) {
	if g.fault == nil || at.Segment < len(g.list)-1 {
		return false, nil
	}
	x, err := g.load(at.Segment)
	return err == nil && at.Insn == len(x.steps)-1, err
}

// reading takes what is replayed into a segment.
type reading struct {
	*segments
	into *segment
}

// Executed is for the replay: see wet.Observer.
func (r *reading) Executed(e *wet.Executed) error {
	lines, err := r.linesOf(e.Routine, e.Block)
	if err != nil {
		return err
	}
	line := int32(0)
	if e.Place.Insn < len(lines) {
		line = lines[e.Place.Insn]
	}
	b := &r.into.next
	was := b.frame
	b.arrive(r.snapshot, e)
	if b.frame != was || len(r.into.frames) == 0 {
		r.into.frames = append(r.into.frames, b.frame)
	}
	x := step{addr: e.Addr, frame: int32(len(r.into.frames) - 1), block: int32(e.Block),
		insn: int32(e.Place.Insn), line: line}
	switch {
	case was == nil || was.number < b.frame.number:
		x.begins = true
	case was.number > b.frame.number:
		before := returning(was, b.frame).line
		x.line = cmp.Or(line, before)
		x.begins, x.resumes = true, x.line == before
	default:
		x.line = cmp.Or(line, b.line)
		x.begins = x.line != b.line
	}
	r.into.steps = append(r.into.steps, x)
	b.routine, b.block, b.insn, b.addr = e.Routine, x.block, x.insn, e.Addr
	b.at = Position{r.into.number, len(r.into.steps) - 1}
	b.line, b.op, b.next = x.line, e.Code.Op, e.Addr+uint64(e.Code.Len)
	return nil
}

// returning is the activation that was called by another and led to f, which the thread was in.
func returning(f, by *Frame) *Frame {
	for f.Caller != nil && f.Caller.number != by.number {
		f = f.Caller
	}
	return f
}

// linesOf are the lines of the instructions of a block.
func (g *segments) linesOf(routine, block int) ([]int32, error) {
	if routine < 0 || routine >= len(g.ofBlocks) ||
		block < 0 || block >= len(g.snapshot.Routines[routine].Blocks) {
		return nil, fmt.Errorf("values are of block %d of routine %d, which the paths do not have",
			block, routine)
	}
	blocks := g.snapshot.Routines[routine].Blocks
	if g.ofBlocks[routine] == nil {
		g.ofBlocks[routine] = make([][]int32, len(blocks))
	}
	lines := &g.ofBlocks[routine][block]
	if *lines == nil {
		*lines = make([]int32, len(blocks[block].Lengths))
		for i := range *lines {
			(*lines)[i] = g.line(values.SpanOf(&blocks[block], i))
		}
	}
	return *lines, nil
}

func (g *segments) line(span wpp.Span) int32 {
	if span.Line == 0 {
		return 0
	}
	key := lineKey{span.File, span.Line, span.Call}
	line, ok := g.lines[key]
	if !ok {
		line = int32(len(g.lines) + 1)
		g.lines[key] = line
	}
	return line
}

func placeOf(s *wpp.Snapshot, routine, block, insn int, addr uint64) Place {
	span := values.SpanOf(&s.Routines[routine].Blocks[block], insn)
	return Place{routine, block, insn, addr, span}
}

// arrive brings the frames to an instruction.
func (b *boundary) arrive(s *wpp.Snapshot, e *wet.Executed) {
	f := b.frame
	if b.op != machine.Call && b.op != machine.Return && !e.External && f != nil &&
		e.Routine == f.routine { // as nearly always
		return
	}
	switch {
	case f == nil:
		b.enter(nil, e, 0)
	case b.op == machine.Call && e.External && b.next == e.Addr: // from code that is not traced
	case b.op == machine.Call:
		b.call(s, e)
	case b.op == machine.Return || e.External:
		b.leave(s, e)
	case e.Routine != f.routine: // by a jump
		x := *f
		x.routine, x.began = e.Routine, b.behind()
		b.frame = &x
	}
}

// leave goes back to where a call returns to, or to code that is not traced, which came to e.
func (b *boundary) leave(s *wpp.Snapshot, e *wet.Executed) {
	f, isEntry := b.frame, s.Routines[e.Routine].Entry == e.Addr
	for x := f; x.Caller != nil; x = x.Caller {
		if x.returns == e.Addr && x.Caller.routine == e.Routine {
			b.frame = x.Caller
			return
		}
	}
	left := b.op == machine.Return || b.op == machine.Jump
	switch {
	case isEntry && left: // code that is not traced called both
		b.enter(f.Caller, e, f.depth)
		x := b.frame
		x.Called, x.called, x.line, x.returns = f.Called, f.called, f.line, f.returns
	case isEntry: // it was called amid a routine, or behind what was lost
		b.call(s, e)
	case b.op == machine.Return: // to a caller that has not been seen
		b.enter(nil, e, f.depth-1)
	case e.Routine != f.routine:
		b.enter(nil, e, f.depth)
	}
}

// call enters an activation from the last instruction.
func (b *boundary) call(s *wpp.Snapshot, e *wet.Executed) {
	b.enter(b.frame, e, b.frame.depth+1)
	x := b.frame
	x.Called = placeOf(s, b.routine, int(b.block), int(b.insn), b.addr)
	x.called, x.line, x.returns = b.at, b.line, b.next
}

func (b *boundary) enter(caller *Frame, e *wet.Executed, depth int) {
	b.made++
	b.frame = &Frame{Caller: caller, number: b.made, routine: e.Routine, depth: depth,
		began: b.behind()}
}

// behind is the position behind the last instruction; what is behind a segment's last one is that
// one's, too.
func (b *boundary) behind() Position { return Position{b.at.Segment, b.at.Insn + 1} }
