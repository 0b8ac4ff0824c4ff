package cfg

// IsReturnsTwiceSymbol says whether a function of that name may return more than once.
func IsReturnsTwiceSymbol(name string) bool {
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
		return IsReturnsTwiceSymbol(name)
	case callee != nil:
		return p.facts.Twice[callee.Addr]
	case end == Call: // of what is in no routine
		return p.facts.Twice[r.Blocks[block].Target]
	}
	return p.facts.TwicePointed || p.facts.LoadsTwice[r.ID]
}
