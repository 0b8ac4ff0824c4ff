package cfg

import (
	"slices"

	"wpptrace/loader/x86"
)

// isReturnsTwiceSymbol says whether a function of that name may return more than once.
func isReturnsTwiceSymbol(name string) bool {
	switch name {
	case "setjmp", "_setjmp", "__setjmp", "sigsetjmp", "__sigsetjmp", "getcontext", "__getcontext", "swapcontext",
		"__swapcontext", "vfork", "__vfork", "__libc_vfork", "savectx":
		return true
	}
	return false
}

// ReturnsTwice says whether the routine may return more than once for one call, as setjmp and vfork
// do: it stores its return address, is known by name, or ends by a jump to one that does. So may
// code in no routine. Imported functions are not the program's to know.
func (p *Program) ReturnsTwice(entry uint64) bool { return p.twice[entry] }

// CallReturnsTwice says whether the call that ends a block may return more than once. A call
// through a register or a pointer may, if the routine names such a function otherwise than by
// calling it: compilers load its address once for many calls.
func (p *Program) CallReturnsTwice(r *Routine, block int) bool {
	end := r.Blocks[block].End
	if end != Call && end != CallInd {
		return false
	}
	switch callee, name := p.Callee(r, block); {
	case name != "":
		return isReturnsTwiceSymbol(name)
	case callee != nil:
		return p.twice[callee.Addr]
	case end == Call: // of what is in no routine
		return p.twice[r.Blocks[block].Target]
	}
	return p.naming[r.ID]
}

// findTwice finds what may return twice besides those known by name or by what they do with their
// return address, and the routines that name one.
func (l *linkage) findTwice() {
	twice := l.program.twice
	for addr, name := range l.imports {
		if isReturnsTwiceSymbol(name) {
			twice[addr] = true
		}
	}
	if len(twice) == 0 {
		return
	}
	jumps := l.tailJumps()
	again := true
	for round := 0; again; round++ {
		jumps.spread(twice)
		again = false
		for _, d := range l.drafts {
			if !twice[d.addr] && l.mayJumpIndirectly(d) && (round >= mostRounds || l.names(d, twice)) {
				twice[d.addr], again = true, true
			}
		}
	}
	for _, d := range l.drafts {
		if d.has(CallInd) && l.names(d, twice) {
			l.program.naming[d.made.ID] = true
		}
	}
}

// mayJumpIndirectly says whether a routine may end by a jump to where a register or memory says.
func (l *linkage) mayJumpIndirectly(d *draft) bool {
	return d.has(TailInd) || l.isUnknown(d) && l.hasInsn(d, func(i int) bool { return l.insns[i].Kind == x86.JmpInd })
}

func (d *draft) has(end End) bool {
	return slices.ContainsFunc(d.blocks, func(b Block) bool { return b.End == end })
}

// names says whether an instruction of the routine takes one of the addresses, or loads from it.
func (l *linkage) names(d *draft, addrs map[uint64]bool) bool {
	return l.hasInsn(d, func(i int) bool {
		switch q := &l.insns[i]; {
		case q.Kind == x86.CallInd || q.Kind == x86.JmpInd:
			return false
		case isRIPRelative(&q.Inst):
			_, rm, _ := l.operands(i)
			in := l.program.inSlot(uint64(rm.Disp))
			return addrs[uint64(rm.Disp)] || in != nil && addrs[in.Addr]
		case !l.im.PIE:
			n := addressImmediate(&q.Inst)
			return n > 0 && addrs[immediate(l.bytes(i), n)]
		}
		return false
	})
}

// hasInsn says whether any instruction of a routine that may run is of a kind.
func (l *linkage) hasInsn(d *draft, is func(i int) bool) bool {
	return slices.ContainsFunc(d.pieces, func(k int) bool {
		for i := l.pieces[k].first; i < l.pieces[k].last; i++ {
			if l.mayRun(i) && is(i) {
				return true
			}
		}
		return false
	})
}
