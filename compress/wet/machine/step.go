package machine

import "math/bits"

// Step runs an instruction, behind which next is, an address of the process. It does not allocate
// once the machine has met a few instructions. What it makes of an Insn that is not valid is of no
// use, but it does not panic.
func (m *Machine) Step(in *Insn, next uint64, mem Memory) Outcome {
	m.general[Next] = next
	m.accesses, m.wrote = m.accesses[:0], 0
	m.flags.read, m.flags.written = 0, 0
	m.vectors.wrote = 0
	switch in.Op {
	case Mov:
		v, k := m.value(&in.Src, in, mem)
		m.write(&in.Dst, v, k, mem)
	case Lea:
		a, k := m.address(&in.Src)
		m.write(&in.Dst, a, k, mem)
	case Add, Sub, Cmp, And, Or, Xor, Test, Adc, Sbb:
		m.arithmetic(in, mem)
	case Inc, Dec, Neg, Not:
		m.unary(in, mem)
	case JumpIf:
		holds, k := m.flags.condition(in.Condition)
		return m.jump(in, holds, k)
	case Jump:
		to, k := m.target(in, mem)
		return leads(to, k)
	case Push:
		v, k := m.value(&in.Src, in, mem)
		m.push(v, in.Size, k, mem)
	case Pop:
		v, k := m.pop(in.Size, mem)
		m.write(&in.Dst, v, k, mem)
	case Call:
		to, k := m.target(in, mem)
		m.push(next, 8, Confirmed, mem)
		return leads(to, k)
	case Return:
		to, k := m.pop(8, mem)
		m.general[RSP] += uint64(in.Imm)
		return leads(to, k)
	case NoOp:
	default:
		return m.seldom(in, mem)
	}
	return Outcome{Way: Falls, Known: Confirmed, To: next}
}

// leads is where a jump, call or return leads.
func leads(to uint64, k Knowledge) Outcome {
	if k == Unknown {
		return Outcome{Way: Unsure}
	}
	return Outcome{Way: Leads, Known: k, To: to}
}

// jump is what a conditional jump does.
func (m *Machine) jump(in *Insn, takes bool, k Knowledge) Outcome {
	switch {
	case k == Unknown:
		return Outcome{Way: Unsure}
	case takes:
		return Outcome{Way: Takes, Known: k, To: m.general[Next] + uint64(in.Imm)}
	}
	return Outcome{Way: Falls, Known: k, To: m.general[Next]}
}

func (m *Machine) target(in *Insn, mem Memory) (uint64, Knowledge) {
	if in.Src.Class == Immediate {
		return m.general[Next] + uint64(in.Imm), Confirmed
	}
	return m.value(&in.Src, in, mem)
}

func (m *Machine) push(v uint64, size uint8, k Knowledge, mem Memory) {
	m.general[RSP] -= uint64(size)
	m.wrote |= 1 << RSP
	m.at, m.atKnown = m.general[RSP], m.known[RSP].whole()
	m.store(v, size, k, mem)
}

func (m *Machine) pop(size uint8, mem Memory) (uint64, Knowledge) {
	m.at, m.atKnown = m.general[RSP], m.known[RSP].whole()
	v, k := m.load(size, mem)
	m.general[RSP] += uint64(size)
	m.wrote |= 1 << RSP
	return v, k
}

// arithmetic is for what has two operands and sets all flags.
func (m *Machine) arithmetic(in *Insn, mem Memory) {
	b, kb := m.value(&in.Src, in, mem)
	a, k := m.value(&in.Dst, in, mem)
	size := in.Size
	mask := maskOf(size)
	k &= kb
	if in.Src.Reg == in.Dst.Reg && in.Src.Class == in.Dst.Class && in.Dst.Class != Mem {
		switch in.Op {
		case Sub, Cmp, Xor, Sbb: // of a register and itself: the value does not matter
			k = Confirmed
		}
	}
	var r uint64
	switch in.Op {
	case Add:
		r = (a + b) & mask
		m.flags.set(Arithmetic, 0, added(a, b, r, size), k)
	case Sub, Cmp:
		r = (a - b) & mask
		m.flags.set(Arithmetic, 0, subtracted(a, b, r, size), k)
	case Adc:
		c, kc := m.flags.carry()
		k &= kc
		r = (a + b + c) & mask
		m.flags.set(Arithmetic, 0, added(a, b, r, size), k)
	case Sbb:
		c, kc := m.flags.carry()
		k &= kc
		r = (a - b - c) & mask
		m.flags.set(Arithmetic, 0, subtracted(a, b, r, size), k)
	case And, Test:
		r = a & b
		if in.Src.Class == Immediate && b == 0 {
			k = Confirmed
		}
		m.logic(r, size, k)
	case Or:
		r = a | b
		if in.Src.Class == Immediate && b == mask {
			k = Confirmed
		}
		m.logic(r, size, k)
	case Xor:
		r = a ^ b
		m.logic(r, size, k)
	}
	if in.Op != Cmp && in.Op != Test {
		m.put(&in.Dst, r, k, mem)
	}
}

// logic sets the flags of a logical operation.
func (m *Machine) logic(r uint64, size uint8, k Knowledge) {
	m.flags.set(Arithmetic&^AF, AF, signsOf(r, size), k)
}

func (m *Machine) unary(in *Insn, mem Memory) {
	a, k := m.value(&in.Dst, in, mem)
	size := in.Size
	mask := maskOf(size)
	var r uint64
	switch in.Op {
	case Inc:
		r = (a + 1) & mask
		m.flags.set(Arithmetic&^CF, 0, added(a, 1, r, size), k)
	case Dec:
		r = (a - 1) & mask
		m.flags.set(Arithmetic&^CF, 0, subtracted(a, 1, r, size), k)
	case Neg:
		r = -a & mask
		m.flags.set(Arithmetic, 0, subtracted(0, a, r, size), k)
	default:
		r = ^a & mask
	}
	m.put(&in.Dst, r, k, mem)
}

// seldom is Step of what programs run less often.
func (m *Machine) seldom(in *Insn, mem Memory) Outcome {
	falls := Outcome{Way: Falls, Known: Confirmed, To: m.general[Next]}
	switch in.Op {
	case Opaque:
		m.opaque(in, mem)
	case MovSX:
		v, k := m.value(&in.Src, in, mem)
		m.write(&in.Dst, extended(v, in.Src.Size)&maskOf(in.Dst.Size), k, mem)
	case MovBE:
		v, k := m.value(&in.Src, in, mem)
		m.write(&in.Dst, bits.ReverseBytes64(v)>>((64-8*in.Size)&63), k, mem)
	case Xchg:
		a, ka := m.value(&in.Src, in, mem)
		b, kb := m.value(&in.Dst, in, mem)
		m.put(&in.Dst, a, ka, mem)
		m.put(&in.Src, b, kb, mem)
	case Rol, Ror, Rcl, Rcr, Shl, Shr, Sar:
		m.shift(in, mem)
	case Shld, Shrd:
		m.shiftDouble(in, mem)
	case IMul, MulWide, IMulWide, MulX:
		m.multiply(in, mem)
	case Div, IDiv:
		if !m.divide(in, mem) {
			return Outcome{Way: Faults}
		}
	case SignFill:
		v, k := m.value(&in.Src, in, mem)
		m.put(&in.Dst, -(v>>top(in.Size))&maskOf(in.Size), k, mem)
	case MovIf:
		v, k := m.value(&in.Src, in, mem)
		old, ko := m.value(&in.Dst, in, mem)
		holds, kc := m.flags.condition(in.Condition)
		if !holds {
			v, k = old, ko
		}
		m.put(&in.Dst, v, k&kc, mem)
	case SetIf:
		holds, k := m.flags.condition(in.Condition)
		m.write(&in.Dst, number(holds), k, mem)
	case BSwap:
		v, k := m.value(&in.Dst, in, mem)
		m.put(&in.Dst, bits.ReverseBytes64(v)>>((64-8*in.Size)&63), k, mem)
	case Bt, Bts, Btr, Btc:
		m.bitOf(in, mem)
	case Bsf, Bsr, PopCnt, TzCnt, LzCnt, AndN, BExtr, Blsi, BlsMsk, Blsr, Bzhi, PDep, PExt, Rorx,
		Sarx, Shlx, Shrx, Crc32:
		m.bits(in, mem)
	case CmpXchg2:
		if !m.exchangePair(in, mem) {
			return Outcome{Way: Faults}
		}
	case CmpXchg, XAdd, AdcX, AdoX:
		m.exchange(in, mem)
	case Movs, Cmps, Stos, Lods, Scas:
		return m.strings(in, mem)
	case Leave, PushF, PopF, LahF, SahF, ClC, StC, CmC, ClD, StD:
		m.frameOrFlags(in, mem)
	case JumpCX, Loop, LoopEqual, LoopUneven:
		return m.loop(in)
	default:
		m.vector(in, mem)
	}
	return falls
}

// opaque forgets what an instruction writes.
func (m *Machine) opaque(in *Insn, mem Memory) {
	s := in.Opaque()
	if in.Src.Class == Mem { // it is read, and what was there goes nowhere
		m.at, m.atKnown = m.address(&in.Src)
		m.access(int(in.Src.Size))
	}
	m.wrote |= uint32(s.General)
	m.vectors.wrote |= s.Vectors
	m.Forget(s)
	if in.Cause == State { // MXCSR may be another one
		m.vectors.rounding = Unknown
	}
	switch in.Dst.Class {
	case Mem:
		m.at, m.atKnown = m.address(&in.Dst)
		m.storeUnknown(int(in.Dst.Size), mem)
	}
	if s.Memory {
		m.at, m.atKnown = 0, Unknown
		m.storeUnknown(0, mem)
	}
}

// storeUnknown writes bytes at m.at of which nothing is known; 0: nobody knows how many.
func (m *Machine) storeUnknown(size int, mem Memory) {
	a := m.access(size)
	a.Write = true
	for at := 0; m.atKnown != Unknown && at < size; at += len(m.buffer) {
		mem.Store(m.at+uint64(at), m.buffer[:min(size-at, len(m.buffer))], Unknown)
	}
}

// extended extends the sign of a value of some bytes.
func extended(v uint64, size uint8) uint64 {
	n := (64 - 8*size) & 63
	return uint64(int64(v<<n) >> n)
}

// number is 1 of what is so.
func number(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}

// loop is for the conditional jumps that ask for RCX.
func (m *Machine) loop(in *Insn) Outcome {
	v, k := m.register(RCX, in.Size)
	if in.Op == JumpCX {
		return m.jump(in, v == 0, k)
	}
	v--
	m.setRegister(RCX, v, in.Size, k)
	takes := v&maskOf(in.Size) != 0
	if in.Op != Loop {
		k &= m.flags.of(ZF)
		takes = takes && (m.flags.value&ZF != 0) == (in.Op == LoopEqual)
	}
	return m.jump(in, takes, k)
}

// frameOrFlags is for what has operands that are implied.
func (m *Machine) frameOrFlags(in *Insn, mem Memory) {
	switch in.Op {
	case Leave:
		m.setRegister(RSP, m.general[RBP], 8, m.known[RBP].whole())
		v, k := m.pop(8, mem)
		m.setRegister(RBP, v, 8, k)
	case PushF:
		// the flags that no program of users changes are not known: they are the kernel's
		m.push(uint64(architectural(m.flags.value))|1<<9, in.Size, Unknown, mem)
		m.flags.read |= AllFlags
	case PopF:
		v, k := m.pop(in.Size, mem)
		m.flags.set(AllFlags, 0, OwnFlags(uint16(v)), k)
	case LahF:
		k := m.flags.of(Arithmetic &^ OF)
		a := Operand{Class: High, Reg: RAX, Size: 1}
		m.put(&a, uint64(uint8(architectural(m.flags.value))), k, mem)
	case SahF:
		a := Operand{Class: High, Reg: RAX, Size: 1}
		v, k := m.value(&a, in, mem)
		m.flags.set(Arithmetic&^OF, 0, OwnFlags(uint16(v)), k)
	case ClC:
		m.flags.set(CF, 0, 0, Confirmed)
	case StC:
		m.flags.set(CF, 0, CF, Confirmed)
	case CmC:
		m.flags.set(CF, 0, ^m.flags.value, m.flags.of(CF))
	case ClD:
		m.flags.set(DF, 0, 0, Confirmed)
	case StD:
		m.flags.set(DF, 0, DF, Confirmed)
	}
}

// architecturalBits are the flags' places in the processor's register.
var architecturalBits = [7]uint8{0, 2, 4, 6, 7, 11, 10}

// architectural returns flags as the processor has them: bit 1 is always set.
func architectural(own uint8) uint16 {
	f := uint16(2)
	for i, at := range architecturalBits {
		f |= uint16(own>>i&1) << at
	}
	return f
}

// OwnFlags returns the flags of a word that the processor has them in.
func OwnFlags(f uint16) (own uint8) {
	for i, at := range architecturalBits {
		own |= uint8(f>>at&1) << i
	}
	return own
}
