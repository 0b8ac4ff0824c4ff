package plan

import (
	"wpptrace/loader/arch"
	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/x86"
)

// A Capture is what the events of a site record besides the outcome: a value, which is read from
// registers or from memory at the hit. Encode says how the kernel reads it, Decode and
// Registers.Value what follows from it; nothing else knows either.
type Capture struct {
	Kind CaptureKind
	// Operand is what is read, but for LoopRegisters.
	Operand x86.Operand
	// Table is the block with the switch's jump, of SwitchIndex and SwitchTarget; else -1.
	Table int
	// Bias makes of a SwitchIndex the position in the table: value + Bias, modulo
	// 2^(8*Operand.Size).
	Bias int64
	// Taken is the outcome with which control goes to the switch, of SwitchIndex: with the other
	// nothing is recorded.
	Taken bool
	// Jumps are the blocks whose conditional jumps a JumpPlace decides, until the next event of the
	// activation. At most 64.
	Jumps []int
	// Registers are what LoopRegisters reads.
	Registers Registers
}

// A CaptureKind says what a captured value decides.
type CaptureKind uint8

// The kinds of captured values.
const (
	SwitchIndex CaptureKind = iota + 1 // the way of a switch: its index, read at the bounds check
	// the way of a switch: the address jumped to, read at the jump
	SwitchTarget
	// the ways of conditional jumps ahead, which ask for nothing but this place
	JumpPlace
	LoopRegisters // the rounds of loops that have no probe
)

// Registers are one register, or the difference of two, by their hardware numbers.
type Registers struct {
	Reg   int8
	Minus int8        // what is subtracted; NoRegister: nothing
	Part  absint.Part // of Reg; absint.Whole, if something is subtracted
}

// NoRegister is no register.
const NoRegister = -1

// RegistersOf returns what has to be read to know a function of registers: times, and plus,
// constants. ok is false if it is more than one value.
func RegistersOf(v absint.Linear) (x Registers, ok bool) {
	stackPointer := int8(arch.Native.StackPointer())
	reg, part, ok := v.Terms[0].Symbol.Register()
	if ok = ok && reg != stackPointer; v.N == 1 {
		return Registers{reg, NoRegister, part}, ok
	}
	minus, others, isRegister := v.Terms[1].Symbol.Register()
	ok = ok && isRegister && minus != stackPointer && part == absint.Whole && others == absint.Whole
	return Registers{reg, minus, absint.Whole}, ok && v.N == 2 &&
		v.Terms[0].Times == -v.Terms[1].Times
}

// CaptureBits are what an event has of a captured value: the low ones.
const CaptureBits = 60

// An Encoding is how the kernel finds a captured value: what the fields and flags of its site say.
// The value is the low Size bytes of a register, or those at an address, zero-extended, in
// CaptureBits.
type Encoding struct {
	Always bool // it is read whatever the outcome; else only with the outcome Taken
	Taken  bool
	Memory bool  // it lies at Reg + Index*Scale + Disp; else it is Reg - Index
	RIP    bool  // Disp is relative to the image
	Target bool  // it is an address of the image, from which the bias is subtracted
	Reg    int8  // hardware number, or NoRegister
	Index  int8  // hardware number, or NoRegister
	Scale  uint8 // 1, 2, 4 or 8 in memory
	Size   uint8 // bytes: 1, 2, 4 or 8
	Disp   int32
}

// Encode says how the kernel reads the value.
func (c *Capture) Encode() Encoding {
	if x := c.Registers; c.Kind == LoopRegisters {
		e := Encoding{Always: true, Reg: x.Reg, Index: x.Minus, Size: 8}
		if x.Part != absint.Whole {
			e.Size = 4
		}
		return e
	}
	o := c.Operand
	e := Encoding{
		Always: c.Kind == JumpPlace, Taken: c.Taken, Target: c.Kind == SwitchTarget,
		Memory: o.Mem, Reg: o.Reg, Index: NoRegister, Size: o.Size,
	}
	if o.Mem {
		e.RIP, e.Reg, e.Index, e.Scale, e.Disp = o.RIP, o.Base, o.Index, o.Scale, int32(o.Disp)
	}
	return e
}

// Decode returns what a value that was read so decides, as a number that Ways takes: the block that
// the switch goes to, or a bit for each of Jumps, 1 if it is taken. ok is false if the value is
// none that the operand can have, or the switch. LoopRegisters decide no way.
func (c *Capture) Decode(r *Routine, value uint64) (decision uint64, ok bool) {
	switch c.Kind {
	case SwitchIndex:
		targets := r.Blocks[c.Table].Table.Targets
		i := (value + uint64(c.Bias)) & (1<<min(8*uint(c.Operand.Size), CaptureBits) - 1)
		if i >= uint64(len(targets)) {
			return 0, false
		}
		return uint64(targets[i]), true
	case SwitchTarget:
		for _, b := range r.Blocks[c.Table].Succ {
			if r.Blocks[b].Lo == value {
				return uint64(b), true
			}
		}
	case JumpPlace:
		for i, j := range c.Jumps {
			if r.Asks(j).Holds(value) {
				decision |= 1 << i
			}
		}
		return decision, value>>(8*c.Operand.Size) == 0
	}
	return 0, false
}

// A Way is where a block goes that ends in a switch or a conditional jump.
type Way struct {
	Block int
	Next  []int // one node: a block, or cfg.Exit
}

// Ways are what a decision stands for.
func (c *Capture) Ways(r *Routine, decision uint64) []Way {
	if c.Kind != JumpPlace {
		return []Way{{c.Table, []int{int(decision)}}}
	}
	ways := make([]Way, len(c.Jumps))
	for i, j := range c.Jumps {
		ways[i] = Way{j, r.Blocks[j].Succ[1:]}
		if decision>>i&1 == 1 {
			ways[i].Next = r.Blocks[j].Succ[:1]
		}
	}
	return ways
}

// Value is what the registers held, of what an event recorded: of all 64 bits the low ones that it
// has.
func (x *Registers) Value(captured uint64) uint64 { return x.Part.Of(captured) }
