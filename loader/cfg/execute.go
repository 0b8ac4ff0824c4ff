package cfg

import "wpptrace/loader/x86"

// The eight operations of the first rows of the opcode map and of groups 80 to 83.
const (
	aluAdd = 0
	aluOr  = 1
	aluAnd = 4
	aluSub = 5
	aluXor = 6
	aluCmp = 7
)

const lea, store, load, exchange = 0x8d, 0x89, 0x8b, 0x87 // opcodes; store and load are mov's

// stepOneByte executes an instruction of the one-byte map. It answers false when it does not model
// it.
func (m *machine) stepOneByte(op *operation) bool {
	switch o := op.Op; {
	case o < 0x40 && o&7 < 6:
		return m.stepALU(op)
	case o >= 0x50 && o <= 0x57:
		m.push(m.regs[op.opcodeRegister()])
		return true
	case o >= 0x58 && o <= 0x5f:
		m.regs[op.opcodeRegister()] = m.pop()
		return true
	case o == 0x68 && !op.OpSize:
		m.push(number(immediate(op.code, 4)))
		return true
	case o == 0x6a && !op.OpSize:
		m.push(number(immediate(op.code, 1)))
		return true
	case o == 0x80, o == 0x81, o == 0x83:
		return m.alu(op, op.ModRM>>3&7, op.rm, m.immediateALU(op), sizeOf(op))
	case o == 0x86, o == 0x87:
		return m.exchange(op)
	case o >= 0x88 && o <= 0x8b:
		size := sizeOf(op)
		if o < 0x8a {
			m.set(op.rm, size, op.Rex, m.read(op.reg, size, op.Rex))
		} else {
			m.write(op.reg, size, op.Rex, m.get(op.rm, size, op.Rex))
		}
		return true
	case o == lea:
		m.write(op.reg, op.size, op.Rex, m.effective(op.rm))
		return true
	case o == 0x63:
		return m.signExtend(op, op.reg, 4, m.get(op.rm, 4, op.Rex))
	case o == 0x98 && op.size == 8:
		return m.signExtend(op, rax, 4, m.read(rax, 4, op.Rex))
	case o >= 0xb0 && o <= 0xb7:
		m.write(op.opcodeRegister(), 1, op.Rex, number(immediate(op.code, 1)))
		return true
	case o >= 0xb8 && o <= 0xbf && op.size != 2:
		m.write(op.opcodeRegister(), op.size, op.Rex, number(immediate(op.code, int(op.size))))
		return true
	case o == 0xc7:
		m.set(op.rm, op.size, op.Rex, m.narrow(number(immediate(op.code, min(4, int(op.size)))), op.size*8))
		return true
	case o == 0xc1:
		return m.shift(op)
	case o == 0xff && op.ModRM>>3&7 < 2:
		by := value{form: constant, off: 1 - 2*int64(op.ModRM>>3&7)}
		m.set(op.rm, op.size, op.Rex, m.sum(m.get(op.rm, op.size, op.Rex), by, op.size*8))
		return true
	case o == 0xc9:
		m.regs[rsp], m.regs[rbp] = m.sum(m.regs[rbp], number(8), 64), m.fresh(loaded)
		return true
	}
	return false
}

// sizeOf returns the operand size of an opcode whose low bit chooses between one byte and more.
func sizeOf(op *operation) uint8 {
	if op.Op&1 == 0 {
		return 1
	}
	return op.size
}

// stepALU executes the rows 00 to 3f.
func (m *machine) stepALU(op *operation) bool {
	size := sizeOf(op)
	operation := op.Op >> 3
	at := x86.Operand{Reg: op.reg, Base: -1, Index: -1}
	switch op.Op & 7 {
	case 0, 1:
		if operation == aluXor && !op.rm.Mem && op.rm.Reg == op.reg && size >= 4 {
			m.regs[op.reg] = number(0)
			return true
		}
		return m.alu(op, operation, op.rm, m.read(op.reg, size, op.Rex), size)
	case 2, 3:
		if operation == aluXor && !op.rm.Mem && op.rm.Reg == op.reg && size >= 4 {
			m.regs[op.reg] = number(0)
			return true
		}
		return m.alu(op, operation, at, m.get(op.rm, size, op.Rex), size)
	}
	at.Reg = rax
	return m.alu(op, operation, at, m.immediateALU(op), size)
}

// immediateALU returns the immediate of an arithmetic instruction, sign-extended.
func (m *machine) immediateALU(op *operation) value {
	n := min(4, int(op.size))
	if op.Op&1 == 0 || op.Op == 0x83 {
		n = 1
	}
	return number(immediate(op.code, n))
}

// alu performs an operation on the operand at and v.
func (m *machine) alu(op *operation, operation byte, at x86.Operand, v value, size uint8) bool {
	bits := size * 8
	old := m.get(at, size, op.Rex)
	isNumber := v.form == constant
	switch {
	case operation == aluCmp:
		m.compareWith(old, v, size)
		return true
	case operation == aluAdd:
		m.set(at, size, op.Rex, m.sum(old, v, bits))
		return true
	case operation == aluSub && isNumber:
		m.compareWith(old, v, size)
		m.set(at, size, op.Rex, m.sum(old, value{form: constant, off: -v.off}, bits))
		return true
	case operation == aluOr || operation == aluXor:
		mask, ok := m.maskOf(old)
		other, too := m.maskOf(v)
		if mask |= other; ok && too && mask < 1<<20 {
			m.compare.valid = false
			m.set(at, size, op.Rex, m.masked(mask))
			return true
		}
	case operation == aluAnd && isNumber:
		if mask := uint64(m.narrow(v, bits).off); mask < 1<<20 {
			m.set(at, size, op.Rex, m.masked(mask))
			return true
		}
	}
	m.compare.valid = false
	m.set(at, size, op.Rex, value{sym: m.fresh(computed).sym, bits: bits})
	return true
}

// compareWith notes what a comparison leaves in the flags.
func (m *machine) compareWith(v, with value, size uint8) {
	with = m.narrow(with, size*8)
	m.compare = comparison{valid: with.form == constant, size: size, v: v, with: uint64(with.off)}
}

func stackTop() x86.Operand {
	return x86.Operand{Mem: true, Reg: -1, Base: rsp, Index: -1, Scale: 1}
}

func (m *machine) push(v value) {
	m.regs[rsp] = m.sum(m.regs[rsp], value{form: constant, off: -8}, 64)
	m.store(stackTop(), 8, v)
}

func (m *machine) pop() value {
	v := m.load(stackTop(), 8)
	m.regs[rsp] = m.sum(m.regs[rsp], number(8), 64)
	return v
}

func (m *machine) exchange(op *operation) bool {
	if op.rm.Mem || op.Op == 0x86 || op.size < 4 {
		return false
	}
	a, b := m.read(op.rm.Reg, op.size, op.Rex), m.read(op.reg, op.size, op.Rex)
	m.write(op.rm.Reg, op.size, op.Rex, b)
	m.write(op.reg, op.size, op.Rex, a)
	return true
}

// signExtend writes the low size bytes of v to a register, sign-extended.
func (m *machine) signExtend(op *operation, reg int8, size uint8, v value) bool {
	m.write(reg, op.size, op.Rex, m.extend(v, size*8))
	return true
}

// shift executes the shifts by a constant that scale an index or bound it.
func (m *machine) shift(op *operation) bool {
	const left, right = 4, 5
	group := op.ModRM >> 3 & 7
	if op.rm.Mem || op.size < 4 || group != left && group != right {
		return false
	}
	by := op.code[len(op.code)-1] & (op.size*8 - 1)
	v := m.read(op.rm.Reg, op.size, op.Rex)
	out := value{sym: m.fresh(computed).sym, bits: op.size * 8}
	switch {
	case group == left && by <= 3 && v.form == symbolic:
		out = m.times(v, 1<<by)
	case group == right && op.size*8-by <= 20:
		out = m.limited(1<<(op.size*8-by) - 1)
	case group == right && v.form == symbolic:
		if b, ok := m.boundOf(v); ok {
			out = m.limited(b.max >> by)
		}
	}
	m.regs[op.rm.Reg] = out
	return true
}

// stepTwoByte executes an instruction of the two-byte map. It answers false when it does not model
// it.
func (m *machine) stepTwoByte(op *operation) bool {
	switch o := op.Op; {
	case o == 0xb6, o == 0xb7:
		size := o&1 + 1
		m.write(op.reg, op.size, op.Rex, m.get(op.rm, size, op.Rex))
		return true
	case o == 0xbe, o == 0xbf:
		size := o&1 + 1
		return m.signExtend(op, op.reg, size, m.get(op.rm, size, op.Rex))
	case o>>4 == 4:
		return m.conditionalMove(op)
	}
	return false
}

// conditionalMove chooses between two values.
func (m *machine) conditionalMove(op *operation) bool {
	if m.limit(op) {
		return true
	}
	if op.size != 8 {
		return false
	}
	held, moved := m.regs[op.reg], m.get(op.rm, 8, op.Rex)
	v := m.fresh(chosen)
	m.symbols[v.sym].value, m.symbols[v.sym].other = held, moved
	m.regs[op.reg] = v
	return true
}

// limit models one idiom of conditional moves: an index beyond the last is replaced by a constant.
func (m *machine) limit(op *operation) bool {
	const above, aboveEqual = 7, 3
	c := m.compare
	held := m.regs[op.reg]
	condition := op.Op & 0xf
	if op.rm.Mem || !c.valid || condition != above && condition != aboveEqual || held.form != symbolic {
		return false
	}
	replacement := m.regs[op.rm.Reg]
	sameValue := c.v.form == symbolic && c.v.sym == held.sym && c.v.off == held.off && !held.dirty
	if !sameValue || op.size < 4 || c.v.bits < min(held.bits, op.size*8) || replacement.form != constant || condition == aboveEqual && c.with == 0 {
		return false
	}
	most := c.with
	if condition == aboveEqual {
		most--
	}
	m.regs[op.reg] = m.limited(max(most, uint64(replacement.off)))
	return true
}
