package code_test

import (
	"fmt"

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
