package code_test

import (
	"fmt"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/decoder/code"
	"wpptrace/loader/x86"
)

func ExampleInsn() {
	raw := []byte{0x48, 0x01, 0xd8} // add %rbx,%rax
	in, _ := x86.Decode(raw)
	add := code.Insn(&in, raw)

	m := machine.New()
	m.SetGeneral(machine.RAX, 2, machine.Confirmed)
	m.SetGeneral(machine.RBX, 3, machine.Unconfirmed)
	m.Step(&add, 0x401003, nil)
	fmt.Println(m.General(machine.RAX))
	// Output: 5 1
}

// A routine calls a stub that the program file names.
func ExampleCallees() {
	call := machine.Insn{Op: machine.Call, Len: 5, Imm: 0x2b,
		Src: machine.Operand{Class: machine.Immediate}}
	c := wet.NewCode(func(int) *wet.Routine {
		return &wet.Routine{Blocks: []wet.Block{{Addr: 0x1000, Insns: []machine.Insn{call}}}}
	})
	fmt.Println(code.Callees(c, 1, []map[uint64]string{{0x1030: "free", 0x1040: "malloc"}}))
	// Output: map[{0 4144}:free]
}
