package absint

import "wpptrace/loader/x86"

// Keeps reports whether an instruction surely leaves a place alone: a register, or one in the
// routine's own frame. It may call nothing, and for the latter store nowhere but in other places of
// the frame.
func Keeps(e *x86.Effects, place x86.Operand) bool {
	if !place.Mem {
		return !e.Calls() && !e.Written().Has(place.Reg)
	}
	_, _, stores := e.Stores()
	return keepsFrame(e) && (!stores || storesBeside(e, place))
}

// keepsFrame reports whether an instruction leaves rsp and rbp alone, and all memory but its
// operand.
func keepsFrame(e *x86.Effects) bool {
	delta, ok := e.StackDelta()
	switch {
	case e.Kind == x86.Jcc, e.Kind == x86.Jmp:
		return true
	case !ok || delta != 0 || e.Written().Has(x86.RBP), e.Calls():
		return false
	}
	return !e.StoresUnseen()
}

// storesBeside reports whether a store goes to another place in the frame.
func storesBeside(e *x86.Effects, place x86.Operand) bool {
	to, bytes, _ := e.Stores()
	if e.Far() || e.Elsewhere() || to.Base != place.Base || to.Index >= 0 {
		return false
	}
	return to.Disp+int64(bytes) <= place.Disp || place.Disp+int64(place.Size) <= to.Disp
}
