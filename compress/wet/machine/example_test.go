package machine_test

import (
	"fmt"

	"wpptrace/compress/wet/machine"
)

// nothing is a memory of which nothing is known.
type nothing struct{}

func (nothing) Load(uint64, []byte) machine.Knowledge   { return machine.Unknown }
func (nothing) Store(uint64, []byte, machine.Knowledge) {}

func Example() {
	m := machine.New()
	m.SetGeneral(machine.RSP, 0x7ff0, machine.Confirmed)
	m.SetGeneral(machine.RAX, 1, machine.Unconfirmed)
	push := machine.Insn{Op: machine.Push, Len: 1, Size: 8,
		Src: machine.Operand{Class: machine.General, Size: 8, Reg: machine.RAX}}
	m.Step(&push, 0x401001, nothing{})
	for _, a := range m.Accesses() {
		fmt.Printf("w[%x:%d]=%x, known: %d of %d\n", a.Addr, a.Size, a.Bytes[:a.Size], a.Known,
			machine.Confirmed)
	}
	// Output: w[7fe8:8]=0100000000000000, known: 1 of 3
}
