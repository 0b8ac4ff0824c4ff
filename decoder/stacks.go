package decoder

import (
	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
)

// push begins an activation.
func (t *Thread) push(f frame) *frame {
	t.forget(f.cfa)
	t.mainRan = t.mainRan || f.r == t.d.main
	if i := t.inPlace(f.cfa); i >= 0 {
		for k := i; k < len(t.frames) && (k == i || !t.frames[k].root); k++ {
			t.frames[k].gone = true
		}
	}
	f.lowest = f.cfa
	if n := len(t.frames); n > 0 {
		f.lowest = min(f.cfa, t.frames[n-1].lowest)
	}
	t.frames = append(t.frames, f)
	return &t.frames[len(t.frames)-1]
}

// inPlace returns the innermost frame of an activation at cfa, or -1.
func (t *Thread) inPlace(cfa uint64) int {
	for i := len(t.frames) - 1; i >= 0 && t.frames[i].lowest <= cfa; i-- {
		if t.frames[i].cfa == cfa {
			return i
		}
	}
	return -1
}

// inCall reports whether frame k has made the call where it stands, and not been interrupted by a
// handler instead.
func inCall(frames []frame, k int) bool {
	return frames[k].called || k+1 < len(frames) && !frames[k+1].handler
}

// mayEnd reports whether frame k can have come to its end silently, if those above it have.
func mayEnd(frames []frame, k int) bool {
	_, n := frames[k].st.returnsBy(inCall(frames, k))
	return n > 0
}

// calleesReturn reports whether the frames above another, up to the first that it has not called,
// can have come to their ends.
func calleesReturn(above []frame) bool {
	for k := 0; k < len(above) && !above[k].root; k++ {
		if !mayEnd(above, k) {
			return false
		}
	}
	return true
}

// mostAway bounds how many pieces of stack are kept for a return to them.
const mostAway = 1024

// setAside takes the innermost piece of stack off, down to its root or to frame i.
func (t *Thread) setAside(i int) {
	k := len(t.frames) - 1
	for k > i+1 && !t.frames[k].root {
		k--
	}
	t.toThrow(t.top(), false)
	piece := append([]frame(nil), t.frames[k:]...)
	t.unwind(k)
	if !piece[0].root {
		return // what it called cannot come back without its caller
	}
	if len(t.away) == mostAway {
		t.away = append(t.away[:0], t.away[1:]...)
	}
	t.away = append(t.away, piece)
}

// leaveOverwritten takes off what cannot be on its stack any more, for code that is not observed
// calls back at cfa: the activation in that place, or what was called back by what an activation
// there had jumped to, and all that lies below.
func (t *Thread) leaveOverwritten(cfa uint64) {
	i := len(t.frames)
	for i > 0 && t.frames[i-1].cfa < cfa {
		i--
	}
	switch {
	case i == 0:
		return
	case t.frames[i-1].cfa == cfa:
		i--
	case t.frames[i-1].openAt() != cfa:
		return
	}
	for len(t.frames) > i {
		t.setAside(i - 1)
	}
}

// openAt is the CFA of what the activation has called, if that has jumped to code that is not
// observed, and is known; else 0.
func (f *frame) openAt() uint64 {
	if !f.called || !f.open || f.st.block == exit || f.r.Blocks[f.st.block].Depth < 0 {
		return 0
	}
	return f.cfa - uint64(f.r.Blocks[f.st.block].Depth)
}

// forget drops the pieces of stack that a new activation at cfa has overwritten.
func (t *Thread) forget(cfa uint64) {
	if len(t.away) == 0 {
		return
	}
	kept := t.away[:0]
	for _, piece := range t.away {
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
	t.away = kept
}

// revive brings back a piece of stack that was switched away from, if it holds the activation and
// that can go on to the block, or stands there. first: a new activation may come to it as well, in
// the same place.
func (t *Thread) revive(a activation, block int, first bool, chain []wire.Event) bool {
	for k := len(t.away) - 1; k >= 0; k-- {
		piece := t.away[k]
		for j := range piece {
			f := &piece[j]
			if f.activation != a || f.gone || len(chain) > 0 && f.from != chain[0] {
				continue
			}
			if f.st.to(block, f.called) == nil && (first || f.called || f.st.block != block) || !calleesReturn(piece[j+1:]) {
				continue
			}
			t.away = append(t.away[:k], t.away[k+1:]...)
			t.toOpenCall(a.cfa)
			t.sink.Mark(ops.Resume, uint64(len(piece)))
			for _, g := range piece {
				t.push(g)
			}
			return true
		}
	}
	return false
}
