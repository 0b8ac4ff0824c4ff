package stepping

import (
	"errors"
	"fmt"
	"math"

	"wpptrace/compress/wet"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/variables"
	"wpptrace/query/values"
)

// An End is why a move ended.
type End int

// The ends.
const (
	Arrived End = iota // where it was to go
	Reached            // a place of Stops, on the way
	Written            // at a write of what is watched
	Paused             // where it was when Pause said so
	Start              // of what was recorded of the thread: it stands before its first instruction
	Last               // it stands before the last instruction that was recorded of the thread
)

// A Way is a direction in time.
type Way bool

// The ways.
const (
	Forward Way = false
	Back    Way = true
)

// A State is where somebody stands in a thread, before an instruction. It belongs to one goroutine.
type State struct {
	// Stops end each move that comes to one of them.
	Stops []Stop
	// Pause ends a move that goes on when it returns true; nil: none. It is asked each time that
	// the move comes to another segment, which is some ten times a second.
	Pause    func() bool
	segments *segments
	snapshot *wpp.Snapshot
	thread   int
	at       Position
	known    moments
	history  *history              // that was needed last; nil: none
	frames   map[int]*values.Frame // of routines, those that were needed
	list     *variables.Table
	watches  []Watch
	written  [2]*writes // the one that was used last is the first
	unsure   int
	skips    *skipper // of the run that goes on; nil: nothing is skipped
}

// New returns a state at the first instruction of a thread, by its index in s.Threads. It fails
// with values.ErrNone where there are no values, and with values.ErrNothingRan where none were
// recorded of the thread.
func New(s *wpp.Snapshot, thread int) (x *State, err error) {
	defer wpp.Recover(&err)
	if !values.Has(s) {
		return nil, values.ErrNone
	}
	g, err := newSegments(s, thread)
	if err != nil {
		return nil, err
	}
	x = &State{segments: g, snapshot: s, thread: thread, frames: map[int]*values.Frame{}}
	if x.list, err = variables.Of(s); err != nil {
		return nil, err
	}
	if len(g.list) > 0 {
		first, err := g.load(0)
		if err != nil || len(first.steps) > 0 {
			return x, err
		}
	}
	return nil, fmt.Errorf("in thread %d %w", s.Threads[thread].TID, values.ErrNothingRan)
}

// Thread is the index of the thread.
func (x *State) Thread() int { return x.thread }

// Position is where the state is.
func (x *State) Position() Position { return x.at }

// Place is the instruction that comes next.
func (x *State) Place() (p Place, err error) {
	defer wpp.Recover(&err)
	s, err := x.step(x.at)
	if err != nil {
		return p, err
	}
	return x.placeOf(s), nil
}

func (x *State) placeOf(s spot) Place {
	return placeOf(x.snapshot, s.frame.routine, int(s.block), int(s.insn), s.addr)
}

// Fault is the instruction that the thread stands before and that faulted, which ended the process;
// nil: it is another. See wet.Segment.Begun.
func (x *State) Fault() (e *wet.Executed, err error) {
	defer wpp.Recover(&err)
	if is, err := x.segments.isFault(x.at); !is {
		return nil, err
	}
	return x.segments.fault, nil
}

// Frames are where the thread is in each of the activations it is in, the innermost first: those
// that are known.
func (x *State) Frames() (list []Place, err error) {
	defer wpp.Recover(&err)
	s, err := x.step(x.at)
	if err != nil {
		return nil, err
	}
	list = append(list, x.placeOf(s))
	for f := s.frame; f.Caller != nil; f = f.Caller {
		list = append(list, f.Called)
	}
	return list, nil
}

// Instruction goes to the next instruction, or back to the one before.
func (x *State) Instruction(way Way) (End, error) {
	return x.move(way, func(spot) bool { return true })
}

// Into goes to where the next line begins, or back to where the last one began: also to one of a
// routine that is called, and to the rest of a line behind a call.
func (x *State) Into(way Way) (End, error) {
	return x.move(way, func(s spot) bool { return s.begins })
}

// Line goes to the next line of the routine, or of its caller; or back to where the line began, or
// the one before it. What is called meanwhile is gone over; but from where the line is not known it
// goes forward to the first of which it is.
func (x *State) Line(way Way) (end End, err error) {
	defer wpp.Recover(&err)
	now, err := x.step(x.at)
	if err != nil {
		return Arrived, err
	}
	of := now.keep()
	if way == Forward {
		return x.move(way, func(s spot) bool {
			return s.frame.depth <= of.frame.depth && !s.sameLine(of) ||
				of.line == 0 && s.line != 0
		})
	}
	return x.lineBack(of)
}

// lineBack goes back to where the line of a step began, or the one before it.
func (x *State) lineBack(of spot) (End, error) {
	from, was, to, end := x.at, x.at, x.at, Start
	x.unsure = 0
	for at, ok, err := x.back(x.at); ok || err != nil; at, ok, err = x.back(at) {
		if err != nil {
			return Arrived, err
		}
		s, err := x.step(at)
		if err != nil {
			return Arrived, err
		}
		if s.frame.depth <= of.frame.depth {
			if !s.sameLine(of) {
				if to != from {
					break
				}
				of = s.keep()
			}
			to, end = at, Arrived
		}
		stop, err := x.stopped(was, at, s)
		if err != nil {
			return Arrived, err
		}
		if stop != Arrived {
			x.at = at
			return stop, nil
		}
		was = at
	}
	x.at = to
	return end, nil
}

// keep is the spot that stays good.
func (s spot) keep() spot {
	kept := *s.step
	return spot{&kept, s.frame}
}

// sameLine reports whether a step belongs to the line of another, in the same activation.
func (s spot) sameLine(of spot) bool {
	return s.frame.number == of.frame.number && s.line == of.line
}

// Out goes to where the routine has returned to, or back to its call. Where code that is not
// traced called it, it goes to what the thread executed behind that, or back to its first
// instruction.
func (x *State) Out(way Way) (end End, err error) {
	defer wpp.Recover(&err)
	now, err := x.step(x.at)
	if err != nil {
		return Arrived, err
	}
	of, from := now.frame, x.at
	end, err = x.move(way, func(s spot) bool {
		return s.frame.depth < of.depth ||
			s.frame.depth == of.depth && s.frame.number != of.number
	})
	if way == Forward || err != nil || end != Arrived {
		return end, err
	}
	at, err := x.step(x.at)
	if err != nil || at.frame.depth < of.depth {
		return end, err
	}
	next, _, err := x.next(x.at)
	if err == nil && next != from {
		x.at = next
	}
	return Arrived, err
}

// Run goes on, or back, to the nearest of Stops.
func (x *State) Run(way Way) (End, error) {
	x.skips = newSkipper(x)
	defer func() { x.skips = nil }()
	return x.move(way, func(spot) bool { return false })
}

// Goto goes to the first instruction that the thread executed at a position of its stream, or
// behind it: what watch and values print as POSITION. It fails where there is none.
func (x *State) Goto(position uint64) (err error) {
	defer wpp.Recover(&err)
	list := x.segments.list
	first := 0
	for first+1 < len(list) && list[first+1].First() < position {
		first++
	}
	for n := range list {
		if n >= len(x.segments.starts)-1 || n >= first {
			if _, err := x.segments.load(n); err != nil {
				return err
			}
		}
		if n < first {
			continue
		}
		s := seeking{position: position}
		if err := list[n].Replay(0, math.MaxUint64, &s); errors.Is(err, errFound) {
			x.at = Position{n, s.insn}
			return nil
		} else if err != nil {
			return err
		}
	}
	return fmt.Errorf("nothing was executed at position %d, or behind it", position)
}

// seeking counts the instructions up to a position.
type seeking struct {
	position uint64
	insn     int
}

var errFound = errors.New("found")

// Executed is for the replay: see wet.Observer.
func (s *seeking) Executed(e *wet.Executed) error {
	if e.Symbol >= s.position {
		return errFound
	}
	s.insn++
	return nil
}

// A Stop is a place where moves end: an instruction, or where a source line begins.
type Stop struct {
	Text   string // as values.Find takes it
	at     map[values.Instruction]bool
	isLine bool
}

// StopAt is the stop that a text stands for: see values.Find. Of a routine it is where its
// variables are, if they are nowhere yet where it is entered.
func StopAt(s *wpp.Snapshot, text string) (Stop, error) {
	w, err := values.Find(s, text)
	if err != nil {
		return Stop{}, err
	}
	if w.Kind == values.End {
		return Stop{}, errors.New("a thread stops at its end without that")
	}
	p := Stop{Text: text, at: map[values.Instruction]bool{}, isLine: w.Kind == values.Line}
	t, err := variables.Of(s)
	if err != nil {
		return Stop{}, err
	}
	for _, i := range w.At {
		if w.Kind == values.Call && t != nil {
			i.Addr = behindPrologue(s, t, i)
		}
		p.at[i] = true
	}
	return p, nil
}

// behindPrologue is the first instruction of the block that a routine is entered at, before which
// any of its variables is anywhere; or the entry, if there is none.
func behindPrologue(s *wpp.Snapshot, t *variables.Table, entry values.Instruction) uint64 {
	for i := range s.Routines[entry.Routine].Blocks {
		b := &s.Routines[entry.Routine].Blocks[i]
		if b.Addr != entry.Addr {
			continue
		}
		at := b.Addr
		for _, n := range b.Lengths {
			for k := range t.Variables {
				v := &t.Variables[k]
				if v.Routine == entry.Routine && values.Whole(t, v).Has(at) {
					return at
				}
			}
			at += uint64(n)
		}
	}
	return entry.Addr
}

func (p *Stop) isAt(s spot) bool {
	return p.at[values.Instruction{Routine: s.frame.routine, Addr: s.addr}] &&
		(!p.isLine || s.begins && !s.resumes)
}

// StopsHere are the indices of those of Stops that the thread stands at.
func (x *State) StopsHere() (list []int, err error) {
	defer wpp.Recover(&err)
	s, err := x.step(x.at)
	if err != nil {
		return nil, err
	}
	for i := range x.Stops {
		if x.Stops[i].isAt(s) {
			list = append(list, i)
		}
	}
	return list, nil
}

// stopped is why a move ends that has come from a position to another, before it is where it was to
// go; Arrived: it does not.
func (x *State) stopped(from, to Position, s spot) (End, error) {
	written, err := x.isWritten(to)
	if written || err != nil {
		return Written, err
	}
	for i := range x.Stops {
		if x.Stops[i].isAt(s) {
			return Reached, nil
		}
	}
	if from.Segment != to.Segment && x.Pause != nil && x.Pause() {
		return Paused, nil
	}
	return Arrived, nil
}

// move goes to the nearest step for which stops is true, or else as far as it can.
func (x *State) move(way Way, stops func(spot) bool) (end End, err error) {
	defer wpp.Recover(&err)
	one, end := x.next, Last
	if way == Back {
		one, end = x.back, Start
	}
	at := x.at
	x.unsure = 0
	for {
		next, ok, err := one(at)
		if err != nil {
			return Arrived, err
		}
		if !ok {
			x.at = at
			return end, nil
		}
		s, err := x.step(next)
		if err != nil {
			return Arrived, err
		}
		stop, err := x.stopped(at, next, s)
		if err != nil {
			return Arrived, err
		}
		if stop != Arrived || stops(s) {
			x.at = next
			return stop, nil
		}
		at = next
	}
}

// step is the instruction at a position.
func (x *State) step(at Position) (spot, error) {
	g, err := x.segments.load(at.Segment)
	if err != nil {
		return spot{}, err
	}
	s := &g.steps[at.Insn]
	return spot{s, g.frames[s.frame]}, nil
}

// next is the position behind another. ok is false if there is none.
func (x *State) next(at Position) (next Position, ok bool, err error) {
	g, err := x.segments.load(at.Segment)
	if err != nil {
		return at, false, err
	}
	if at.Insn+1 < len(g.steps) {
		return Position{at.Segment, at.Insn + 1}, true, nil
	}
	for n := at.Segment + 1; n < len(x.segments.list); n++ {
		if !x.skips.may(n) {
			continue
		}
		if g, err = x.segments.load(n); err != nil {
			return at, false, err
		}
		if len(g.steps) > 0 {
			return Position{Segment: n}, true, nil
		}
	}
	return at, false, nil
}

// back is the position before another. ok is false if there is none.
func (x *State) back(at Position) (back Position, ok bool, err error) {
	if at.Insn > 0 {
		return Position{at.Segment, at.Insn - 1}, true, nil
	}
	for n := at.Segment - 1; n >= 0; n-- {
		if !x.skips.may(n) {
			continue
		}
		g, err := x.segments.load(n)
		if err != nil {
			return at, false, err
		}
		if len(g.steps) > 0 {
			return Position{n, len(g.steps) - 1}, true, nil
		}
	}
	return at, false, nil
}
