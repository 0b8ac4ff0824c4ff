package values

import (
	"testing"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
)

// TestNotEmulated: what is not emulated is counted by its name.
func TestNotEmulated(t *testing.T) {
	k := newKnown()
	load := machine.OpaqueInsn(2, machine.X87, machine.Set{}, machine.Operand{})
	for _, in := range []*machine.Insn{&load, &load, {Op: machine.Opaque, Cause: machine.Clock},
		{Op: machine.NoOp}} {
		k.add(&wet.Executed{Code: in}, noCause)
	}
	if k.Instructions != 4 || len(k.NotEmulated) != 2 || k.NotEmulated[machine.X87] != 2 ||
		k.NotEmulated[machine.Clock] != 1 {
		t.Errorf("%+v", k)
	}
}
