package values

import (
	"slices"

	"wpptrace/compress/ops"
	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
)

// constant are functions of the C library that return the same in a thread, always: where it has
// variables of its own.
var constant = []string{"__errno_location", "__ctype_b_loc", "__ctype_tolower_loc",
	"__ctype_toupper_loc"}

// copiers are functions of the C library that return what they are passed first.
var copiers = []string{"strcpy", "strcat", "strncpy", "strncat", "memcpy", "memmove", "memset",
	"__strcpy_chk", "__strcat_chk", "__strncpy_chk", "__strncat_chk", "__memcpy_chk",
	"__memmove_chk", "__memset_chk"}

// A returned is what a constant function returns to a thread.
type returned struct {
	value uint64
	no    bool // it is not constant
}

// constant has a recovery know what a constant function returns, of which one has been seen, or
// what one returns that was passed that; or notes the former. at is behind external code, perhaps
// such a function.
func (o *oracle) constant(at wet.Place, b *backwards, m *machine.Machine, v *wet.Recovery) {
	name := o.returnedFrom(at)
	guess := func(is uint64) {
		if _, k := m.General(machine.RAX); k == machine.Unknown {
			v.Registers |= 1 << machine.RAX
			v.Unsure |= 1 << machine.RAX
			v.Values[machine.RAX] = is
		}
	}
	const rax = 1 << machine.RAX
	switch {
	case slices.Contains(copiers, name):
		if is, ok := o.thread.walker.Passed(machine.RDI); ok && b.known&rax == 0 {
			guess(is)
		}
		return
	case !slices.Contains(constant, name):
		return
	}
	was, has := o.returned[name]
	switch now := b.values[machine.RAX]; {
	case b.known&rax == 0:
		if has && !was.no {
			guess(was.value)
		}
	case b.unsure&rax != 0:
	case !has:
		if o.returned == nil {
			o.returned = map[string]returned{}
		}
		o.returned[name] = returned{value: now}
	case now != was.value:
		o.returned[name] = returned{no: true}
	}
}

// returnedFrom names the function of another image that has returned to a place; "": none, or it is
// not known.
func (o *oracle) returnedFrom(at wet.Place) string {
	p := o.ahead[0].path
	if p == nil || p.Start == ops.StartEntry || at.Insn != 0 || at.Block == 0 {
		return ""
	}
	code, err := o.recorder.routine(at.Routine)
	if err != nil {
		return ""
	}
	b := &code.Blocks[at.Block-1]
	end := b.Addr
	for i := range b.Insns {
		end += uint64(b.Insns[i].Len)
	}
	if len(b.Insns) == 0 || end != code.Blocks[at.Block].Addr {
		return ""
	}
	call := &b.Insns[len(b.Insns)-1]
	to := end + uint64(call.Imm)
	switch {
	case call.Op != machine.Call:
		return ""
	case call.Src.Class == machine.Mem && call.Src.Reg == machine.Next:
		to = end + uint64(call.Src.Disp)
	case call.Src.Class != machine.Immediate:
		return ""
	}
	return o.recorder.plan.Base.Parts[code.Image].Program.Image.Imports()[to]
}
