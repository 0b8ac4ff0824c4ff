//go:build linux && cgo

package decoder_test

import (
	"math/rand/v2"

	"golang.org/x/arch/x86/x86asm"
)

// A cpu is the general registers of an activation, by hardware number, and the zero flag. It knows
// the instructions that loops count by; what else writes a register leaves anything there.
type cpu struct {
	regs  [16]uint64
	equal bool
}

// anything is what may be found in a register: loops that begin or end with it are short, often.
func anything(random *rand.Rand) uint64 {
	high := []uint64{0, 0, 0, 0, 0x7fff00000000, 0xffffffff00000000, 0xffffffff80000000,
		0xabcd567800000000, 0xfffffff0}
	return 8*random.Uint64N(6) + high[random.IntN(len(high))]
}

// clobber leaves anything in all registers but the stack pointer.
func (c *cpu) clobber(random *rand.Rand) {
	for i := range c.regs {
		if i != rsp {
			c.regs[i] = anything(random)
		}
	}
}

const rsp = 4

// numberOf is a register's number, and its bytes; ok is false for none that the cpu knows.
func numberOf(a x86asm.Arg) (n, bytes int, ok bool) {
	switch r, is := a.(x86asm.Reg); {
	case !is:
	case r >= x86asm.RAX && r <= x86asm.R15:
		return int(r - x86asm.RAX), 8, true
	case r >= x86asm.EAX && r <= x86asm.R15L:
		return int(r - x86asm.EAX), 4, true
	case r >= x86asm.AX && r <= x86asm.R15W:
		return int(r - x86asm.AX), 2, true
	case r >= x86asm.AL && r <= x86asm.BL:
		return int(r - x86asm.AL), 1, true
	}
	return 0, 0, false
}

// read is what an operand is, if it is no memory.
func (c *cpu) read(a x86asm.Arg) (v uint64, ok bool) {
	if n, bytes, ok := numberOf(a); ok {
		return c.regs[n] & (^uint64(0) >> (64 - 8*bytes)), true
	}
	i, ok := a.(x86asm.Imm)
	return uint64(i), ok
}

func (c *cpu) write(a x86asm.Arg, v uint64) {
	switch n, bytes, ok := numberOf(a); {
	case !ok:
	case bytes >= 4:
		c.regs[n] = v & (^uint64(0) >> (64 - 8*bytes))
	default:
		mask := ^uint64(0) >> (64 - 8*bytes)
		c.regs[n] = c.regs[n]&^mask | v&mask
	}
}

func (c *cpu) address(m x86asm.Mem) uint64 {
	v := uint64(m.Disp)
	if n, _, ok := numberOf(m.Base); ok {
		v += c.regs[n]
	}
	if n, _, ok := numberOf(m.Index); ok {
		v += c.regs[n] * uint64(m.Scale)
	}
	return v
}

// step runs an instruction.
func (c *cpu) step(code []byte, random *rand.Rand) {
	in, err := x86asm.Decode(code, 64)
	if err != nil { // vector instructions
		return
	}
	to := in.Args[0]
	a, _ := c.read(to)
	b, known := c.read(in.Args[1])
	_, bytes, _ := numberOf(to)
	result := func(v uint64) uint64 {
		v &= ^uint64(0) >> max(0, 64-8*bytes)
		c.equal = v == 0
		return v
	}
	switch in.Op {
	case x86asm.LEA:
		c.write(to, c.address(in.Args[1].(x86asm.Mem)))
	case x86asm.MOV:
		if !known {
			b = anything(random)
		}
		c.write(to, b)
	case x86asm.MOVSXD:
		if !known {
			b = anything(random)
		}
		c.write(to, uint64(int64(int32(b))))
	case x86asm.ADD, x86asm.SUB, x86asm.XOR, x86asm.AND:
		if !known {
			b = anything(random)
		}
		c.write(to, result(map[x86asm.Op]uint64{x86asm.ADD: a + b, x86asm.SUB: a - b,
			x86asm.XOR: a ^ b, x86asm.AND: a & b}[in.Op]))
	case x86asm.CMP:
		result(a - b)
	case x86asm.TEST:
		result(a & b)
	case x86asm.INC:
		c.write(to, result(a+1))
	case x86asm.DEC:
		c.write(to, result(a-1))
	case x86asm.SHL:
		c.write(to, result(a<<b))
	case x86asm.PUSH:
		c.regs[rsp] -= 8
	case x86asm.POP:
		c.write(to, anything(random))
		c.regs[rsp] += 8
	case x86asm.JMP, x86asm.CALL, x86asm.RET, x86asm.NOP:
	default:
		c.write(to, anything(random))
	}
}
