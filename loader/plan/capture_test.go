package plan

import (
	"testing"

	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/x86"
)

// read is what the kernel makes of an encoding, of a process that is loaded at bias.
func (e Encoding) read(regs *[16]uint64, memory map[uint64]uint64, bias uint64) uint64 {
	v := uint64(0)
	if e.Memory {
		address := uint64(int64(e.Disp))
		if e.RIP {
			address += bias
		}
		if e.Reg != NoRegister {
			address += regs[e.Reg]
		}
		if e.Index != NoRegister {
			address += regs[e.Index] * uint64(e.Scale)
		}
		v = memory[address]
	} else {
		v = regs[e.Reg]
		if e.Index != NoRegister {
			v -= regs[e.Index]
		}
	}
	v &= ^uint64(0) >> (64 - 8*uint(e.Size))
	if e.Target {
		v -= bias
	}
	return v & (1<<CaptureBits - 1)
}

// What the kernel reads by a capture's encoding decodes to what the registers and memory held.
func TestCaptureDecodesWhatItEncodes(t *testing.T) {
	const bias = 0x7f0000000000
	r := &Routine{Routine: &cfg.Routine{Blocks: []cfg.Block{
		{}, {Lo: 0x1010}, {Lo: 0x1020}, {Lo: 0x1030},
		{Lo: 0x1040, Succ: []int{1, 2, 3}, Table: &cfg.JumpTable{Targets: []int{3, 1, 1, 2}}},
	}}}
	regs := &[16]uint64{0: 0xffffffff00000007, 1: 8, 2: 3, 3: 0x5000, 6: bias + 0x1020}
	memory := map[uint64]uint64{bias + 0x2000: 0xaa06, 0x5000 + 3*8 + 16: bias + 0x1030}
	index := Capture{Kind: SwitchIndex, Table: 4, Bias: -5, Operand: x86.Operand{Reg: 0, Size: 4}}
	global := Capture{Kind: SwitchIndex, Table: 4, Bias: -5,
		Operand: x86.Operand{Mem: true, Base: -1, Index: -1, RIP: true, Disp: 0x2000, Size: 1}}
	beyond := Capture{Kind: SwitchIndex, Table: 4, Operand: x86.Operand{Reg: 1, Size: 8}}
	jump := Capture{Kind: SwitchTarget, Table: 4, Operand: x86.Operand{Reg: 6, Size: 8}}
	slot := Capture{Kind: SwitchTarget, Table: 4,
		Operand: x86.Operand{Mem: true, Base: 3, Index: 2, Scale: 8, Disp: 16, Size: 8}}
	nowhere := Capture{Kind: SwitchTarget, Table: 4, Operand: x86.Operand{Reg: 3, Size: 8}}
	for _, c := range []struct {
		name    string
		capture Capture
		block   uint64
		ok      bool
	}{
		{"an index in a register", index, 1, true},
		{"an index in a global", global, 1, true},
		{"an index beyond the table", beyond, 0, false},
		{"a target in a register", jump, 2, true},
		{"a target in memory", slot, 3, true},
		{"a target that is none", nowhere, 0, false},
	} {
		block, ok := c.capture.Decode(r, c.capture.Encode().read(regs, memory, bias))
		if block != c.block || ok != c.ok {
			t.Errorf("%s decides block %d, %t, want %d, %t", c.name, block, ok, c.block, c.ok)
		}
		if !ok {
			continue
		}
		if ways := c.capture.Ways(r, block); len(ways) != 1 || ways[0].Block != 4 ||
			ways[0].Next[0] != int(c.block) {
			t.Errorf("%s: the switch goes %v, want to %d", c.name, ways, c.block)
		}
	}
	for _, c := range []struct {
		registers Registers
		want      uint64
	}{
		{Registers{0, NoRegister, absint.Whole}, 0x0fffffff00000007},
		{Registers{0, NoRegister, absint.ZeroExtended}, 7},
		{Registers{1, 2, absint.Whole}, 5},
	} {
		capture := Capture{Kind: LoopRegisters, Registers: c.registers}
		if got := capture.Registers.Value(capture.Encode().read(regs, memory, bias)); got !=
			c.want {
			t.Errorf("%+v hold %#x, want %#x", c.registers, got, c.want)
		}
	}
}
