package decoder

import (
	"slices"

	"wpptrace/bpf/wire"
	"wpptrace/decoder/route"
)

// A stack holds the activations of a thread, and the pieces of stacks that it has switched away
// from. It decides nothing, and emits nothing.
type stack struct {
	frames []frame // innermost last
	away   [][]frame
	// knownUpTo is the highest CFA up to which all activations are known since the thread was met
	// in mid-run; 0: all, from its beginning.
	knownUpTo uint64
	// hasRun: the thread has had an event of a hit, or has lost some.
	hasRun bool
	// main is the routine that the thread still has to call, once; nil: none.
	main *route.Routine
}

// mostAway bounds how many pieces of stack are kept for a return to them.
const mostAway = 1024

func (s *stack) top() *frame { return &s.frames[len(s.frames)-1] }

// push begins an activation: a copy of f.
func (s *stack) push(f *frame) *frame {
	if len(s.away) > 0 {
		s.overwriteAway(f.cfa)
	}
	if f.r == s.main {
		s.main = nil
	}
	if i := s.inPlace(f.cfa); i >= 0 {
		for k := i; k < len(s.frames) && (k == i || !s.frames[k].fromExternal); k++ {
			s.frames[k].overwritten = true
		}
	}
	lowest := f.cfa
	if n := len(s.frames); n > 0 {
		lowest = min(lowest, s.frames[n-1].lowest)
	}
	if len(s.frames) == cap(s.frames) { // twice as many: a recursion that is deep grows deeper
		s.frames = slices.Grow(s.frames, max(16, len(s.frames)))
	}
	s.frames = append(s.frames, *f)
	top := s.top()
	top.lowest = lowest
	return top
}

// pop takes off the innermost frame.
func (s *stack) pop() { s.frames = s.frames[:len(s.frames)-1] }

// inPlace returns the innermost frame of an activation at cfa, or -1.
func (s *stack) inPlace(cfa uint64) int {
	for i := len(s.frames) - 1; i >= 0 && s.frames[i].lowest <= cfa; i-- {
		if s.frames[i].cfa == cfa {
			return i
		}
	}
	return -1
}

// find returns the innermost frame of an activation whose chain of callers is this, or -1. It stops
// where all that is left lies above.
func (s *stack) find(a activation, chain []wire.Event) int {
	for i := len(s.frames) - 1; i >= 0 && s.frames[i].lowest <= a.cfa; i-- {
		if f := &s.frames[i]; f.activation == a && !f.overwritten && s.calledThrough(i, chain) {
			return i
		}
	}
	return -1
}

// calledThrough reports whether frame i and its callers have these return addresses.
func (s *stack) calledThrough(i int, chain []wire.Event) bool {
	for k, caller := range chain {
		if i-k < 0 || s.frames[i-k].caller != caller && s.frames[i-k].caller != 0 {
			return false
		}
		if s.frames[i-k].fromExternal {
			break
		}
	}
	return true
}

// innermost finds the innermost frame of a routine above cfa that was called through chain and for
// which is holds, or -1.
func (s *stack) innermost(
	r *route.Routine, cfa uint64, chain []wire.Event, is func(i int) bool,
) int {
	for i := len(s.frames) - 1; i >= 0; i-- {
		f := &s.frames[i]
		if f.r != r || f.cfa <= cfa || f.overwritten || !is(i) {
			continue
		}
		if s.calledThrough(i, chain) && s.reaches(i, cfa) {
			return i
		}
	}
	return -1
}

// reaches reports whether the frame of activation i, whose size is not known, may come down to cfa:
// not if there is an activation between that a handler, which it is or which it works for, has
// interrupted on a stack below its own.
func (s *stack) reaches(i int, cfa uint64) bool {
	f := &s.frames[i]
	if i == 0 || s.frames[i-1].lowest >= f.cfa {
		return true
	}
	k := i
	for k > 0 && !s.frames[k].handler {
		k--
	}
	between := func(o frame) bool { return cfa < o.cfa && o.cfa < f.cfa }
	return !slices.ContainsFunc(s.frames[:s.frames[k].interrupted.most], between)
}

// findCaller finds the frame that has made a call which led to cfa: where the size of its frame is
// known (depth), the one at that address. Else it is the innermost that can have come to the call,
// or that stands at it and what it called has that address, or had no event when a handler came;
// or else that stands at it, if what it called may have jumped on.
func (s *stack) findCaller(c route.Call, cfa uint64, depth int, chain []wire.Event) int {
	if depth >= 0 {
		return s.find(activation{c.Routine, cfa + uint64(depth)}, chain)
	}
	i := s.innermost(c.Routine, cfa, chain, func(i int) bool {
		f := &s.frames[i]
		stands := f.pos.Block == c.Block && (!f.called || s.hasEntered(i, cfa))
		return stands || f.pos.To(c.Block, f.called) != nil
	})
	if i >= 0 {
		return i
	}
	mayJumpOn := func(i int) bool { return s.mayJumpOn(i, c.Block, cfa) }
	return s.innermost(c.Routine, cfa, chain, mayJumpOn)
}

// hasEntered reports whether what frame i calls is at cfa, or may be: a handler came before its
// first event.
func (s *stack) hasEntered(i int, cfa uint64) bool {
	return i+1 < len(s.frames) && (s.frames[i+1].cfa == cfa || s.frames[i+1].handler)
}

// mayJumpOn reports whether frame i stands at its call at block c, and what that entered may have
// left to another activation at cfa by a tail jump.
func (s *stack) mayJumpOn(i, c int, cfa uint64) bool {
	f := &s.frames[i]
	if f.pos.Block != c {
		return false
	}
	return f.called && f.inExternal || f.r.CallsExternal(c) ||
		i+1 < len(s.frames) && s.frames[i+1].cfa == cfa
}

// inCall reports whether frame k has made the call where it stands, and not been interrupted by a
// handler instead.
func inCall(frames []frame, k int) bool {
	return frames[k].called || k+1 < len(frames) && !frames[k+1].handler
}

// mayEnd reports whether frame k can have come to its end without an event, if those above it have.
func mayEnd(frames []frame, k int) bool {
	_, n := frames[k].pos.ReturnsBy(inCall(frames, k))
	return n > 0
}

// calleesReturn reports whether the frames above frame i, up to the first that it has not called,
// can have come to their ends.
func (s *stack) calleesReturn(i int) bool { return calleesReturn(s.frames[i+1:]) }

func calleesReturn(above []frame) bool {
	for k := 0; k < len(above) && !above[k].fromExternal; k++ {
		if !mayEnd(above, k) {
			return false
		}
	}
	return true
}

// haveReturned reports whether all activations above frame i can have come to their ends.
func (s *stack) haveReturned(i int) bool {
	for k := len(s.frames) - 1; k > i; k-- {
		if !mayEnd(s.frames, k) {
			return false
		}
	}
	return true
}

// isStuckAbove reports whether an activation between frame i and the innermost, on the same piece
// of stack, cannot come to its end without an event.
func (s *stack) isStuckAbove(i int) bool {
	for k := len(s.frames) - 1; k > i; k-- {
		if !mayEnd(s.frames, k) {
			return true
		}
		if s.frames[k].fromExternal {
			return false
		}
	}
	return false
}

// firstOverwritten returns the outermost frame that cannot be on its stack any more where external
// code calls back at cfa: the activation in that place, or what was called back by what an
// activation there had jumped to; and how many frames there are if all can.
func (s *stack) firstOverwritten(cfa uint64) int {
	i := len(s.frames)
	for i > 0 && s.frames[i-1].cfa < cfa {
		i--
	}
	switch {
	case i == 0:
	case s.frames[i-1].cfa == cfa:
		return i - 1
	case s.frames[i-1].externalCFA() == cfa:
		return i
	}
	return len(s.frames)
}

// keepAway keeps a piece of stack for a return to it.
func (s *stack) keepAway(piece []frame) {
	if len(s.away) == mostAway {
		s.away = append(s.away[:0], s.away[1:]...)
	}
	s.away = append(s.away, piece)
}

// overwriteAway drops what a new activation at cfa has overwritten of the pieces that are kept.
func (s *stack) overwriteAway(cfa uint64) {
	kept := s.away[:0]
	for _, piece := range s.away {
		for k := range piece {
			if piece[k].cfa == cfa {
				piece = piece[:k]
				break
			}
		}
		if len(piece) > 0 {
			kept = append(kept, piece)
		}
	}
	s.away = kept
}

// takeAway takes out a piece that was switched away from, if it holds the activation and that can
// go on to the block, or stands there; nil: there is none. first: a new activation may come to the
// block as well, in the same place.
func (s *stack) takeAway(a activation, block int, first bool, chain []wire.Event) []frame {
	for k := len(s.away) - 1; k >= 0; k-- {
		piece := s.away[k]
		for j := range piece {
			f := &piece[j]
			if f.activation != a || f.overwritten || len(chain) > 0 && f.caller != chain[0] {
				continue
			}
			stands := !first && !f.called && f.pos.Block == block
			if !stands && f.pos.To(block, f.called) == nil || !calleesReturn(piece[j+1:]) {
				continue
			}
			s.away = append(s.away[:k], s.away[k+1:]...)
			return piece
		}
	}
	return nil
}
