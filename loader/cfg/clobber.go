package cfg

import "wpptrace/loader/x86"

// maxCallDepth bounds how far calls of calls are looked into for the registers that they change.
const maxCallDepth = 12

// A clobber is what is known of the registers that a routine changes.
type clobber struct {
	known   bool
	ongoing bool
	set     x86.Set
}

// findClobbers asks clobbersOf for all routines: from then on that only reads, and may be called
// concurrently.
func (r *recovery) findClobbers() {
	for id := range r.drafts {
		r.clobbersOf(id, 0)
	}
}

// clobbers returns the registers that the call i may change. Compilers keep values in caller-saved
// registers across the calls of routines that they know not to change them.
func (r *recovery) clobbers(i int) x86.Set {
	if r.insns[i].Kind != x86.Call {
		return x86.CallerSaved
	}
	return r.clobbersOf(r.routineAt(int(r.target[i])), 0)
}

// clobbersOf returns the caller-saved registers that some instruction of the routine writes, or of
// one that it calls.
func (r *recovery) clobbersOf(id, depth int) x86.Set {
	if id < 0 || depth > maxCallDepth {
		return x86.CallerSaved
	}
	c := &r.clobbered[id]
	switch {
	case c.known:
		return c.set
	case c.ongoing: // recursion
		return x86.CallerSaved
	}
	c.ongoing = true
	set := x86.Set(0)
	for _, pi := range r.drafts[id].pieces {
		p := &r.pieces[pi]
		for i := p.first; i < p.last && set != x86.CallerSaved; i++ {
			set |= r.clobbersBy(id, i, depth) & x86.CallerSaved
		}
	}
	*c = clobber{known: true, set: set}
	return set
}

// clobbersBy returns the registers that instruction i of a routine changes before the routine
// returns.
func (r *recovery) clobbersBy(id, i, depth int) x86.Set {
	q := &r.insns[i]
	switch q.Kind {
	case x86.CallInd, x86.JmpInd, x86.Syscall:
		return x86.CallerSaved
	case x86.Call:
		return r.clobbersOf(r.routineAt(int(r.target[i])), depth+1)
	case x86.Jmp, x86.Jcc, x86.Loop:
		if t := int(r.target[i]); t < 0 || r.pieces[r.pieceOf[t]].routine != id {
			return r.clobbersOf(r.routineAt(t), depth+1)
		}
		return 0
	case x86.Ret, x86.Trap:
		return 0
	}
	e := r.effects(i)
	return e.Written()
}
