package soundness

import (
	"maps"
	"slices"

	"wpptrace/internal/parallel"
	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/draft"
	"wpptrace/loader/cfg/sweep"
	"wpptrace/loader/x86"
)

// findTwice finds what may return twice besides those known by name or by what they do with their
// return address, and whether anything names one.
func (l *linkage) findTwice() {
	twice := l.facts.Twice
	for addr, name := range l.r.File.Imports {
		if cfg.IsReturnsTwiceSymbol(name) {
			twice[addr] = true
		}
	}
	l.facts.TwicePointed = l.r.File.HoldsTwice()
	if len(twice) == 0 && !l.facts.TwicePointed {
		return
	}
	jumps := l.tailJumps()
	l.spread(jumps, twice)
	names, own := make([]bool, len(l.r.Routines)), make([]bool, len(l.r.Routines))
	parallel.Each(len(names), func(i int) {
		if names[i] = l.names(l.r.Routines[i], twice); names[i] {
			own[i] = l.loadsForCalls(l.r.Routines[i], twice)
		}
	})
	pointed := l.facts.TwicePointed || l.r.File.HoldsAny(maps.Keys(twice)) ||
		l.r.Survey != nil && l.mayBeNamed(twice)
	for i, d := range l.r.Routines {
		if own[i] {
			l.facts.LoadsTwice[d.Made.ID] = true
		}
		pointed = pointed || names[i] && !own[i] || twice[d.Addr] && l.pointers.isTaken(d)
	}
	if pointed {
		l.facts.TwicePointed = true
		l.addIndirectJumps(twice)
		l.spread(jumps, twice)
	}
	for _, addr := range slices.Collect(maps.Keys(twice)) {
		l.r.EachEntryOutside(addr, func(entry uint64) { twice[entry] = true })
	}
}

// mayBeNamed says whether a routine that is not recovered may name one of some addresses, or is one
// of them.
func (l *linkage) mayBeNamed(addrs map[uint64]bool) bool {
	for addr := range addrs {
		piece := l.code.FindPiece(addr)
		if l.r.File.InsnReferences.Has(addr) ||
			piece >= 0 && !l.r.IsKnown(l.code.Pieces[piece].Routine) {
			return true
		}
	}
	return false
}

// addIndirectJumps adds the routines that may end by a jump to where a register or memory says.
func (l *linkage) addIndirectJumps(twice map[uint64]bool) {
	for _, d := range l.r.Routines {
		if l.mayJumpIndirectly(d) {
			twice[d.Addr] = true
		}
	}
	l.r.EachIndirectOutside(func(addr uint64) { twice[addr] = true })
}

// loadsForCalls says whether a routine does nothing with the addresses of some functions but load
// them, each into a register that calls spare and that nothing but calls uses: as compilers do it
// for many calls through one slot.
func (l *linkage) loadsForCalls(d *draft.Routine, addrs map[uint64]bool) bool {
	if l.isUnknown(d) {
		return false
	}
	held, work := make([]x86.Set, len(d.Blocks)), make([]int, len(d.Blocks))
	for b := range work {
		work[b] = b
	}
	for len(work) > 0 {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		holds, only := l.passLoads(d, b, held[b], addrs)
		if !only {
			return false
		}
		for _, to := range slices.Concat(d.Blocks[b].Succ, d.Blocks[b].Pads) {
			if to >= 0 && held[to]|holds != held[to] {
				held[to] |= holds
				work = append(work, to)
			}
		}
	}
	return true
}

// passLoads returns the registers that may hold one of the addresses when block b has run, of those
// that do when it begins; only: nothing but calls uses them.
func (l *linkage) passLoads(d *draft.Routine, b int, holds x86.Set,
	addrs map[uint64]bool) (after x86.Set, only bool) {
	for k := range d.Blocks[b].Insns {
		i := int(d.First[b]) + k
		e := l.code.Effects(i)
		switch {
		case l.insnNames(i, addrs):
			if !isLoad(&e) || !x86.CalleeSaved.Has(e.Dst.Reg) {
				return 0, false
			}
			holds |= x86.SetOf(e.Dst.Reg)
		case e.Kind != x86.CallInd:
			if holds &^= replaced(&e); holds&e.Named() != 0 {
				return 0, false
			}
		}
	}
	return holds, true
}

// mayJumpIndirectly says whether a routine may end by a jump to where a register or memory says.
func (l *linkage) mayJumpIndirectly(d *draft.Routine) bool {
	return d.Has(cfg.TailInd) || l.isUnknown(d) && l.hasInsn(d,
		func(i int) bool { return l.code.Insns[i].Kind == x86.JmpInd })
}

// names says whether an instruction of the routine takes one of the addresses, or loads from it.
func (l *linkage) names(d *draft.Routine, addrs map[uint64]bool) (found bool) {
	l.eachName(d, func(addr uint64) { found = found || addrs[addr] })
	return found
}

// eachName calls back for each address that an instruction of the routine takes or loads from,
// calls and jumps apart, and for what is in a slot there.
func (l *linkage) eachName(d *draft.Routine, visit func(addr uint64)) {
	l.hasInsn(d, func(i int) bool {
		l.eachInsnName(i, visit)
		return false
	})
}

func (l *linkage) eachInsnName(i int, visit func(addr uint64)) {
	if q := &l.code.Insns[i]; q.Kind != x86.CallInd && q.Kind != x86.JmpInd {
		sweep.EachOperand(q, l.code.Bytes(i), !l.r.File.Image.PIE,
			func(addr uint64) { l.eachNamed(addr, visit) })
	}
}

// insnNames says whether an instruction takes one of the addresses, or loads from it.
func (l *linkage) insnNames(i int, addrs map[uint64]bool) (found bool) {
	l.eachInsnName(i, func(addr uint64) { found = found || addrs[addr] })
	return found
}

// hasInsn says whether any instruction of a routine that may run is of a kind.
func (l *linkage) hasInsn(d *draft.Routine, is func(i int) bool) bool {
	return slices.ContainsFunc(d.Pieces, func(k int) bool {
		for i := l.code.Pieces[k].First; i < l.code.Pieces[k].Last; i++ {
			if l.mayRun(i) && is(i) {
				return true
			}
		}
		return false
	})
}
