package decoder_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wpptrace/bpf/wire"
	"wpptrace/loader/plan"
)

// calling calls functions that neither call back nor throw: in length, in the place of length_last's
// return, and twice in both.
const calling = `
	.macro function name
	.globl \name
	.type \name, @function
	\name:	.cfi_startproc
	.endm
	.macro framed
		sub $8, %rsp
		.cfi_def_cfa_offset 16
	.endm
	.macro leave
		add $8, %rsp
		.cfi_def_cfa_offset 8
		ret
		.cfi_endproc
	.endm
	.text
	function root
		framed
		test %edi, %edi
		je 1f
		call length
		nop
	1:	call length_last
		nop
		call both
		leave
	function on
		test %edi, %edi
		je 1f
		nop
	1:	ret
		.cfi_endproc
	.macro hidden name
	.type \name, @function
	\name:	.cfi_startproc
	.endm
	hidden length
		framed
		call strlen@plt
		leave
	hidden length_last
		jmp strlen@plt
		.cfi_endproc
	hidden both
		framed
		call strlen@plt
		call strlen@plt
		leave
	`

// TestInterruptedInWhatIsCalled: a function of a library that neither calls back nor throws faults.
// Where it was called is known by its return address, if its stack pointer points to that: the
// thread was said to have returned from all that led there, main included, and then a handler to have
// come, or nothing was said of what had led there.
func TestInterruptedInWhatIsCalled(t *testing.T) {
	p, err := assemble(t.TempDir(), calling)
	if err != nil {
		t.Fatal(err)
	}
	site := func(name string) int {
		return slices.IndexFunc(p.Sites, func(s plan.Site) bool { return p.Routines[s.Routine].Name == name && s.First })
	}
	const rootAt, handlerAt = 0x7ffc0000, 0x7ff00000
	const calledAt = rootAt - 16 // the CFA of what root calls
	behind := func(name string, bytes uint64) uint64 { return placeOf(p, name) + bytes }
	handler := wire.MakeWitness(site("on"), 0, handlerAt)
	for _, c := range []struct {
		name           string
		returns        uint64
		rsp            uint64
		handled, ended string // with a handler; at the thread's end
	}{
		{"called", behind("length", 9), calledAt - 24,
			"enter root, path, enter length, path, #handler, enter on, path, #cut",
			"enter root, path, enter length, path"},
		{"called last", behind("root", 19), calledAt - 8,
			"enter root, path, enter length, path, path, leave, path, enter length_last, path, leave, #handler, enter on, path, #cut",
			"enter root, path, enter length, path, path, leave, path, enter length_last, path, leave"},
		{"the second of two", behind("both", 14), calledAt - 24,
			"enter root, path, enter length, path, path, leave, path, enter length_last, path, leave, path, enter both, path, path, #handler, enter on, path, #cut",
			"enter root, path, enter length, path, path, leave, path, enter length_last, path, leave, path, enter both, path, path"},
		{"by another activation, as it seems", behind("length", 9), calledAt - 56,
			"enter root, path, #cut, #handler, enter on, #cut, path, #cut, #unwind, leave",
			"enter root, path, #cut, #cut"},
		{"nowhere, as it seems", behind("on", 2), calledAt - 24,
			"enter root, path, #cut, #handler, enter on, #cut, path, #cut, #unwind, leave",
			"enter root, path, #cut, #cut"},
	} {
		t.Run(c.name, func(t *testing.T) {
			words := []wire.Word{wire.MakeFrom(wire.Outside, 0), wire.MakeWitness(site("root"), 0, rootAt)}
			registers := registersAt(c.rsp)
			for end, want := range map[wire.Word]string{
				wire.MakeFrom(wire.Called, c.returns): c.handled,
				wire.MakeEnd(wire.Called, c.returns):  c.ended,
			} {
				said := slices.Concat(words, registers, []wire.Word{end})
				if end.Kind() == wire.From {
					said = append(said, handler)
				}
				if d := cmp.Diff(want, told(t, p, said...)); d != "" {
					t.Errorf("%v: %s", end, d)
				}
			}
		})
	}
}

// registersAt are the words of registers of which rsp alone holds something.
func registersAt(rsp uint64) (words []wire.Word) {
	for _, number := range wire.Registers {
		value := uint64(0)
		if number == 4 {
			value = rsp
		}
		words = append(words, wire.MakeRegister(value))
	}
	return words
}
