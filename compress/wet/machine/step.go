package machine

import "math/bits"

// Step runs an instruction, behind which next is, an address of the process. It does not allocate
// once the machine has met a few instructions. What it makes of an Insn that is not valid is of no
// use, but it does not panic.
func (m *Machine) Step(in *Insn, next uint64, mem Memory) Outcome {
	m.general.value[Next] = next
	m.general.wrote = 0
	m.port.accesses = m.port.accesses[:0]
	m.flags.read, m.flags.written = 0, 0
	s := step{m, in, mem}
	return s.run()
}

// A step is one instruction on its way.
type step struct {
	m   *Machine
	in  *Insn
	mem Memory
}

func (s *step) run() Outcome {
	switch s.in.Op {
	case Mov:
		v, k := s.value(&s.in.Src)
		s.write(&s.in.Dst, v, k)
	case Lea:
		a, k := s.m.general.address(&s.in.Src)
		s.write(&s.in.Dst, a, k)
	case Add, Sub, Cmp, And, Or, Xor, Test, Adc, Sbb:
		s.arithmetic()
	case Inc, Dec, Neg, Not:
		s.unary()
	case JumpIf:
		holds, k := s.m.flags.condition(s.in.Condition)
		return s.jump(holds, k)
	case Jump:
		to, k := s.target()
		return leads(to, k)
	case Push:
		v, k := s.value(&s.in.Src)
		s.push(v, s.in.Size, k)
	case Pop:
		v, k := s.pop(s.in.Size)
		s.write(&s.in.Dst, v, k)
	case Call:
		to, k := s.target()
		s.push(s.m.general.value[Next], 8, Confirmed)
		return leads(to, k)
	case Return:
		to, k := s.pop(8)
		s.m.general.value[RSP] += uint64(s.in.Imm)
		return leads(to, k)
	case NoOp:
	default:
		return s.seldom()
	}
	return Outcome{Way: Falls, Known: Confirmed, To: s.m.general.value[Next]}
}

// value returns what an operand holds, without anything above its size. Of one in memory the port
// stays where it is.
func (s *step) value(o *Operand) (uint64, Knowledge) {
	m := s.m
	switch o.Class {
	case General:
		return m.general.get(o.Reg, o.Size)
	case Mem:
		m.port.at, m.port.known = m.general.address(o)
		return m.port.load(o.Size, s.mem)
	case Immediate:
		return uint64(s.in.Imm) & maskOf(o.Size), Confirmed
	case High:
		return m.general.second(o.Reg)
	}
	return 0, Unknown
}

// put gives an operand a value: one in memory where the port is.
func (s *step) put(o *Operand, v uint64, k Knowledge) {
	switch o.Class {
	case General:
		s.m.general.set(o.Reg, v, o.Size, k)
	case Mem:
		s.m.port.store(v, o.Size, k, s.mem)
	case High:
		s.m.general.setSecond(o.Reg, v, k)
	}
}

// write is put of an operand that was not read.
func (s *step) write(o *Operand, v uint64, k Knowledge) {
	if o.Class == Mem {
		s.m.port.at, s.m.port.known = s.m.general.address(o)
	}
	s.put(o, v, k)
}

// leads is where a jump, call or return leads.
func leads(to uint64, k Knowledge) Outcome {
	if k == Unknown {
		return Outcome{Way: Unsure}
	}
	return Outcome{Way: Leads, Known: k, To: to}
}

// jump is what a conditional jump does.
func (s *step) jump(takes bool, k Knowledge) Outcome {
	switch {
	case k == Unknown:
		return Outcome{Way: Unsure}
	case takes:
		return Outcome{Way: Takes, Known: k, To: s.m.general.value[Next] + uint64(s.in.Imm)}
	}
	return Outcome{Way: Falls, Known: k, To: s.m.general.value[Next]}
}

func (s *step) target() (uint64, Knowledge) {
	if s.in.Src.Class == Immediate {
		return s.m.general.value[Next] + uint64(s.in.Imm), Confirmed
	}
	return s.value(&s.in.Src)
}

func (s *step) push(v uint64, size uint8, k Knowledge) {
	s.m.general.value[RSP] -= uint64(size)
	s.m.general.wrote |= 1 << RSP
	s.m.port.at, s.m.port.known = s.m.general.value[RSP], s.m.general.known[RSP].whole()
	s.m.port.store(v, size, k, s.mem)
}

func (s *step) pop(size uint8) (uint64, Knowledge) {
	s.m.port.at, s.m.port.known = s.m.general.value[RSP], s.m.general.known[RSP].whole()
	v, k := s.m.port.load(size, s.mem)
	s.m.general.value[RSP] += uint64(size)
	s.m.general.wrote |= 1 << RSP
	return v, k
}

// arithmetic is for what has two operands and sets all flags.
func (s *step) arithmetic() {
	b, kb := s.value(&s.in.Src)
	a, k := s.value(&s.in.Dst)
	size := s.in.Size
	mask := maskOf(size)
	k &= kb
	if s.in.Src.Reg == s.in.Dst.Reg && s.in.Src.Class == s.in.Dst.Class && s.in.Dst.Class != Mem {
		switch s.in.Op {
		case Sub, Cmp, Xor, Sbb: // of a register and itself: the value does not matter
			k = Confirmed
		}
	}
	var r uint64
	switch s.in.Op {
	case Add:
		r = (a + b) & mask
		s.m.flags.set(Arithmetic, 0, added(a, b, r, size), k)
	case Sub, Cmp:
		r = (a - b) & mask
		s.m.flags.set(Arithmetic, 0, subtracted(a, b, r, size), k)
	case Adc:
		c, kc := s.m.flags.carry()
		k &= kc
		r = (a + b + c) & mask
		s.m.flags.set(Arithmetic, 0, added(a, b, r, size), k)
	case Sbb:
		c, kc := s.m.flags.carry()
		k &= kc
		r = (a - b - c) & mask
		s.m.flags.set(Arithmetic, 0, subtracted(a, b, r, size), k)
	case And, Test:
		r = a & b
		if s.in.Src.Class == Immediate && b == 0 {
			k = Confirmed
		}
		s.m.flags.logic(r, size, k)
	case Or:
		r = a | b
		if s.in.Src.Class == Immediate && b == mask {
			k = Confirmed
		}
		s.m.flags.logic(r, size, k)
	case Xor:
		r = a ^ b
		s.m.flags.logic(r, size, k)
	}
	if s.in.Op != Cmp && s.in.Op != Test {
		s.put(&s.in.Dst, r, k)
	}
}

func (s *step) unary() {
	a, k := s.value(&s.in.Dst)
	size := s.in.Size
	mask := maskOf(size)
	var r uint64
	switch s.in.Op {
	case Inc:
		r = (a + 1) & mask
		s.m.flags.set(Arithmetic&^CF, 0, added(a, 1, r, size), k)
	case Dec:
		r = (a - 1) & mask
		s.m.flags.set(Arithmetic&^CF, 0, subtracted(a, 1, r, size), k)
	case Neg:
		r = -a & mask
		s.m.flags.set(Arithmetic, 0, subtracted(0, a, r, size), k)
	default:
		r = ^a & mask
	}
	s.put(&s.in.Dst, r, k)
}

// seldom is Step of what programs run less often.
func (s *step) seldom() Outcome {
	falls := Outcome{Way: Falls, Known: Confirmed, To: s.m.general.value[Next]}
	switch s.in.Op {
	case Opaque:
		s.opaque()
	case MovSX:
		v, k := s.value(&s.in.Src)
		s.write(&s.in.Dst, extended(v, s.in.Src.Size)&maskOf(s.in.Dst.Size), k)
	case MovBE:
		v, k := s.value(&s.in.Src)
		s.write(&s.in.Dst, bits.ReverseBytes64(v)>>((64-8*s.in.Size)&63), k)
	case Xchg:
		a, ka := s.value(&s.in.Src)
		b, kb := s.value(&s.in.Dst)
		s.put(&s.in.Dst, a, ka)
		s.put(&s.in.Src, b, kb)
	case Rol, Ror, Rcl, Rcr, Shl, Shr, Sar:
		s.shift()
	case Shld, Shrd:
		s.shiftDouble()
	case IMul, MulWide, IMulWide, MulX:
		s.multiply()
	case Div, IDiv:
		if !s.divide() {
			return Outcome{Way: Faults}
		}
	case SignFill:
		v, k := s.value(&s.in.Src)
		s.put(&s.in.Dst, -(v>>top(s.in.Size))&maskOf(s.in.Size), k)
	case MovIf:
		v, k := s.value(&s.in.Src)
		old, ko := s.value(&s.in.Dst)
		holds, kc := s.m.flags.condition(s.in.Condition)
		if !holds {
			v, k = old, ko
		}
		s.put(&s.in.Dst, v, k&kc)
	case SetIf:
		holds, k := s.m.flags.condition(s.in.Condition)
		s.write(&s.in.Dst, number(holds), k)
	case BSwap:
		v, k := s.value(&s.in.Dst)
		s.put(&s.in.Dst, bits.ReverseBytes64(v)>>((64-8*s.in.Size)&63), k)
	case Bt, Bts, Btr, Btc:
		s.bitOf()
	case Bsf, Bsr, PopCnt, TzCnt, LzCnt, AndN, BExtr, Blsi, BlsMsk, Blsr, Bzhi, PDep, PExt, Rorx,
		Sarx, Shlx, Shrx, Crc32:
		s.bits()
	case CmpXchg2:
		if !s.exchangePair() {
			return Outcome{Way: Faults}
		}
	case CmpXchg, XAdd, AdcX, AdoX:
		s.exchange()
	case Movs, Cmps, Stos, Lods, Scas:
		return s.strings()
	case Leave, PushF, PopF, LahF, SahF, ClC, StC, CmC, ClD, StD:
		s.frameOrFlags()
	case JumpCX, Loop, LoopEqual, LoopUneven:
		return s.loop()
	default:
		s.vector()
	}
	return falls
}

// opaque forgets what an instruction writes.
func (s *step) opaque() {
	set := s.in.Opaque()
	if s.in.Src.Class == Mem { // it is read, and what was there goes nowhere
		s.m.port.at, s.m.port.known = s.m.general.address(&s.in.Src)
		s.m.port.access(int(s.in.Src.Size))
	}
	s.m.general.wrote |= uint32(set.General)
	s.m.Forget(set)
	if s.in.Cause == State { // MXCSR may be another one
		s.m.vectors.rounding = Unknown
	}
	switch s.in.Dst.Class {
	case Mem:
		s.m.port.at, s.m.port.known = s.m.general.address(&s.in.Dst)
		s.m.port.storeUnknown(int(s.in.Dst.Size), s.mem)
	}
	if set.Memory {
		s.m.port.at, s.m.port.known = 0, Unknown
		s.m.port.storeUnknown(0, s.mem)
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
func (s *step) loop() Outcome {
	v, k := s.m.general.get(RCX, s.in.Size)
	if s.in.Op == JumpCX {
		return s.jump(v == 0, k)
	}
	v--
	s.m.general.set(RCX, v, s.in.Size, k)
	takes := v&maskOf(s.in.Size) != 0
	if s.in.Op != Loop {
		k &= s.m.flags.of(ZF)
		takes = takes && (s.m.flags.value&ZF != 0) == (s.in.Op == LoopEqual)
	}
	return s.jump(takes, k)
}

// frameOrFlags is for what has operands that are implied.
func (s *step) frameOrFlags() {
	switch s.in.Op {
	case Leave:
		s.m.general.set(RSP, s.m.general.value[RBP], 8, s.m.general.known[RBP].whole())
		v, k := s.pop(8)
		s.m.general.set(RBP, v, 8, k)
	case PushF:
		// the flags that no program of users changes are not known: they are the kernel's
		s.push(uint64(architectural(s.m.flags.value))|1<<9, s.in.Size, Unknown)
		s.m.flags.read |= AllFlags
	case PopF:
		v, k := s.pop(s.in.Size)
		s.m.flags.set(AllFlags, 0, OwnFlags(uint16(v)), k)
	case LahF:
		k := s.m.flags.of(Arithmetic &^ OF)
		a := Operand{Class: High, Reg: RAX, Size: 1}
		s.put(&a, uint64(uint8(architectural(s.m.flags.value))), k)
	case SahF:
		a := Operand{Class: High, Reg: RAX, Size: 1}
		v, k := s.value(&a)
		s.m.flags.set(Arithmetic&^OF, 0, OwnFlags(uint16(v)), k)
	case ClC:
		s.m.flags.set(CF, 0, 0, Confirmed)
	case StC:
		s.m.flags.set(CF, 0, CF, Confirmed)
	case CmC:
		s.m.flags.set(CF, 0, ^s.m.flags.value, s.m.flags.of(CF))
	case ClD:
		s.m.flags.set(DF, 0, 0, Confirmed)
	case StD:
		s.m.flags.set(DF, 0, DF, Confirmed)
	}
}

// architecturalBits are the flags' places in the processor's register.
var architecturalBits = [7]uint8{0, 2, 4, 6, 7, 11, 10}

// Architectural returns flags as the processor has them, and no others.
func Architectural(own uint8) uint16 { return architectural(own) &^ 2 }

// architectural is Architectural with bit 1, which is always set.
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
