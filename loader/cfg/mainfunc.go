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

// firstArgument is the address that code has in rdi where it makes its first call, if a straight
// line leads there; 0 if that is not known.
func (p *Program) firstArgument(at uint64) (address uint64) {
	const most = 32 // instructions
	s := p.Image.SectionAt(at)
	if s == nil {
		return 0
	}
	code := s.Data[at-s.Addr:]
	for range most {
		q, ok := x86.Decode(code)
		switch {
		case ok && (q.Kind == x86.Call || q.Kind == x86.CallInd):
			return address
		case !ok || q.Kind != x86.Other:
			return 0
		}
		at += uint64(q.Len)
		if e := q.Effects(code[:q.Len], at); e.Written().Has(x86.RDI) {
			address = argument(&e)
		}
		code = code[q.Len:]
	}
	return 0
}

// argument is the address that an instruction puts into rdi; 0 if it is none.
func argument(e *x86.Effects) (address uint64) {
	switch {
	case e.Operation == x86.Lea && e.Src.RIP:
		return uint64(e.Src.Disp)
	case e.Operation == x86.Mov && e.HasImm:
		return uint64(e.Imm)
	}
	return 0
}
