package absint

import "wpptrace/loader/x86"

// execute executes an instruction. It answers false when it does not model it.
func (m *Machine) execute(e *x86.Effects) bool {
	switch e.Operation {
	case x86.Add, x86.Or, x86.Adc, x86.Sbb, x86.And, x86.Sub, x86.Xor, x86.Cmp:
		m.compute(e)
	case x86.Inc:
		m.set(e.Dst, m.Symbols.sum(m.Get(e.Dst), Value{Form: Constant, Off: 1}, e.Dst.Size*8))
	case x86.Dec:
		m.set(e.Dst, m.Symbols.sum(m.Get(e.Dst), Value{Form: Constant, Off: -1}, e.Dst.Size*8))
	case x86.Mov:
		return m.move(e)
	case x86.MovZX:
		m.write(e.Dst, m.Get(e.Src))
	case x86.MovSX:
		m.write(e.Dst, m.Symbols.extend(m.Get(e.Src), e.Src.Size*8))
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
		m.Regs[x86.RSP], m.Regs[x86.RBP] = m.Symbols.sum(m.Regs[x86.RBP], Number(8),
			64), m.Symbols.Fresh(Loaded)
	default:
		return false
	}
	return true
}

func (m *Machine) move(e *x86.Effects) bool {
	switch {
	case e.HasImm:
		m.set(e.Dst, m.Symbols.narrow(Number(uint64(e.Imm)), e.Dst.Size*8))
	case e.Src.Mem || e.Src.Reg >= 0:
		m.set(e.Dst, m.Get(e.Src))
	default:
		return false
	}
	return true
}

// compute performs an arithmetic operation on Dst and Src, or the immediate.
func (m *Machine) compute(e *x86.Effects) {
	if e.Operation == x86.Xor && !e.Dst.Mem && e.Src == e.Dst && e.Dst.Size >= 4 {
		m.Regs[e.Dst.Reg] = Number(0)
		return
	}
	v := Number(uint64(e.Imm))
	if !e.HasImm {
		v = m.Get(e.Src)
	}
	size := e.Dst.Size
	bits := size * 8
	old := m.Get(e.Dst)
	isNumber := v.Form == Constant
	switch {
	case e.Operation == x86.Cmp:
		m.compareWith(old, v, size)
		return
	case e.Operation == x86.Add:
		m.set(e.Dst, m.Symbols.sum(old, v, bits))
		return
	case e.Operation == x86.Sub && isNumber:
		m.compareWith(old, v, size)
		m.set(e.Dst, m.Symbols.sum(old, Value{Form: Constant, Off: -v.Off}, bits))
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
		if mask := uint64(m.Symbols.narrow(v, bits).Off); mask < 1<<20 {
			m.set(e.Dst, m.masked(mask))
			return
		}
	}
	m.compare.valid = false
	m.set(e.Dst, Value{Sym: m.Symbols.Fresh(Computed).Sym, Bits: bits})
}

// compareWith notes what a comparison leaves in the flags.
func (m *Machine) compareWith(v, with Value, size uint8) {
	with = m.Symbols.narrow(with, size*8)
	m.compare = comparison{valid: with.Form == Constant, size: size, v: v, with: uint64(with.Off)}
}

func stackTop() x86.Operand {
	return x86.Operand{Mem: true, Reg: -1, Base: x86.RSP, Index: -1, Scale: 1}
}

func (m *Machine) push(e *x86.Effects) bool {
	var v Value
	switch delta, _ := e.StackDelta(); {
	case delta != -8:
		return false
	case e.HasImm:
		v = Number(uint64(e.Imm))
	case e.Src.Reg >= 0:
		v = m.Regs[e.Src.Reg]
	default:
		return false
	}
	m.Regs[x86.RSP] = m.Symbols.sum(m.Regs[x86.RSP], Value{Form: Constant, Off: -8}, 64)
	m.store(stackTop(), 8, v)
	return true
}

func (m *Machine) pop(e *x86.Effects) bool {
	if e.Dst.Reg < 0 {
		return false
	}
	v := m.load(stackTop(), 8)
	m.Regs[x86.RSP] = m.Symbols.sum(m.Regs[x86.RSP], Number(8), 64)
	m.Regs[e.Dst.Reg] = v
	return true
}

func (m *Machine) exchange(e *x86.Effects) bool {
	if e.Dst.Mem || e.Dst.Size < 4 {
		return false
	}
	a, b := m.read(e.Dst), m.read(e.Src)
	m.write(e.Dst, b)
	m.write(e.Src, a)
	return true
}

// shift executes the shifts by a constant that scale an index or bound it.
func (m *Machine) shift(e *x86.Effects) bool {
	bits := e.Dst.Size * 8
	if e.Dst.Mem || bits < 32 || !e.HasImm {
		return false
	}
	by := uint8(e.Imm) & (bits - 1)
	v := m.read(e.Dst)
	out := Value{Sym: m.Symbols.Fresh(Computed).Sym, Bits: bits}
	switch isLeft := e.Operation == x86.Shl; {
	case isLeft && by <= 3 && v.Form == Symbolic:
		out = m.Symbols.times(v, 1<<by)
	case isLeft:
	case bits-by <= 20:
		out = m.limited(1<<(bits-by) - 1)
	case v.Form == Symbolic:
		if b, ok := m.boundOf(v); ok {
			out = m.limited(b.Max >> by)
		}
	}
	m.Regs[e.Dst.Reg] = out
	return true
}

// moveIf chooses between two values.
func (m *Machine) moveIf(e *x86.Effects) bool {
	if m.limit(e) {
		return true
	}
	if e.Dst.Size != 8 {
		return false
	}
	held, moved := m.Regs[e.Dst.Reg], m.Get(e.Src)
	v := m.Symbols.Fresh(Chosen)
	m.Symbols[v.Sym].Value, m.Symbols[v.Sym].Other = held, moved
	m.Regs[e.Dst.Reg] = v
	return true
}

// limit models one idiom of conditional moves: an index beyond the last is replaced by a constant.
func (m *Machine) limit(e *x86.Effects) bool {
	c := m.compare
	held := m.Regs[e.Dst.Reg]
	isBound := e.Condition == x86.Above || e.Condition == x86.AboveOrEqual
	if e.Src.Mem || !c.valid || !isBound || held.Form != Symbolic {
		return false
	}
	replacement := m.Regs[e.Src.Reg]
	sameValue := c.v.Form == Symbolic && c.v.Sym == held.Sym && c.v.Off == held.Off && !held.Dirty
	if !sameValue || e.Dst.Size < 4 || c.v.Bits < min(held.Bits, e.Dst.Size*8) ||
		replacement.Form != Constant || e.Condition == x86.AboveOrEqual && c.with == 0 {
		return false
	}
	most := c.with
	if e.Condition == x86.AboveOrEqual {
		most--
	}
	m.Regs[e.Dst.Reg] = m.limited(max(most, uint64(replacement.Off)))
	return true
}
