package machine

// Used is a set of registers: the general ones by number, with FS and GS, and vectors.
type Used struct {
	General uint32
	Vectors uint32
}

// Uses returns the registers that the results of an instruction depend on, and where it goes: those
// of its operands, those that are implied, those that addresses are made of, and a general one that
// it writes in part. What it may use and does not always counts as used. Of an opaque instruction
// only addresses are known. It takes some 10 ns.
func (in *Insn) Uses() Used {
	var u Used
	u.address(&in.Dst)
	u.address(&in.Src)
	u.address(&in.Third)
	u.implied(in)
	same := in.Src.Reg == in.Dst.Reg && in.Src.Class == in.Dst.Class && in.Dst.Class != Mem
	switch in.Op {
	case Opaque, NoOp, Lea, Pop, Return, Leave, PushF, PopF, LahF, SahF, ClC, StC, CmC, ClD, StD,
		SetIf, JumpIf, JumpCX, Loop, LoopEqual, LoopUneven, Movs, Cmps, Stos, Lods, Scas:
	case Sub, Cmp, Xor, Sbb:
		if !same { // else the value does not matter
			u.value(&in.Dst)
			u.value(&in.Src)
		}
	case Mov, MovSX, MovBE, Push, SignFill, Jump, Call, PopCnt, TzCnt, LzCnt, Blsi, BlsMsk, Blsr,
		MulWide, IMulWide, MulX, Div, IDiv:
		u.value(&in.Src)
	case IMul, AndN, BExtr, Bzhi, PDep, PExt, Rorx, Sarx, Shlx, Shrx:
		u.value(&in.Src)
		u.value(&in.Third)
	case FMulAdd:
		u.value(&in.Src)
		u.value(&in.Third)
		u.value(&in.Dst)
	case VBlendBy:
		u.value(&in.Src)
		u.value(&in.Third)
		u.Vectors |= 1 << (in.Imm & 15)
	case VXor, VSub: // all of a register are zeroes that has them with itself
		if in.Src != in.Third {
			u.value(&in.Src)
			u.value(&in.Third)
		}
	default:
		u.value(&in.Src)
		u.value(&in.Third)
		if in.Op < firstVector || in.Op == VTest || in.Op == FCompare {
			u.value(&in.Dst)
		}
	}
	if d := &in.Dst; (d.Class == General && d.Size < 4 || d.Class == High) && in.Op != Push {
		u.value(d) // the rest of it stays
	}
	return u
}

// value adds a register that an operand is.
func (u *Used) value(o *Operand) {
	switch o.Class {
	case General:
		u.General |= 1 << (o.Reg & 31)
	case High:
		u.General |= 1 << (o.Reg & 3)
	case Vector:
		u.Vectors |= 1 << (o.Reg & 31)
	}
}

// address adds the registers that an operand's address is made of.
func (u *Used) address(o *Operand) {
	if o.Class == Mem {
		u.General |= (1<<(o.Reg&31) | 1<<(o.Index&31) | 1<<(o.Segment&31)) &^ (1<<Next | 1<<Zero)
	}
}

// implied adds registers that are no operands.
func (u *Used) implied(in *Insn) {
	switch in.Op {
	case Push, Pop, Call, Return, PushF, PopF:
		u.General |= 1 << RSP
	case Leave:
		u.General |= 1 << RBP
	case MulWide, IMulWide:
		u.General |= 1 << RAX
		if in.Size == 2 {
			u.General |= 1 << RDX // the rest of it stays
		}
	case LahF, SahF, CmpXchg:
		u.General |= 1 << RAX
	case MulX:
		u.General |= 1 << RDX
	case Div, IDiv:
		u.General |= 1<<RAX | 1<<RDX
	case CmpXchg2:
		u.General |= 1<<RAX | 1<<RDX | 1<<RBX | 1<<RCX
	case JumpCX, Loop, LoopEqual, LoopUneven:
		u.General |= 1 << RCX
	case Movs, Cmps:
		u.General |= 1<<RSI | 1<<RDI
	case Stos, Scas:
		u.General |= 1<<RAX | 1<<RDI
	case Lods:
		u.General |= 1 << RSI
		if in.Size < 4 {
			u.General |= 1 << RAX
		}
	}
	if in.Repeat != Once {
		u.General |= 1 << RCX
	}
}

// WrittenVectors returns the vector registers that an instruction may write.
func (in *Insn) WrittenVectors() (registers uint16) {
	if in.Op == Opaque {
		registers = in.Opaque().Vectors
	}
	if in.Dst.Class == Vector && in.Op != VTest && in.Op != FCompare {
		registers |= 1 << (in.Dst.Reg & 15)
	}
	return registers
}

// Names returns the address that a call or jump has in itself, of an instruction whose next one is
// at an address: that which it leads to or, of a slot that holds that, the slot's. ok is false
// where it has none: it is by a register, say.
func (in *Insn) Names(next uint64) (addr uint64, ok bool) {
	switch in.Op {
	case JumpIf:
		return next + uint64(in.Imm), true
	case Jump, Call:
		o := &in.Src
		if o.Class == Immediate {
			return next + uint64(in.Imm), true
		}
		return next + uint64(o.Disp), o.Class == Mem && o.Reg == Next && o.Index == Zero &&
			o.Segment == Zero
	}
	return 0, false
}
