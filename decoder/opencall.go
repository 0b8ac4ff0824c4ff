package decoder

import (
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
)

// toOpenCall lets the innermost activation come to the call of code that is not observed out of
// which something is called back at cfa, if there is one. The plan puts at most one such call
// between two words.
func (t *Thread) toOpenCall(cfa uint64) (found bool) {
	for len(t.frames) > 0 {
		f := t.top()
		if f.atOpenCall() {
			t.makeCall(f)
			return true
		}
		if c, ok := t.openCallAhead(f); ok {
			t.goToCall(f, c)
			return true
		}
		o, n := f.st.returnsBy(f.called)
		if n == 0 { // interrupted by a handler that is not observed itself
			return false
		}
		end, over := f.r.kind[o.block], t.isOver(f, cfa)
		t.finishAbove(len(t.frames) - 2)
		switch {
		case end != plan.External && end != plan.Unknown:
		case over:
		default: // it jumped to the code that calls back
			if len(t.frames) > 0 {
				t.top().open = t.top().called
			}
			return true
		}
	}
	return false
}

// atOpenCall reports whether the activation stands at a call of code that is not observed, or of
// what has jumped there.
func (f *frame) atOpenCall() bool {
	if f.called && f.open {
		return true
	}
	b := f.st.block
	if b == exit || f.r.Blocks[b].End == cfg.TailInd || f.r.Blocks[b].End == cfg.Tail || f.r.Blocks[b].End == cfg.Jcc {
		return false
	}
	k := f.r.kind[b]
	return k == plan.External || k == plan.Unknown
}

// openCallAhead finds the call of unknown code that the activation may have come to silently.
func (t *Thread) openCallAhead(f *frame) (block int, ok bool) {
	if !f.st.passes(f.called) {
		return 0, false
	}
	open := f.st.silentWays().open
	if len(open) == 0 {
		return 0, false
	}
	if len(open) > 1 {
		t.d.ambiguous++
		t.d.log.Debug("a callback may come from more than one call", "routine", f.r.Name, "from", f.address())
	}
	return open[0], true
}

// comeToOpenCall lets an activation come to the call of code that is not observed where it stands and
// that it has not made, or which lies ahead. It reports false if there is none.
func (t *Thread) comeToOpenCall(f *frame) bool {
	if !f.called && f.atOpenCall() {
		t.makeCall(f)
		return true
	}
	c, ok := t.openCallAhead(f)
	if ok {
		t.goToCall(f, c)
	}
	return ok
}
