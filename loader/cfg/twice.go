package cfg

import (
	"maps"
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

// findNaming finds the routines that name a function which may return twice.
func (p *Program) findNaming() {
	twice := maps.Clone(p.twice) // entries, linkage stubs and slots
	for addr, name := range p.imports {
		if isReturnsTwiceSymbol(name) {
			twice[addr] = true
		}
	}
	if len(twice) == 0 {
		return
	}
	for _, r := range p.Routines {
		if hasIndirectCall(r) && p.names(r, twice) {
			p.naming[r.ID] = true
		}
	}
}

func hasIndirectCall(r *Routine) bool {
	return slices.ContainsFunc(r.Blocks, func(b Block) bool { return b.End == CallInd })
}

// names says whether an instruction of the routine takes one of the addresses, or loads from it.
func (p *Program) names(r *Routine, addrs map[uint64]bool) bool {
	for b := range r.Blocks {
		for k := range r.Blocks[b].Insns {
			q := &r.Blocks[b].Insns[k]
			switch {
			case q.Kind == x86.CallInd || q.Kind == x86.JmpInd:
			case isRIPRelative(&q.Inst):
				if _, rm, _ := q.Operands(p.Image.Bytes(q.Addr, q.end()), q.end()); addrs[uint64(rm.Disp)] || p.isTwiceSlot(uint64(rm.Disp)) {
					return true
				}
			case !p.Image.PIE:
				if n := addressImmediate(&q.Inst); n > 0 && addrs[immediate(p.Image.Bytes(q.Addr, q.end()), n)] {
					return true
				}
			}
		}
	}
	return false
}

func (p *Program) isTwiceSlot(addr uint64) bool {
	to := p.inSlot(addr)
	return to != nil && p.twice[to.Addr]
}

// spreadTwice marks the routines that end by a jump to one that may return twice.
func (p *Program) spreadTwice() {
	from := map[uint64][]uint64{} // tail callers
	for _, r := range p.Routines {
		for b := range r.Blocks {
			if bl := &r.Blocks[b]; bl.End == Tail || bl.End == Jcc && bl.Succ[0] < 0 {
				from[bl.Target] = append(from[bl.Target], r.Addr)
			}
		}
	}
	work := slices.Collect(maps.Keys(p.twice))
	for len(work) > 0 {
		to := work[len(work)-1]
		work = work[:len(work)-1]
		for _, caller := range from[to] {
			if !p.twice[caller] {
				p.twice[caller] = true
				work = append(work, caller)
			}
		}
	}
}
