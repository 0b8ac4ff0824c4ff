package cfg

import (
	"math/bits"
	"slices"

	"wpptrace/loader/x86"
)

// A Condition is what a conditional jump asks, where the answer is a function of one place, as that
// is when control comes to the block: of the low half of a general register, or of a place in the
// routine's own frame that the block reads before it writes memory. The block computes with
// constants and compares with one.
type Condition struct {
	Place x86.Operand // a register, 4 bytes of it; or memory at rsp or rbp + displacement, 1, 2 or 4 bytes
	steps []step      // the last one is the comparison
	code  uint8       // of the jump
}

// A step computes with a constant.
type step struct {
	kind stepKind
	size uint8 // bytes of what it reads
	by   uint64
}

type stepKind uint8

const (
	stepAdd stepKind = iota
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
	is := [...]bool{of, cf, result == 0, cf || result == 0, sf, bits.OnesCount8(uint8(result))%2 == 0, sf != of, result == 0 || sf != of}[c.code>>1]
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

// Conditions returns by block what the jump that ends it asks; nil for one that asks for anything
// else, or is none. None asks for a place in the frame in a routine that takes an address in it:
// then others may know the place. Cost: the length of the routine.
func (r *Routine) Conditions() []*Condition {
	list := make([]*Condition, len(r.Blocks))
	inFrame := false
	for b := range r.Blocks {
		if r.mayAsk(b) {
			list[b] = r.condition(b)
			inFrame = inFrame || list[b] != nil && list[b].Place.Mem
		}
	}
	if inFrame && !r.hidesFrame() {
		for b, c := range list {
			if c != nil && c.Place.Mem {
				list[b] = nil
			}
		}
	}
	return list
}

// mayAsk is a quick look whether a block ends in a conditional jump that goes by a comparison with a
// constant.
func (r *Routine) mayAsk(b int) bool {
	insns := r.Blocks[b].Insns
	last := len(insns) - 1
	if r.Blocks[b].End != Jcc || insns[last].Kind != x86.Jcc {
		return false
	}
	for i := last - 1; i >= 0; i-- {
		if in := &insns[i].Inst; !keepsFlags(in) {
			return in.Map == 0 && (in.Op < 0x40 && in.Op&6 == 4 || in.Op >= 0x80 && in.Op < 0x86 || in.Op == 0xa8 || in.Op == 0xa9 || in.Op == 0xf6 || in.Op == 0xf7)
		}
	}
	return false
}

func (r *Routine) condition(b int) *Condition {
	block := &r.Blocks[b]
	last := len(block.Insns) - 1
	e := evaluation{regs: held}
	for i := range block.Insns[:last] {
		op := r.operation(&block.Insns[i])
		e.step(&op)
	}
	if e.flags == nil || !r.HasPlace(e.flags.place, block.Lo) {
		return nil
	}
	return &Condition{Place: e.flags.place, steps: e.flags.steps, code: block.Insns[last].Op & 15}
}

// held are what general registers hold: themselves.
var held = func() (regs [16]*formula) {
	for reg := range regs {
		regs[reg] = &formula{place: x86.Operand{Reg: int8(reg), Base: none, Index: none, Size: 4}}
	}
	return regs
}()

func (r *Routine) operation(q *Insn) operation {
	return newOperation(q, r.Code(q))
}

// An evaluation follows the instructions of a block.
type evaluation struct {
	regs  [16]*formula
	flags *formula // the last step is the comparison that they are of
	moved bool     // memory, rsp or rbp may have been written
}

func (e *evaluation) step(op *operation) {
	to, value, flags := e.compute(op)
	if !keepsFlags(&op.Inst) {
		e.flags = flags
	}
	e.moved = e.moved || !op.keepsFrame() || op.stores()
	written := writtenRegisters(op)
	for reg := range e.regs {
		if written>>reg&1 != 0 {
			e.regs[reg] = nil
		}
	}
	if to >= 0 && to != rsp && to != rbp {
		e.regs[to] = value
	}
}

// read returns what an operand of that many bytes holds.
func (e *evaluation) read(o x86.Operand, size uint8, rex byte) *formula {
	switch {
	case size > 4:
		return nil
	case o.Mem:
		if e.moved || o.RIP || o.Index >= 0 || o.Base != rsp && o.Base != rbp {
			return nil
		}
		o.Size = size
		return &formula{place: o}
	case size == 1 && rex == 0 && o.Reg >= 4: // ah, ch, dh, bh
		return nil
	}
	return e.regs[o.Reg]
}

// compute returns which register, all of it, an instruction writes (-1: none) and with what, and
// what the flags compare then.
func (e *evaluation) compute(op *operation) (to int8, value, flags *formula) {
	size, group := sizeOf(op), op.ModRM>>3&7
	wide := func(reg int8, v *formula) (int8, *formula, *formula) {
		if op.size != 4 {
			return -1, nil, nil
		}
		return reg, v, nil
	}
	accumulator := x86.Operand{Reg: rax}
	switch o := op.Op; {
	case op.Rep != 0, op.Elsewhere():
	case op.Map == 1 && (o == 0xb6 || o == 0xb7): // movzx
		return wide(op.reg, e.read(op.rm, 1+o&1, op.Rex).then(stepCopy, 1+o&1, 0))
	case op.Map == 1 && (o == 0xbe || o == 0xbf): // movsx
		return wide(op.reg, e.read(op.rm, 1+o&1, op.Rex).then(stepExtend, 1+o&1, 0))
	case op.Map != 0:
	case o == 0x8b: // mov
		return wide(op.reg, e.read(op.rm, size, op.Rex))
	case o == 0x89 && !op.rm.Mem:
		return wide(op.rm.Reg, e.read(x86.Operand{Reg: op.reg}, size, op.Rex))
	case o < 0x40 && o&6 == 4: // with the accumulator
		return e.arithmetic(op, o>>3, accumulator, size)
	case o == 0x80, o == 0x81, o == 0x83:
		return e.arithmetic(op, group, op.rm, size)
	case (o == 0x84 || o == 0x85) && !op.rm.Mem && op.rm.Reg == op.reg: // test
		return -1, nil, e.read(op.rm, size, op.Rex).then(stepAnd, size, ^uint64(0))
	case o == 0xa8, o == 0xa9:
		return -1, nil, e.read(accumulator, size, op.Rex).then(stepAnd, size, immediate(op.code, min(4, int(size))))
	case (o == 0xf6 || o == 0xf7) && group == 0:
		return -1, nil, e.read(op.rm, size, op.Rex).then(stepAnd, size, immediate(op.code, min(4, int(size))))
	case o == 0xc1 && !op.rm.Mem && group >= 4 && group != 6: // shifts
		return wide(op.rm.Reg, e.read(op.rm, size, op.Rex).then(shifts[group], size, immediate(op.code, 1)&31))
	case o == 0xd1 && !op.rm.Mem && group >= 4 && group != 6:
		return wide(op.rm.Reg, e.read(op.rm, size, op.Rex).then(shifts[group], size, 1))
	}
	return -1, nil, nil
}

var (
	shifts      = [8]stepKind{4: stepShl, 5: stepShr, 7: stepSar}
	arithmetics = [8]stepKind{aluAdd: stepAdd, aluOr: stepOr, aluAnd: stepAnd, aluSub: stepSub, aluXor: stepXor, aluCmp: stepSub}
)

// arithmetic computes one of the eight operations on an operand and the instruction's constant.
func (e *evaluation) arithmetic(op *operation, operation byte, on x86.Operand, size uint8) (to int8, value, flags *formula) {
	n := min(4, int(size))
	if op.Op == 0x83 {
		n = 1
	}
	if operation == 2 || operation == 3 { // with the carry
		return -1, nil, nil
	}
	v := e.read(on, size, op.Rex)
	by := immediate(op.code, n)
	value = v.then(arithmetics[operation], size, by)
	switch operation {
	case aluCmp, aluSub, aluAnd:
		flags = value
	case aluXor, aluOr:
		flags = value.then(stepAnd, size, ^uint64(0))
	}
	if operation == aluCmp || on.Mem || size != 4 {
		return -1, nil, flags
	}
	return on.Reg, value, flags
}
