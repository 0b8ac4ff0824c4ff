package cfg

import "wpptrace/loader/x86"

// execute executes an instruction. It answers false when it does not model it.
func (m *machine) execute(e *x86.Effects) bool {
	switch e.Operation {
	case x86.Add, x86.Or, x86.Adc, x86.Sbb, x86.And, x86.Sub, x86.Xor, x86.Cmp:
		m.compute(e)
	case x86.Inc:
		m.set(e.Dst, m.sum(m.get(e.Dst), value{form: constant, off: 1}, e.Dst.Size*8))
	case x86.Dec:
		m.set(e.Dst, m.sum(m.get(e.Dst), value{form: constant, off: -1}, e.Dst.Size*8))
	case x86.Mov:
		return m.move(e)
	case x86.MovZX:
		m.write(e.Dst, m.get(e.Src))
	case x86.MovSX:
		m.write(e.Dst, m.extend(m.get(e.Src), e.Src.Size*8))
	case x86.Lea:
		m.write(e.Dst, m.effective(e.Src))
	case x86.MovIf:
		return m.moveIf(e)
	case x86.Shl, x86.Shr:
		return m.shift(e)
	case x86.Push:
		return m.push(e)
	case x86.Pop:
		return m.pop(e)
	case x86.Xchg:
		return m.exchange(e)
	case x86.Leave:
		m.regs[x86.RSP], m.regs[x86.RBP] = m.sum(m.regs[x86.RBP], number(8), 64), m.fresh(loaded)
	default:
		return false
	}
	return true
}

func (m *machine) move(e *x86.Effects) bool {
	switch {
	case e.HasImm:
		m.set(e.Dst, m.narrow(number(uint64(e.Imm)), e.Dst.Size*8))
	case e.Src.Mem || e.Src.Reg >= 0:
		m.set(e.Dst, m.get(e.Src))
	default:
		return false
	}
	return true
}

// compute performs an arithmetic operation on Dst and Src, or the immediate.
func (m *machine) compute(e *x86.Effects) {
	if e.Operation == x86.Xor && !e.Dst.Mem && e.Src == e.Dst && e.Dst.Size >= 4 {
		m.regs[e.Dst.Reg] = number(0)
		return
	}
	v := number(uint64(e.Imm))
	if !e.HasImm {
		v = m.get(e.Src)
	}
	size := e.Dst.Size
	bits := size * 8
	old := m.get(e.Dst)
	isNumber := v.form == constant
	switch {
	case e.Operation == x86.Cmp:
		m.compareWith(old, v, size)
		return
	case e.Operation == x86.Add:
		m.set(e.Dst, m.sum(old, v, bits))
		return
	case e.Operation == x86.Sub && isNumber:
		m.compareWith(old, v, size)
		m.set(e.Dst, m.sum(old, value{form: constant, off: -v.off}, bits))
		return
	case e.Operation == x86.Or || e.Operation == x86.Xor:
		mask, ok := m.maskOf(old)
		other, too := m.maskOf(v)
		if mask |= other; ok && too && mask < 1<<20 {
			m.compare.valid = false
			m.set(e.Dst, m.masked(mask))
			return
		}
	case e.Operation == x86.And && isNumber:
		if mask := uint64(m.narrow(v, bits).off); mask < 1<<20 {
			m.set(e.Dst, m.masked(mask))
			return
		}
	}
	m.compare.valid = false
	m.set(e.Dst, value{sym: m.fresh(computed).sym, bits: bits})
}

// compareWith notes what a comparison leaves in the flags.
func (m *machine) compareWith(v, with value, size uint8) {
	with = m.narrow(with, size*8)
	m.compare = comparison{valid: with.form == constant, size: size, v: v, with: uint64(with.off)}
}

func stackTop() x86.Operand {
	return x86.Operand{Mem: true, Reg: -1, Base: x86.RSP, Index: -1, Scale: 1}
}

func (m *machine) push(e *x86.Effects) bool {
	var v value
	switch delta, _ := e.StackDelta(); {
	case delta != -8:
		return false
	case e.HasImm:
		v = number(uint64(e.Imm))
	case e.Src.Reg >= 0:
		v = m.regs[e.Src.Reg]
	default:
		return false
	}
	m.regs[x86.RSP] = m.sum(m.regs[x86.RSP], value{form: constant, off: -8}, 64)
	m.store(stackTop(), 8, v)
	return true
}

func (m *machine) pop(e *x86.Effects) bool {
	if e.Dst.Reg < 0 {
		return false
	}
	v := m.load(stackTop(), 8)
	m.regs[x86.RSP] = m.sum(m.regs[x86.RSP], number(8), 64)
	m.regs[e.Dst.Reg] = v
	return true
}

func (m *machine) exchange(e *x86.Effects) bool {
	if e.Dst.Mem || e.Dst.Size < 4 {
		return false
	}
	a, b := m.read(e.Dst), m.read(e.Src)
	m.write(e.Dst, b)
	m.write(e.Src, a)
	return true
}

// shift executes the shifts by a constant that scale an index or bound it.
func (m *machine) shift(e *x86.Effects) bool {
	bits := e.Dst.Size * 8
	if e.Dst.Mem || bits < 32 || !e.HasImm {
		return false
	}
	by := uint8(e.Imm) & (bits - 1)
	v := m.read(e.Dst)
	out := value{sym: m.fresh(computed).sym, bits: bits}
	switch isLeft := e.Operation == x86.Shl; {
	case isLeft && by <= 3 && v.form == symbolic:
		out = m.times(v, 1<<by)
	case isLeft:
	case bits-by <= 20:
		out = m.limited(1<<(bits-by) - 1)
	case v.form == symbolic:
		if b, ok := m.boundOf(v); ok {
			out = m.limited(b.max >> by)
		}
	}
	m.regs[e.Dst.Reg] = out
	return true
}

// moveIf chooses between two values.
func (m *machine) moveIf(e *x86.Effects) bool {
	if m.limit(e) {
		return true
	}
	if e.Dst.Size != 8 {
		return false
	}
	held, moved := m.regs[e.Dst.Reg], m.get(e.Src)
	v := m.fresh(chosen)
	m.symbols[v.sym].value, m.symbols[v.sym].other = held, moved
	m.regs[e.Dst.Reg] = v
	return true
}

// limit models one idiom of conditional moves: an index beyond the last is replaced by a constant.
func (m *machine) limit(e *x86.Effects) bool {
	c := m.compare
	held := m.regs[e.Dst.Reg]
	isBound := e.Condition == x86.Above || e.Condition == x86.AboveOrEqual
	if e.Src.Mem || !c.valid || !isBound || held.form != symbolic {
		return false
	}
	replacement := m.regs[e.Src.Reg]
	sameValue := c.v.form == symbolic && c.v.sym == held.sym && c.v.off == held.off && !held.dirty
	if !sameValue || e.Dst.Size < 4 || c.v.bits < min(held.bits, e.Dst.Size*8) ||
		replacement.form != constant || e.Condition == x86.AboveOrEqual && c.with == 0 {
		return false
	}
	most := c.with
	if e.Condition == x86.AboveOrEqual {
		most--
	}
	m.regs[e.Dst.Reg] = m.limited(max(most, uint64(replacement.off)))
	return true
}
