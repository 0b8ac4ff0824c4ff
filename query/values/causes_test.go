package values

import (
	"testing"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
)

// TestCauses: what is not known has the cause of what it follows from, in registers and in memory.
func TestCauses(t *testing.T) {
	c := newCauses()
	c.all(Returned)
	register := func(n uint8) machine.Operand {
		return machine.Operand{Class: machine.General, Size: 8, Reg: n, Index: machine.Zero,
			Segment: machine.Zero}
	}
	memory := machine.Operand{Class: machine.Mem, Size: 8, Reg: machine.RSP, Index: machine.Zero,
		Segment: machine.Zero}
	access := func(write bool) []machine.Access {
		return []machine.Access{{At: machine.Confirmed, Addr: 64, Size: 8, Write: write}}
	}
	writes := func(n uint8) []wet.Register { return []wet.Register{{Number: n}} }
	move := func(dst, src machine.Operand) *machine.Insn {
		return &machine.Insn{Op: machine.Mov, Dst: dst, Src: src}
	}
	for i, x := range []struct {
		unknown uint32
		done    wet.Executed
		want    Cause
	}{
		{1 << machine.RAX, wet.Executed{Code: move(register(machine.RCX), register(machine.RAX)),
			Written: writes(machine.RCX)}, Returned},
		{0, wet.Executed{Code: move(register(machine.RDX), memory), Written: writes(machine.RDX),
			Accesses: access(false)}, Unread},
		{1<<machine.RCX | 1<<machine.RDX, wet.Executed{Code: move(memory, register(machine.RDX)),
			Accesses: access(true)}, Unread},
		{0, wet.Executed{Code: &machine.Insn{Op: machine.Opaque},
			Written: writes(machine.RSI)}, NotEmulated},
		{1 << machine.RSI, wet.Executed{Code: move(register(machine.RDI), register(machine.RSI)),
			Written: writes(machine.RDI)}, NotEmulated},
		{1 << machine.RDI, wet.Executed{Code: move(memory, register(machine.RDI)),
			Accesses: access(true)}, NotEmulated},
		{0, wet.Executed{Code: move(register(machine.RAX), memory), Written: writes(machine.RAX),
			Accesses: access(false)}, NotEmulated},
	} {
		c.unknown = x.unknown
		if got := c.executed(&x.done); got != x.want {
			t.Errorf("instruction %d: %v, want %v", i, got, x.want)
		}
	}
	c.lost = true
	if got := c.find(&wet.Executed{Code: &machine.Insn{Op: machine.NoOp}}); got != Lost {
		t.Errorf("lost: %v", got)
	}
}
