package cfg

import (
	"iter"
	"maps"
	"slices"

	"wpptrace/internal/parallel"
	"wpptrace/loader/x86"
)

// isReturnsTwiceSymbol says whether a function of that name may return more than once.
func isReturnsTwiceSymbol(name string) bool {
	switch name {
	case "setjmp", "_setjmp", "__setjmp", "sigsetjmp", "__sigsetjmp", "getcontext", "__getcontext",
		"swapcontext",
		"__swapcontext", "vfork", "__vfork", "__libc_vfork", "savectx", "_ITM_beginTransaction",
		"unw_getcontext", "__unw_getcontext", "_Ux86_64_getcontext":
		return true
	}
	return false
}

// ReturnsTwice says whether the routine may return more than once for one call, as setjmp and vfork
// do: it stores its return address, is known by name, or ends by a jump to one that does. So may
// code in no routine. Imported functions are not the program's to know.
func (p *Program) ReturnsTwice(entry uint64) bool { return p.facts.Twice[entry] }

// CallReturnsTwice says whether the call that ends a block may return more than once. A call
// through a register or a pointer may, if anything names such a function otherwise than by calling
// it: compilers load its address once for many calls, and tables of functions hold it.
func (p *Program) CallReturnsTwice(r *Routine, block int) bool {
	end := r.Blocks[block].End
	if end != Call && end != CallInd {
		return false
	}
	switch callee, name := p.Callee(r, block); {
	case name != "":
		return isReturnsTwiceSymbol(name)
	case callee != nil:
		return p.facts.Twice[callee.Addr]
	case end == Call: // of what is in no routine
		return p.facts.Twice[r.Blocks[block].Target]
	}
	return p.facts.TwicePointed || p.facts.LoadsTwice[r.ID]
}

// findTwice finds what may return twice besides those known by name or by what they do with their
// return address, and whether anything names one.
func (l *linkage) findTwice() {
	twice := l.facts.Twice
	for addr, name := range l.r.file.imports {
		if isReturnsTwiceSymbol(name) {
			twice[addr] = true
		}
	}
	l.facts.TwicePointed = l.r.holdsTwice()
	if len(twice) == 0 && !l.facts.TwicePointed {
		return
	}
	jumps := l.tailJumps()
	jumps.spread(twice)
	names, own := make([]bool, len(l.r.drafts)), make([]bool, len(l.r.drafts))
	parallel.Each(len(names), func(i int) {
		if names[i] = l.names(l.r.drafts[i], twice); names[i] {
			own[i] = l.loadsForCalls(l.r.drafts[i], twice)
		}
	})
	pointed := l.facts.TwicePointed || l.r.file.holdsAny(maps.Keys(twice))
	for i, d := range l.r.drafts {
		if own[i] {
			l.facts.LoadsTwice[d.made.ID] = true
		}
		pointed = pointed || names[i] && !own[i] || twice[d.addr] && l.pointers.isTaken(d)
	}
	if pointed {
		l.facts.TwicePointed = true
		l.addIndirectJumps(twice)
		jumps.spread(twice)
	}
}

// addIndirectJumps adds the routines that may end by a jump to where a register or memory says.
func (l *linkage) addIndirectJumps(twice map[uint64]bool) {
	for _, d := range l.r.drafts {
		if l.mayJumpIndirectly(d) {
			twice[d.addr] = true
		}
	}
}

// loadsForCalls says whether a routine does nothing with the addresses of some functions but load
// them, each into a register that calls spare and that nothing but calls uses: as compilers do it
// for many calls through one slot.
func (l *linkage) loadsForCalls(d *draft, addrs map[uint64]bool) bool {
	if l.isUnknown(d) {
		return false
	}
	held, work := make([]x86.Set, len(d.blocks)), make([]int, len(d.blocks))
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
		for _, to := range slices.Concat(d.blocks[b].Succ, d.blocks[b].Pads) {
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
func (l *linkage) passLoads(d *draft, b int, holds x86.Set,
	addrs map[uint64]bool) (after x86.Set, only bool) {
	for k := range d.blocks[b].Insns {
		i := int(d.first[b]) + k
		e := l.code.effects(i)
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

// findHoldsTwice says whether data or code in no routine names a function of another image that may
// return more than once, its stub, or its slot.
func (f *file) findHoldsTwice() bool {
	twice := map[uint64]bool{}
	for addr, name := range f.imports {
		if isReturnsTwiceSymbol(name) {
			twice[addr] = true
		}
	}
	if slices.ContainsFunc(f.im.Foreign(), isReturnsTwiceSymbol) || f.holdsAny(maps.Keys(twice)) {
		return true
	}
	named := false
	if len(twice) > 0 {
		f.code.eachNamedUncovered(f.im, func(addr uint64) { named = named || twice[addr] })
	}
	return named
}

// holdsAny says whether data holds one of some addresses of code, or code in no routine names it.
func (f *file) holdsAny(addrs iter.Seq[uint64]) bool {
	for addr := range addrs {
		if in := f.im.SectionAt(addr); in != nil && in.Exec && f.dataReferences.has(addr) {
			return true
		}
	}
	return false
}

// mayCallWhatReturnsTwice says whether a routine whose blocks are built may call a function that
// returns more than once, as far as that is known before all are: by its name, or since it keeps
// its return address. A call through a register may, if anything names such a function.
func (r *recovery) mayCallWhatReturnsTwice(d *draft) bool {
	return slices.ContainsFunc(d.blocks, func(b Block) bool {
		if !b.CallReturns() {
			return false
		}
		i := r.code.find(b.Insns[len(b.Insns)-1].Addr)
		switch name := r.file.imported(i); {
		case name != "":
			return isReturnsTwiceSymbol(name)
		case b.End == Call:
			to := r.code.insns[i].target()
			return r.mayReturnTwice(to) || r.returns.returnUse(to).jumps && r.namesTwice()
		}
		return r.namesTwice()
	})
}

// findNamesTwice says whether anything but a direct call or jump names a function that may return
// more than once, or the slot of one.
func (r *recovery) findNamesTwice() bool {
	for addr, name := range r.file.imports {
		if isReturnsTwiceSymbol(name) && r.file.insnReferences.has(addr) {
			return true
		}
	}
	for k := range r.code.pieces {
		if lo := r.code.pieces[k].Lo; (r.file.dataReferences.has(lo) ||
			r.file.insnReferences.has(lo)) && r.mayReturnTwice(lo) {
			return true
		}
	}
	return r.holdsTwice()
}

// mayReturnTwice says whether the function at an address, one of this file, may return more than
// once, as far as that is known before its frame is: it uses its return address.
func (r *recovery) mayReturnTwice(entry uint64) bool {
	piece := r.code.findPiece(entry)
	return piece >= 0 && isReturnsTwiceSymbol(r.code.pieces[piece].symbol) ||
		r.returns.returnUse(entry).saves
}

// mayJumpIndirectly says whether a routine may end by a jump to where a register or memory says.
func (l *linkage) mayJumpIndirectly(d *draft) bool {
	return d.has(TailInd) || l.isUnknown(d) && l.hasInsn(d,
		func(i int) bool { return l.code.insns[i].Kind == x86.JmpInd })
}

func (d *draft) has(end End) bool {
	for b := range d.blocks { // not by slices.ContainsFunc: it copies each block
		if d.blocks[b].End == end {
			return true
		}
	}
	return false
}

// names says whether an instruction of the routine takes one of the addresses, or loads from it.
func (l *linkage) names(d *draft, addrs map[uint64]bool) (found bool) {
	l.eachName(d, func(addr uint64) { found = found || addrs[addr] })
	return found
}

// eachName calls back for each address that an instruction of the routine takes or loads from,
// calls and jumps apart, and for what is in a slot there.
func (l *linkage) eachName(d *draft, visit func(addr uint64)) {
	l.hasInsn(d, func(i int) bool {
		l.eachInsnName(i, visit)
		return false
	})
}

func (l *linkage) eachInsnName(i int, visit func(addr uint64)) {
	if q := &l.code.insns[i]; q.Kind != x86.CallInd && q.Kind != x86.JmpInd {
		eachOperand(q, l.code.bytes(i), !l.r.file.im.PIE,
			func(addr uint64) { l.eachNamed(addr, visit) })
	}
}

// insnNames says whether an instruction takes one of the addresses, or loads from it.
func (l *linkage) insnNames(i int, addrs map[uint64]bool) (found bool) {
	l.eachInsnName(i, func(addr uint64) { found = found || addrs[addr] })
	return found
}

// hasInsn says whether any instruction of a routine that may run is of a kind.
func (l *linkage) hasInsn(d *draft, is func(i int) bool) bool {
	return slices.ContainsFunc(d.pieces, func(k int) bool {
		for i := l.code.pieces[k].first; i < l.code.pieces[k].last; i++ {
			if l.mayRun(i) && is(i) {
				return true
			}
		}
		return false
	})
}
