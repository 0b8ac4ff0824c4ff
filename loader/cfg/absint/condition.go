package absint

import (
	"iter"
	"math/bits"
	"slices"

	"wpptrace/loader/x86"
)

// A Condition is what a conditional jump asks, where the answer is a function of one place, as that
// is when control comes to the block: of the low half of a general register, or of a place in the
// routine's own frame that the block reads before it writes memory. The block computes with
// constants and compares with one.
type Condition struct {
	// a register, 4 bytes of it; or memory at rsp or rbp + displacement, 1, 2 or 4 bytes
	Place x86.Operand
	steps []step // the last one is the comparison
	code  uint8  // of the jump
}

// A step computes with a constant.
type step struct {
	kind stepKind
	size uint8 // bytes of what it reads
	by   uint64
}

type stepKind uint8

const (
	noStep stepKind = iota
	stepAdd
	stepSub
	stepAnd
	stepOr
	stepXor
	stepShl
	stepShr
	stepSar
	stepExtend // with the sign, to 4 bytes
	stepCopy
)

// do returns what the step makes of a value. Only the low bytes count that the step has.
func (s step) do(v uint64) uint64 {
	mask := uint64(1)<<(8*s.size) - 1
	up := 64 - 8*s.size
	v &= mask
	switch s.kind {
	case stepAdd:
		v += s.by
	case stepSub:
		v -= s.by
	case stepAnd:
		v &= s.by
	case stepOr:
		v |= s.by
	case stepXor:
		v ^= s.by
	case stepShl:
		v <<= s.by
	case stepShr:
		v >>= s.by
	case stepSar:
		v = uint64(int64(v<<up) >> up >> s.by)
	case stepExtend:
		return uint64(int64(v<<up)>>up) & (1<<32 - 1)
	}
	return v & mask
}

// Holds reports whether the jump is taken when the place holds a value.
func (c *Condition) Holds(value uint64) bool {
	last := len(c.steps) - 1
	for _, s := range c.steps[:last] {
		value = s.do(value)
	}
	cmp := c.steps[last]
	a, by := step{stepCopy, cmp.size, 0}.do(value), step{stepCopy, cmp.size, 0}.do(cmp.by)
	result := cmp.do(a)
	sign := 8*cmp.size - 1
	sf := result>>sign&1 == 1
	cf, of := false, false
	if cmp.kind == stepSub {
		cf, of = a < by, (a^by)&(a^result)>>sign&1 == 1
	}
	is := [...]bool{of, cf, result == 0, cf || result == 0, sf,
		bits.OnesCount8(uint8(result))%2 == 0, sf != of, result == 0 || sf != of}[c.code>>1]
	return is != (c.code&1 == 1)
}

// A formula is a place and what has been computed of it. nil is any other value.
type formula struct {
	place x86.Operand
	steps []step
}

func (f *formula) then(kind stepKind, size uint8, by uint64) *formula {
	if f == nil {
		return nil
	}
	return &formula{f.place, append(slices.Clip(f.steps), step{kind, size, by})}
}

// ConditionOf returns what a conditional jump asks, by its condition code, behind the other
// instructions of its block; nil if that is none, or no function of one place.
func ConditionOf(before iter.Seq[x86.Effects], code uint8) *Condition {
	e := evaluation{regs: held}
	for in := range before {
		e.step(&in)
	}
	if e.flags == nil {
		return nil
	}
	return &Condition{Place: e.flags.place, steps: e.flags.steps, code: code}
}

// held are what general registers hold: themselves.
var held = func() (regs [16]*formula) {
	for reg := range regs {
		regs[reg] = &formula{place: x86.Operand{Reg: int8(reg), Base: x86.NoRegister,
			Index: x86.NoRegister, Size: 4}}
	}
	return regs
}()

// An evaluation follows the instructions of a block.
type evaluation struct {
	regs  [16]*formula
	flags *formula // the last step is the comparison that they are of
	moved bool     // memory, rsp or rbp may have been written
}

func (e *evaluation) step(in *x86.Effects) {
	to, value, flags := e.compute(in)
	if in.FlagsWritten()&^x86.DF != 0 {
		e.flags = flags
	}
	if !e.moved {
		_, _, stores := in.Stores()
		e.moved = stores || !keepsFrame(in)
	}
	for written := in.Written(); written != 0; written &= written - 1 {
		e.regs[bits.TrailingZeros16(uint16(written))] = nil
	}
	if to >= 0 && to != x86.RSP && to != x86.RBP {
		e.regs[to] = value
	}
}

// read returns what an operand holds.
func (e *evaluation) read(o x86.Operand) *formula {
	switch {
	case o.Size > 4:
		return nil
	case o.Mem:
		if e.moved || o.RIP || o.Index >= 0 || o.Base != x86.RSP && o.Base != x86.RBP {
			return nil
		}
		return &formula{place: o}
	case o.Reg >= x86.AH:
		return nil
	}
	return e.regs[o.Reg]
}

// compute returns which register, all of it, an instruction writes (-1: none) and with what, and
// what the flags compare then.
func (e *evaluation) compute(in *x86.Effects) (to int8, value, flags *formula) {
	size, to := in.Dst.Size, int8(-1)
	if size == 4 {
		to = in.Dst.Reg
	}
	switch operation := in.Operation; {
	case in.Elsewhere():
	case operation == x86.MovZX:
		return to, e.read(in.Src).then(stepCopy, in.Src.Size, 0), nil
	case operation == x86.MovSX:
		return to, e.read(in.Src).then(stepExtend, in.Src.Size, 0), nil
	case operation == x86.Mov && !in.HasImm && to >= 0 && (in.Src.Mem || in.Src.Reg >= 0):
		return to, e.read(in.Src), nil
	case operation == x86.Test && (in.HasImm || !in.Dst.Mem && in.Src == in.Dst):
		by := ^uint64(0)
		if in.HasImm {
			by = uint64(in.Imm)
		}
		return -1, nil, e.read(in.Dst).then(stepAnd, size, by)
	case in.HasImm && to >= 0 && shiftOf(operation) != noStep:
		return to, e.read(in.Dst).then(shiftOf(operation), size, uint64(in.Imm)&31), nil
	case in.HasImm && arithmeticOf(operation) != noStep:
		return e.arithmetic(in, to)
	}
	return -1, nil, nil
}

// shiftOf is the step that a shift by a constant is, or noStep.
func shiftOf(operation x86.Operation) stepKind {
	switch operation {
	case x86.Shl:
		return stepShl
	case x86.Shr:
		return stepShr
	case x86.Sar:
		return stepSar
	}
	return noStep
}

// arithmeticOf is the step that an operation with a constant is, or noStep.
func arithmeticOf(operation x86.Operation) stepKind {
	switch operation {
	case x86.Add:
		return stepAdd
	case x86.Or:
		return stepOr
	case x86.And:
		return stepAnd
	case x86.Sub, x86.Cmp:
		return stepSub
	case x86.Xor:
		return stepXor
	}
	return noStep
}

// arithmetic computes with an operand and the instruction's constant.
func (e *evaluation) arithmetic(in *x86.Effects, to int8) (reg int8, value, flags *formula) {
	value = e.read(in.Dst).then(arithmeticOf(in.Operation), in.Dst.Size, uint64(in.Imm))
	switch in.Operation {
	case x86.Cmp:
		return -1, nil, value
	case x86.Sub, x86.And:
		flags = value
	case x86.Xor, x86.Or:
		flags = value.then(stepAnd, in.Dst.Size, ^uint64(0))
	}
	if to < 0 {
		return -1, nil, flags
	}
	return to, value, flags
}
