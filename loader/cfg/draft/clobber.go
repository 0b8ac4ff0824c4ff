package draft

import (
	"wpptrace/loader/cfg/sweep"
	"wpptrace/loader/x86"
)

// maxCallDepth bounds how far calls of calls are looked into for the registers that they change.
const maxCallDepth = 12

// A clobber is what is known of the registers that a routine changes.
type clobber struct {
	known   bool
	ongoing bool
	set     x86.Set
}

// Clobbers find which registers routines change.
type Clobbers struct {
	r         *Program
	code      *sweep.Code
	byRoutine []clobber
}

// forget begins anew, for so many routines.
func (c *Clobbers) forget(routines int) { c.byRoutine = make([]clobber, routines) }

// findClobbers asks clobbersOf for all routines: from then on that only reads, and may be called
// concurrently.
func (c *Clobbers) findClobbers() {
	for id := range c.r.Routines {
		c.clobbersOf(id, 0)
	}
}

// Clobbers returns the registers that the call i may change. Compilers keep values in caller-saved
// registers across the calls of routines that they know not to change them.
func (c *Clobbers) Clobbers(i int) x86.Set {
	if c.code.Insns[i].Kind != x86.Call {
		return x86.CallerSaved
	}
	return c.clobbersOf(c.r.RoutineAt(int(c.code.Target[i])), 0)
}

// clobbersOf returns the caller-saved registers that some instruction of the routine writes, or of
// one that it calls.
func (c *Clobbers) clobbersOf(id, depth int) x86.Set {
	if id < 0 || depth > maxCallDepth || !c.r.IsKnown(id) {
		return x86.CallerSaved
	}
	of := &c.byRoutine[id]
	switch {
	case of.known:
		return of.set
	case of.ongoing: // recursion
		return x86.CallerSaved
	}
	of.ongoing = true
	set := x86.Set(0)
	for _, pi := range c.r.Routines[id].Pieces {
		p := &c.code.Pieces[pi]
		for i := p.First; i < p.Last && set != x86.CallerSaved; i++ {
			set |= c.clobbersBy(id, i, depth) & x86.CallerSaved
		}
	}
	*of = clobber{known: true, set: set}
	return set
}

// clobbersBy returns the registers that instruction i of a routine changes before the routine
// returns.
func (c *Clobbers) clobbersBy(id, i, depth int) x86.Set {
	q := &c.code.Insns[i]
	switch q.Kind {
	case x86.CallInd, x86.JmpInd, x86.Syscall:
		return x86.CallerSaved
	case x86.Call:
		return c.clobbersOf(c.r.RoutineAt(int(c.code.Target[i])), depth+1)
	case x86.Jmp, x86.Jcc, x86.Loop:
		if t := int(c.code.Target[i]); t < 0 || c.code.Pieces[c.code.PieceOf[t]].Routine != id {
			return c.clobbersOf(c.r.RoutineAt(t), depth+1)
		}
		return 0
	case x86.Ret, x86.Trap:
		return 0
	}
	e := c.code.Effects(i)
	return e.Written()
}
