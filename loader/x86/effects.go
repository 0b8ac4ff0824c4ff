package x86

import "encoding/binary"

// Effects are what one instruction does, decoded once: the operation, its operands, and by methods
// the registers, flags and memory that it reads and writes, and what it adds to rsp. They hold
// whatever the instruction's registers hold. Where the instruction is not known in full, the sets
// of what may be read or written are too large, never too small, those of what surely happens are
// empty, and Complete says so. Effects share the instruction's bytes.
//
// An operand's Size is its width in bytes, 0 where that is not known (vectors, x87). Vector, mask,
// segment and x87 registers are no operands: these are empty, as the ones that an operation does
// not have. A write of 4 bytes to a register clears the upper half; narrower ones leave what is
// above.
type Effects struct {
	Operation Operation
	Kind      Kind
	// that JumpIf, MovIf and SetIf ask for, as it is encoded: the lowest bit negates it
	Condition uint8
	Repeat    byte // f2, f3 or 0
	Locked    bool
	HasImm    bool
	Third     int8  // a register, or NoRegister
	Imm       int64 // sign-extended from its own width
	Dst, Src  Operand

	in   Inst
	code []byte
}

// Effects decodes the instruction at the start of code, behind which next is. Of truncated code
// nothing is known. Cost: some 60 ns; it does not allocate.
func (in *Inst) Effects(code []byte, next uint64) (e Effects) {
	e.in, e.Kind, e.Repeat, e.Third = *in, in.Kind, in.Rep, NoRegister
	e.Locked = in.prefix&lockPrefix != 0
	e.Dst, e.Src = none, none
	if len(code) < int(in.Len) {
		return e
	}
	e.code = code[:in.Len]
	var f form
	e.Operation, f = meaningOf(in)
	switch e.Operation {
	case JumpIf, MovIf, SetIf:
		e.Condition = in.Op & 15
	}
	if f == formN {
		return e
	}
	if !in.HasModRM {
		e.placeShort(f, int(in.operandAt))
		return e
	}
	reg, rm, imm := in.Operands(e.code, next)
	e.place(f, reg, rm, imm)
	switch {
	case e.Operation == Vector || e.Operation == X87 || e.Operation == State:
		e.keepGeneral(f)
	case e.Operation == Mov && !e.HasImm && f == formM: // of a segment register, or fsbase
		if !e.Dst.Mem {
			e.Dst.Size = in.operandSize()
		}
	case e.Operation == CmpXchgPair:
		e.Dst.Size = 2 * max(in.operandSize(), 4) // whatever a 66 prefix says
	}
	return e
}

// place fills in the operands of a form with a ModRM byte.
func (e *Effects) place(f form, reg int8, rm Operand, imm int) {
	if !rm.Mem && rm.Reg >= 0 {
		rm = e.register(rm.Reg, rm.Size)
	}
	switch f {
	case formM:
		e.Dst = rm
	case formMR:
		e.Dst, e.Src = rm, e.register(reg, e.regSize())
	case formRM:
		e.Dst, e.Src = e.register(reg, e.regSize()), rm
	case formMI:
		e.Dst = rm
		e.immediate(imm)
	case formM1:
		e.Dst, e.Imm, e.HasImm = rm, 1, true
	case formMC:
		e.Dst, e.Src = rm, e.register(RCX, 1)
	case formNM:
		e.Src = rm
	default:
		e.placeThree(f, e.register(reg, e.regSize()), rm, imm)
	}
}

// placeShort fills in the operands of a form without a ModRM byte.
func (e *Effects) placeShort(f form, imm int) {
	size := e.in.operandSize()
	switch f {
	case formNI:
		e.immediate(imm)
	case formAI:
		e.Dst = e.register(RAX, e.size())
		e.immediate(imm)
	case formAA:
		e.Dst, e.Src = e.register(RAX, size), e.register(RAX, size/2)
	case formDA:
		e.Dst, e.Src = e.register(RDX, size), e.register(RAX, size)
	case formAF, formFA:
		e.placeAbsolute(f, e.register(RAX, e.size()), imm)
	default:
		e.placeOpcode(f, imm)
	}
}

// placeOpcode is for the forms with a register in the opcode.
func (e *Effects) placeOpcode(f form, imm int) {
	in := &e.in
	size := in.operandSize()
	switch {
	case f == formOI && in.Op < 0xb8:
		size = 1
	case in.Map == 0 && (f == formO || f == formNO):
		size = in.stackWidth()
	}
	o := e.register(e.opcodeRegister(), size)
	switch f {
	case formNO:
		e.Src = o
	case formOA:
		e.Dst, e.Src = o, e.register(RAX, size)
	case formOI:
		e.Dst = o
		e.immediate(imm)
	default:
		e.Dst = o
	}
}

// placeAbsolute is for mov from and to an absolute address.
func (e *Effects) placeAbsolute(f form, accumulator Operand, imm int) {
	e.immediate(imm)
	m := Operand{Mem: true, Reg: -1, Base: -1, Index: -1, Scale: 1, Disp: e.Imm,
		Size: accumulator.Size}
	if len(e.code)-imm == 4 {
		m.Disp = int64(uint32(e.Imm))
	}
	e.Imm, e.HasImm = 0, false
	if f == formAF {
		e.Dst, e.Src = accumulator, m
	} else {
		e.Dst, e.Src = m, accumulator
	}
}

// placeThree is for the forms of three operands.
func (e *Effects) placeThree(f form, r, rm Operand, imm int) {
	switch f {
	case formRMI:
		e.Dst, e.Src = r, rm
		e.immediate(imm)
	case formRMR:
		e.Dst, e.Src, e.Third = r, rm, r.Reg
	case formRMV:
		e.Dst, e.Src, e.Third = r, rm, int8(e.in.vvvv)
	case formMRI:
		e.Dst, e.Src = rm, r
		e.immediate(imm)
	case formMRC:
		e.Dst, e.Src, e.Third = rm, r, RCX
	case formVM:
		e.Dst, e.Src = e.register(int8(e.in.vvvv), rm.Size), rm
	}
}

// register returns a general register as an operand: of one byte, the numbers 4 to 7 are ah to bh
// unless there is a REX prefix.
func (e *Effects) register(number int8, size uint8) Operand {
	if number < 0 {
		return none
	}
	if size == 1 && e.in.Rex == 0 && number >= 4 {
		number += AH - 4
	}
	return Operand{Reg: number, Base: -1, Index: -1, Size: size}
}

func (e *Effects) immediate(at int) { e.Imm, e.HasImm = signed(e.code[at:]) }

// signed returns a little-endian number of 1, 2, 4 or 8 bytes, sign-extended.
func signed(b []byte) (n int64, ok bool) {
	switch len(b) {
	case 1:
		return int64(int8(b[0])), true
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(b))), true
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b))), true
	case 8:
		return int64(binary.LittleEndian.Uint64(b)), true
	}
	return 0, false
}

// keepGeneral takes what is no general register out of the operands of vector and x87 instructions.
func (e *Effects) keepGeneral(f form) {
	toRM, toReg := e.in.destinations()
	isDst, isSrc := toRM, false
	if f == formRM {
		isDst, isSrc = toReg, e.readsGeneral()
	}
	if !e.Dst.Mem && (!isDst || e.Operation == X87) {
		e.Dst = none
	}
	if !e.Src.Mem && !isSrc {
		e.Src = none
	}
	if e.Operation == X87 && e.Dst.Mem && !e.x87Stores() {
		e.Dst, e.Src = none, e.Dst
	}
}

// readsGeneral says whether the r/m register of a vector instruction is a general one that it
// reads.
func (e *Effects) readsGeneral() bool {
	in := &e.in
	switch in.Map {
	case 1, 0x11, 0x21: // movd, cvtsi2sd, pinsrw; kmov, vcvtusi2sd
		return in.Op == 0x6e || in.Op == 0x2a || in.Op == 0xc4 || in.Op == 0x92 && in.Map == 0x11 ||
			in.Op == 0x7b && in.Map == 0x21 && in.Rep != 0
	case 3, 0x13, 0x23: // pinsrb, pinsrd
		return in.Op == 0x20 || in.Op == 0x22
	case 0x22: // vpbroadcastb and the like
		return in.Op >= 0x7a && in.Op <= 0x7c
	}
	return false
}

// x87Stores says whether an x87 instruction with a memory operand writes it.
func (e *Effects) x87Stores() bool {
	stores := [8]uint8{1: 0xcc, 3: 0x8e, 5: 0xce, 7: 0xce} // by opcode, a bit for each group
	return stores[e.in.Op&7]>>(e.in.ModRM>>3&7)&1 != 0
}

// size returns the width in bytes of an opcode's integer operands.
func (e *Effects) size() uint8 {
	in := &e.in
	switch {
	case in.Map == 0 && (oneByte[in.Op]&byteWide != 0 || e.isByteForm()):
		return 1
	case in.Map == 1 && twoByte[in.Op]&byteWide != 0:
		return 1
	}
	return in.operandSize()
}

// isByteForm says so of the opcodes without a ModRM byte that take the low byte of the accumulator.
func (e *Effects) isByteForm() bool {
	in := &e.in
	return in.Op < 0x40 && in.Op&7 == 4 || in.Op == 0xa8 || in.Op >= 0xa0 && in.Op < 0xb0 &&
		in.Op != 0xa9 && in.Op&1 == 0
}

// regSize is size for the operand that the reg field names.
func (e *Effects) regSize() uint8 {
	in := &e.in
	if in.Map == 1 && (in.Op == 0xb6 || in.Op == 0xbe) {
		return in.operandSize()
	}
	return e.size()
}

// opcodeRegister is the register that the low bits of the opcode name.
func (e *Effects) opcodeRegister() int8 { return int8(e.in.Op&7 | e.in.Rex<<3&8) }

// Complete reports whether Operation and the operands say all that the instruction does to general
// registers, flags and memory, so that an emulator can run it. It cannot where a value comes from
// elsewhere: the processor, the kernel, vector and x87 registers, what a segment begins at.
func (e *Effects) Complete() bool {
	switch e.Operation {
	case Unknown, Vector, X87, State, CpuID, RdTSC, Random, SystemCall, XBegin, XEnd, XAbort, PushF,
		PopF:
		return false
	case Mov: // of a segment register
		return !e.Elsewhere() && (e.HasImm || e.Src != none)
	case Push, Pop:
		return !e.Elsewhere() && (e.HasImm || e.Dst != none || e.Src != none)
	}
	return !e.Elsewhere()
}

// Elsewhere reports whether memory operands are not where their registers say: a segment is added,
// or addresses have 32 bits.
func (e *Effects) Elsewhere() bool { return e.in.Elsewhere() }

// Calls reports whether the instruction has other code run, the kernel's included, before the next
// one.
func (e *Effects) Calls() bool { return e.Kind == Call || e.Kind == CallInd || e.Kind == Syscall }

// Address returns the memory operand that the instruction names, also where it uses its address
// alone as lea does; Mem is not set if there is none.
func (e *Effects) Address() Operand {
	if e.Dst.Mem {
		return e.Dst
	}
	if e.Src.Mem {
		return e.Src
	}
	return none
}

// Read is the set of general registers whose values the instruction uses, those of addresses
// included; a register of which a part is written counts, for the rest stays.
func (e *Effects) Read() Set {
	n := &natures[e.Operation]
	s := n.read
	for _, o := range []struct {
		operand *Operand
		access  access
	}{{&e.Dst, n.dst}, {&e.Src, n.src}} {
		switch {
		case o.operand.Mem:
			s |= bit(o.operand.Base) | bit(o.operand.Index)
		case o.access&reads != 0 || o.operand.Size < 4:
			s |= bit(o.operand.Reg)
		}
	}
	if n.third&reads != 0 {
		s |= bit(e.Third)
	}
	switch e.Operation {
	case Xor, Sub: // of a register with itself: a constant
		if e.Src.Reg >= 0 && e.Src == e.Dst && e.Dst.Size >= 4 {
			s &^= bit(e.Dst.Reg)
		}
	case Div, IDiv:
		if e.Src.Size > 1 {
			s |= 1 << RDX
		}
	case Movs, Stos, Cmps, Scas, Lods:
		if e.Repeat != 0 {
			s |= 1 << RCX
		}
	case Vector:
		s |= e.implied()
	}
	return s
}

// implied is what vector instructions read besides their operands.
func (e *Effects) implied() Set {
	switch {
	case e.in.Map&0xf == 1 && e.in.Op == 0xf7: // maskmovq
		return 1 << RDI
	case e.in.Map&0xf == 3 && (e.in.Op == 0x60 || e.in.Op == 0x61): // pcmpestri
		return 1<<RAX | 1<<RDX
	}
	return 0
}

// Written is the set of general registers that the instruction may write. Of rsp it has only
// explicit writes: StackDelta knows the others. What is called, or a system call's kernel, is
// another matter, but for what the instruction itself writes.
func (e *Effects) Written() Set {
	n := &natures[e.Operation]
	s := n.written
	if n.dst&writes != 0 && !e.Dst.Mem {
		s |= bit(e.Dst.Reg)
	}
	if n.src&writes != 0 && !e.Src.Mem {
		s |= bit(e.Src.Reg)
	}
	if n.third&writes != 0 {
		s |= bit(e.Third)
	}
	switch e.Operation {
	case MulWide, IMulWide, Div, IDiv:
		s |= 1 << RAX
		if e.Src.Size > 1 {
			s |= 1 << RDX
		}
	case Movs, Stos, Cmps, Scas, Lods:
		if e.Repeat != 0 {
			s |= 1 << RCX
		}
	case X87:
		if e.in.Op == 0xdf && e.in.ModRM == 0xe0 || e.in.Op == 0x9b { // fnstsw ax
			s |= 1 << RAX
		}
	case Vector:
		if e.in.Map&0xf == 3 && e.in.Op&0xf1 == 0x61 && e.in.Op&0xf < 4 { // pcmpestri, pcmpistri
			s |= 1 << RCX
		}
	}
	return s
}

// SurelyWritten is the set of registers of whose former value nothing is left, unless the
// instruction reads it.
func (e *Effects) SurelyWritten() Set {
	n := &natures[e.Operation]
	s := Set(0)
	if n.dst&(writes|maybe) == writes && e.Dst.Size >= 4 && !e.Dst.Mem {
		s |= bit(e.Dst.Reg)
	}
	if n.src&(writes|maybe) == writes && e.Src.Size >= 4 && !e.Src.Mem {
		s |= bit(e.Src.Reg)
	}
	if n.third&writes != 0 {
		s |= bit(e.Third)
	}
	switch e.Operation {
	case MulWide, IMulWide, Div, IDiv:
		if e.Src.Size >= 4 {
			s |= 1<<RAX | 1<<RDX
		}
	case CpuID, RdTSC:
		s |= n.written
	}
	return s
}

// Named is the set of registers that the instruction's bytes name otherwise than for a memory
// operand's address, read or written, those of an lea's address included. Where it has vector, mask
// or segment registers, or a part of the opcode, in place of general ones, those of the same
// numbers are in the set.
func (e *Effects) Named() Set {
	in := &e.in
	s := bit(in.Third())
	switch {
	case e.Operation == Lea:
		return s | bit(e.Src.Base) | bit(e.Src.Index) | bit(e.Dst.Reg)
	case in.HasModRM:
		if !e.isGroup() {
			s |= 1 << (in.ModRM>>3&7 | in.Rex<<1&8)
		}
		if in.ModRM>>6 == 3 {
			s |= 1 << (in.ModRM&7 | in.Rex<<3&8)
		}
	case e.Operation == Push && !e.HasImm, e.Operation == Xchg, e.Operation == NoOp && in.Map == 0,
		e.Operation == BSwap:
		s |= bit(e.opcodeRegister())
	case e.Operation == Enter:
		return AllRegisters
	}
	return s
}

// isGroup reports whether the reg field of the ModRM byte is a part of the opcode.
func (e *Effects) isGroup() bool {
	in := &e.in
	o := in.Op
	return in.Map == 0 && (o >= 0x80 && o <= 0x83 || o == 0xc0 || o == 0xc1 || o == 0xc6 ||
		o == 0xc7 || o >= 0xd0 && o <= 0xd3 || o == 0xf6 || o == 0xf7 || o >= 0xfe) ||
		in.Map == 1 && (o == 0xba || o >= 0x18 && o <= 0x1f)
}

// FlagsRead is the set of flags that the instruction may use.
func (e *Effects) FlagsRead() Flags {
	switch e.Operation {
	case JumpIf, MovIf, SetIf:
		return conditionFlags[e.Condition>>1]
	}
	return natures[e.Operation].uses
}

// FlagsWritten is the set of flags that the instruction may change.
func (e *Effects) FlagsWritten() Flags { return flagsWritten(&e.in, e.Operation) }

// KeepsFlags reports whether the instruction surely leaves the arithmetic flags alone, by its
// operation alone: it is cheaper than Effects.
func (in *Inst) KeepsFlags() bool { return flagsWritten(in, in.Operation())&arithmeticFlags == 0 }

func flagsWritten(in *Inst, op Operation) Flags {
	sets := natures[op].sets
	switch op {
	case X87: // fcomi and its like, and fcmov besides
		if in.ModRM>>6 == 3 && (in.Op == 0xdb || in.Op == 0xdf) {
			return arithmeticFlags
		}
	case Vector:
		if comparesVectors(in) {
			return arithmeticFlags
		}
	}
	return sets
}

// comparesVectors says whether a vector instruction sets flags.
func comparesVectors(in *Inst) bool {
	switch in.Map & 0xf {
	case 1: // comisd, ucomisd, kortest, ktest
		return in.Op == 0x2e || in.Op == 0x2f || in.Map == 0x11 && (in.Op == 0x98 || in.Op == 0x99)
	case 2: // ptest, vtestps, vtestpd
		return in.Op == 0x17 || in.Op == 0x0e || in.Op == 0x0f
	case 3: // pcmpestrm and its like
		return in.Op >= 0x60 && in.Op <= 0x63
	}
	return in.Map&0xf > 3
}

// Stores returns the memory operand that the instruction may write, and how many bytes from its
// address on at most. ok is false if it has none; StoresUnseen knows what no operand says.
func (e *Effects) Stores() (to Operand, bytes int, ok bool) {
	n := &natures[e.Operation]
	switch {
	case e.Dst.Mem && n.dst&writes != 0:
		return e.Dst, e.storeSize(&e.Dst), true
	case e.Src.Mem && n.src&writes != 0:
		return e.Src, e.storeSize(&e.Src), true
	}
	return none, 0, false
}

func (e *Effects) storeSize(to *Operand) int {
	switch {
	case e.Operation == State: // which no frame has spill slots within
		return 1 << 14
	case to.Size > 0:
		return int(to.Size)
	case e.Operation == X87:
		return 108
	case e.in.Map < 0x10:
		return 16
	case e.in.Map < 0x20:
		return 32
	}
	return 64
}

// StoresUnseen reports whether the instruction may store where no operand says, the stack apart:
// string instructions, maskmov and what is not known.
func (e *Effects) StoresUnseen() bool {
	switch e.Operation {
	case Movs, Stos:
		return true
	case Vector:
		return e.in.Map&0xf == 1 && e.in.Op == 0xf7
	case Unknown:
		return e.in.Map == 0 || e.in.Map&0xf == 1 && e.in.Op == 0x01 // ins; clzero
	}
	return false
}

// Far reports whether what the instruction accesses may lie far from where its memory operand says:
// a bit that is written and a register numbers, elements that a vector does, and what EVEX has,
// whose displacements are not scaled here.
func (e *Effects) Far() bool {
	switch {
	case e.Operation == Bts || e.Operation == Btr || e.Operation == Btc:
		return !e.HasImm && e.Dst.Mem
	case e.in.Map == 0x12 && e.in.Op >= 0x90 && e.in.Op <= 0x93: // gathers
		return e.Operation == Vector
	}
	return e.in.Map >= 0x20 && e.Address().Mem
}

// An Access is memory that an instruction reads or writes: of string instructions what one round
// does, with Repeat.
type Access struct {
	At            Operand // Size 0: how many bytes is not known
	Reads, Writes bool
}

// Accesses appends all memory that the instruction surely names, or uses by its nature: its
// operand, what string instructions move, and the stack. StoresUnseen and Complete say whether
// there may be more.
func (e *Effects) Accesses(list []Access) []Access {
	at := func(base int8, disp int64, size uint8) Operand {
		return Operand{Mem: true, Reg: -1, Base: base, Index: -1, Scale: 1, Disp: disp, Size: size}
	}
	size := e.size()
	n := &natures[e.Operation]
	for i, o := range []*Operand{&e.Dst, &e.Src} {
		if a := [...]access{n.dst, n.src}[i]; o.Mem && a&update != 0 {
			list = append(list, Access{At: *o, Reads: a&reads != 0, Writes: a&writes != 0})
			list[len(list)-1].At.Size = e.MemorySize()
		}
	}
	stack := e.in.stackWidth()
	switch e.Operation {
	case Movs:
		list = append(list, Access{At: at(RSI, 0, size), Reads: true},
			Access{At: at(RDI, 0, size), Writes: true})
	case Cmps:
		list = append(list, Access{At: at(RSI, 0, size), Reads: true},
			Access{At: at(RDI, 0, size), Reads: true})
	case Stos:
		list = append(list, Access{At: at(RDI, 0, size), Writes: true})
	case Lods:
		list = append(list, Access{At: at(RSI, 0, size), Reads: true})
	case Scas:
		list = append(list, Access{At: at(RDI, 0, size), Reads: true})
	case Push, PushF:
		list = append(list, Access{At: at(RSP, -int64(stack), stack), Writes: true})
	case CallTo:
		list = append(list, Access{At: at(RSP, -8, 8), Writes: true})
	case Pop, PopF, Return:
		list = append(list, Access{At: at(RSP, 0, stack), Reads: true})
	case Leave:
		list = append(list, Access{At: at(RBP, 0, stack), Reads: true})
	case Enter:
		list = append(list, Access{At: at(RSP, -8, 8), Writes: true})
	}
	return list
}

// StackDelta returns what the instruction adds to rsp on its way to the next one; see
// Inst.StackDelta.
func (e *Effects) StackDelta() (delta int, ok bool) { return e.in.StackDelta(e.code) }
