package cfg

import "wpptrace/loader/x86"

// Main returns the routine that the C library calls when it has started, once, or nil: the one
// called main, or the first argument of what the code at the program's entry calls.
func (p *Program) Main() *Routine {
	for _, r := range p.Routines {
		if r.Symbol == "main" {
			return r
		}
	}
	return p.At(p.firstArgument(p.Image.Entry))
}

// firstArgument is the address that code has in rdi where it makes its first call, as far as it is in
// a straight line; 0 if that is not told.
func (p *Program) firstArgument(at uint64) (address uint64) {
	const most = 32 // instructions
	s := p.Image.SectionAt(at)
	if s == nil {
		return 0
	}
	code := s.Data[at-s.Addr:]
	for range most {
		q, ok := x86.Decode(code)
		if !ok || q.Kind != x86.Other {
			return address
		}
		at += uint64(q.Len)
		if to, ok := argument(&q, code[:q.Len], at); ok {
			address = to
		}
		code = code[q.Len:]
	}
	return 0
}

// argument is the address that an instruction, behind which next is, puts into rdi.
func argument(q *x86.Inst, code []byte, next uint64) (address uint64, ok bool) {
	const rdi = 7
	reg, rm, _ := q.Operands(code, next)
	switch {
	case q.Map != 0:
	case q.Op == 0x8d && reg == rdi && rm.RIP: // lea
		return uint64(rm.Disp), true
	case q.Op == 0xc7 && !rm.Mem && rm.Reg == rdi, q.Op == 0xb8+rdi && q.Rex&9 == 0: // mov
		return immediate(code, 4), true
	}
	return 0, false
}
