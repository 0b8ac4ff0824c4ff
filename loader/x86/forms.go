package x86

// A form says where an instruction's operands are. M is the operand that the ModRM byte names, a
// general register or memory; R the register of its reg field; O the register in the opcode; A the
// accumulator, rax; I the immediate; V the register of the field vvvv. The first letter is Dst, the
// second Src, the third Third; N stands for none.
type form uint8

const (
	formN form = iota
	formI
	formNI // the immediate is the source
	formM
	formMR
	formRM
	formMI
	formM1 // shifts by one
	formMC // shifts by CL
	formAI
	formAA // within the accumulator, from the half of it: cbw, cwde, cdqe
	formDA // cwd, cdq, cqo
	formNM
	formO
	formNO
	formOI
	formOA
	formRMI
	formRMR // Third is Dst
	formRMV
	formMRI
	formMRC
	formVM
	formAF // from and to an absolute address
	formFA
)

// A meaning is what an opcode stands for, or a member of an opcode group, by the reg field of its
// ModRM byte.
type meaning struct {
	op    Operation
	form  form
	group *[8]meaning
}

var (
	oneByteMeanings = oneByteMeaningMap()
	twoByteMeanings = twoByteMeaningMap()
)

type meanings [256]meaning

func (t *meanings) set(op Operation, f form, opcodes ...byte) {
	for _, o := range opcodes {
		t[o] = meaning{op: op, form: f}
	}
}

func (t *meanings) setRange(op Operation, f form, first, last byte) {
	for o := int(first); o <= int(last); o++ {
		t[o] = meaning{op: op, form: f}
	}
}

func (t *meanings) setGroup(f form, ops [8]Operation, opcodes ...byte) {
	g := &[8]meaning{}
	for i, op := range ops {
		g[i] = meaning{op: op, form: f}
	}
	for _, o := range opcodes {
		t[o] = meaning{group: g}
	}
}

var (
	arithmeticGroup = [8]Operation{Add, Or, Adc, Sbb, And, Sub, Xor, Cmp}
	shiftGroup      = [8]Operation{Rol, Ror, Rcl, Rcr, Shl, Shr, Shl, Sar}
)

func oneByteMeaningMap() (t meanings) {
	for row, op := range arithmeticGroup {
		first := byte(row) << 3
		t.set(op, formMR, first, first+1)
		t.set(op, formRM, first+2, first+3)
		t.set(op, formAI, first+4, first+5)
	}
	t.setGroup(formMI, arithmeticGroup, 0x80, 0x81, 0x83)
	t.setGroup(formMI, shiftGroup, 0xc0, 0xc1)
	t.setGroup(formM1, shiftGroup, 0xd0, 0xd1)
	t.setGroup(formMC, shiftGroup, 0xd2, 0xd3)
	unary := &[8]meaning{
		{op: Test, form: formMI}, {op: Test, form: formMI}, {op: Not, form: formM},
		{op: Neg, form: formM},
		{op: MulWide, form: formNM}, {op: IMulWide, form: formNM}, {op: Div, form: formNM},
		{op: IDiv, form: formNM},
	}
	t[0xf6], t[0xf7] = meaning{group: unary}, meaning{group: unary}
	t[0xfe] = meaning{group: &[8]meaning{{op: Inc, form: formM}, {op: Dec, form: formM}}}
	t[0xff] = meaning{group: &[8]meaning{
		{op: Inc, form: formM}, {op: Dec, form: formM}, {op: CallTo, form: formNM}, {},
		{op: Jump, form: formNM}, {}, {op: Push, form: formNM},
	}}
	t[0x8f] = meaning{group: &[8]meaning{{op: Pop, form: formM}}}
	t[0xc6] = meaning{group: &[8]meaning{{op: Mov, form: formMI}, 7: {op: XAbort}}}
	t[0xc7] = meaning{group: &[8]meaning{{op: Mov, form: formMI}, 7: {op: XBegin}}}

	t.setRange(Push, formNO, 0x50, 0x57)
	t.setRange(Pop, formO, 0x58, 0x5f)
	t.set(MovSX, formRM, 0x63)
	t.set(Push, formNI, 0x68, 0x6a)
	t.set(IMul, formRMI, 0x69, 0x6b)
	t.setRange(JumpIf, formN, 0x70, 0x7f)
	t.set(Test, formMR, 0x84, 0x85)
	t.set(Xchg, formMR, 0x86, 0x87)
	t.set(Mov, formMR, 0x88, 0x89)
	t.set(Mov, formRM, 0x8a, 0x8b)
	t.set(Mov, formM, 0x8c) // from a segment register
	t.set(Lea, formRM, 0x8d)
	t.setRange(Xchg, formOA, 0x90, 0x97)
	t.set(MovSX, formAA, 0x98)
	t.set(SignFill, formDA, 0x99)
	t.set(NoOp, formN, 0x9b)
	t.set(PushF, formN, 0x9c)
	t.set(PopF, formN, 0x9d)
	t.set(SahF, formN, 0x9e)
	t.set(LahF, formN, 0x9f)
	t.set(Mov, formAF, 0xa0, 0xa1)
	t.set(Mov, formFA, 0xa2, 0xa3)
	t.set(Movs, formN, 0xa4, 0xa5)
	t.set(Cmps, formN, 0xa6, 0xa7)
	t.set(Test, formAI, 0xa8, 0xa9)
	t.set(Stos, formN, 0xaa, 0xab)
	t.set(Lods, formN, 0xac, 0xad)
	t.set(Scas, formN, 0xae, 0xaf)
	t.setRange(Mov, formOI, 0xb0, 0xbf)
	t.set(Return, formN, 0xc2, 0xc3)
	t.set(Enter, formN, 0xc8)
	t.set(Leave, formN, 0xc9)
	t.set(Stop, formN, 0xcc, 0xf4)
	t.setRange(X87, formM, 0xd8, 0xdf)
	t.set(LoopUnequal, formN, 0xe0)
	t.set(LoopEqual, formN, 0xe1)
	t.set(LoopRCX, formN, 0xe2)
	t.set(JumpRCX, formN, 0xe3)
	t.set(CallTo, formN, 0xe8)
	t.set(Jump, formN, 0xe9, 0xeb)
	t.set(FlipCarry, formN, 0xf5)
	t.set(ClearCarry, formN, 0xf8)
	t.set(SetCarry, formN, 0xf9)
	t.set(ClearDirection, formN, 0xfc)
	t.set(SetDirection, formN, 0xfd)
	return t
}

func twoByteMeaningMap() (t meanings) {
	t.set(SystemCall, formN, 0x05, 0x34)
	t.set(Stop, formN, 0x0b, 0xb9, 0xff)
	t.set(NoOp, formN, 0x0d, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f)
	t.setRange(Vector, formRM, 0x10, 0x17)
	t.setRange(Vector, formRM, 0x28, 0x2f)
	t.setRange(Vector, formRM, 0x50, 0x7f)
	t.setRange(Vector, formRM, 0xc4, 0xc6)
	t.setRange(Vector, formRM, 0xd0, 0xfe)
	t.set(Vector, formRM, 0xc2)
	t.set(Vector, formMR, 0x11, 0x13, 0x17, 0x29, 0x2b, 0x7e, 0x7f, 0xd6, 0xe7) // stores
	t.set(RdTSC, formN, 0x31)
	t.setRange(MovIf, formRM, 0x40, 0x4f)
	t.set(Unknown, formRM, 0x78, 0x79)
	t.setRange(JumpIf, formN, 0x80, 0x8f)
	t.setRange(SetIf, formM, 0x90, 0x9f)
	t.set(Push, formN, 0xa0, 0xa8)
	t.set(Pop, formN, 0xa1, 0xa9)
	t.set(CpuID, formN, 0xa2)
	t.set(Bt, formMR, 0xa3)
	t.set(Bts, formMR, 0xab)
	t.set(Btr, formMR, 0xb3)
	t.set(Btc, formMR, 0xbb)
	t.setGroup(formMI, [8]Operation{4: Bt, 5: Bts, 6: Btr, 7: Btc}, 0xba)
	t.set(Shld, formMRI, 0xa4)
	t.set(Shld, formMRC, 0xa5)
	t.set(Shrd, formMRI, 0xac)
	t.set(Shrd, formMRC, 0xad)
	t.set(IMul, formRMR, 0xaf)
	t.set(CmpXchg, formMR, 0xb0, 0xb1)
	t.set(MovZX, formRM, 0xb6, 0xb7)
	t.set(MovSX, formRM, 0xbe, 0xbf)
	t.set(Bsf, formRM, 0xbc)
	t.set(Bsr, formRM, 0xbd)
	t.set(XAdd, formMR, 0xc0, 0xc1)
	t.set(Mov, formMR, 0xc3) // movnti
	t.setRange(BSwap, formO, 0xc8, 0xcf)
	return t
}

// meaningOf returns what an instruction stands for.
func meaningOf(in *Inst) (op Operation, f form) {
	switch in.Map {
	case 0:
		m := &oneByteMeanings[in.Op]
		if m.group != nil {
			m = &m.group[in.ModRM>>3&7]
		}
		return oneByteMeaning(in, m)
	case 1:
		m := &twoByteMeanings[in.Op]
		if m.group != nil {
			m = &m.group[in.ModRM>>3&7]
		}
		return twoByteMeaning(in, m)
	case 2:
		return threeByteMeaning(in)
	case 3:
		return vectorMeaning(in)
	case 0x12, 0x13:
		return bitMeaning(in)
	case 0x11, 0x21:
		return vexMeaning(in)
	case 0x22, 0x23:
		return vectorMeaning(in)
	}
	return Unknown, anyForm(in)
}

// anyForm is the form of what is not known in full.
func anyForm(in *Inst) form {
	if in.HasModRM {
		return formMR
	}
	return formN
}

func oneByteMeaning(in *Inst, m *meaning) (Operation, form) {
	switch {
	case m.op == Unknown && in.Op == 0xff: // far calls and jumps
		return Unknown, formNM
	case m.op == Unknown:
		return Unknown, anyForm(in)
	case m.op == Xchg && in.Op == 0x90 && in.Rex&1 == 0:
		return NoOp, formN
	case (m.op == XBegin || m.op == XAbort) && in.ModRM != 0xf8:
		return Unknown, formM
	}
	return m.op, m.form
}

func twoByteMeaning(in *Inst, m *meaning) (Operation, form) {
	group, register := in.ModRM>>3&7, in.ModRM>>6 == 3
	switch in.Op {
	case 0x01:
		if in.ModRM == 0xd5 {
			return XEnd, formN
		}
	case 0x1e: // rdssp; endbr64
		if in.Rep == 0xf3 && register && group == 1 {
			return Mov, formM
		}
	case 0xae:
		return stateMeaning(in, group, register)
	case 0xb8:
		if in.Rep == 0xf3 {
			return PopCnt, formRM
		}
	case 0xbc:
		if in.Rep == 0xf3 {
			return TzCnt, formRM
		}
	case 0xbd:
		if in.Rep == 0xf3 {
			return LzCnt, formRM
		}
	case 0xc7:
		switch {
		case register && group >= 6 && in.Rep == 0:
			return Random, formM
		case !register && group == 1:
			return CmpXchgPair, formM
		case !register && group >= 3 && group <= 5:
			return State, formM
		}
	case 0x77: // emms
		return Vector, formN
	case 0x7e:
		if in.Rep == 0xf3 { // movq, to a vector register
			return Vector, formRM
		}
	}
	if m.op == Unknown {
		return Unknown, anyForm(in)
	}
	return m.op, m.form
}

// stateMeaning is for fxsave, xsave, ldmxcsr, the fences, and rdfsbase and its like.
func stateMeaning(in *Inst, group byte, register bool) (Operation, form) {
	switch {
	case !register && group == 7: // clflush, which faults as a load does
		return NoOp, formNM
	case !register:
		return State, formM
	case in.Rep == 0 && !in.OpSize && group >= 5: // fences
		return NoOp, formN
	case in.Rep == 0xf3 && group < 2:
		return Mov, formM
	}
	return Unknown, formM
}

func threeByteMeaning(in *Inst) (Operation, form) {
	switch op := in.Op; {
	case op < 0x80 || op >= 0xc8 && op < 0xf0:
		return vectorMeaning(in)
	case op == 0xf0 && in.Rep == 0xf2, op == 0xf1 && in.Rep == 0xf2:
		return Crc32, formRM
	case op == 0xf0 && in.Rep == 0:
		return MovBE, formRM
	case op == 0xf1 && in.Rep == 0:
		return MovBE, formMR
	case op == 0xf6 && in.Rep == 0xf3: // also behind 66
		return AdoX, formRM
	case op == 0xf6 && in.OpSize:
		return AdcX, formRM
	}
	return Unknown, formMR
}

// bitMeaning is for the instructions of VEX that handle bits of general registers.
func bitMeaning(in *Inst) (Operation, form) {
	if in.Map == 0x13 {
		if in.Op == 0xf0 {
			return Rorx, formRMI
		}
		return vectorMeaning(in)
	}
	switch op := in.Op; {
	case op == 0xf2:
		return AndN, formRMV
	case op == 0xf3:
		return [8]Operation{1: Blsr, 2: BlsMsk, 3: Blsi}[in.ModRM>>3&7], formVM
	case op == 0xf5:
		return [4]Operation{0: Bzhi, 2: PExt, 3: PDep}[impliedPrefix(in)], formRMV
	case op == 0xf6 && impliedPrefix(in) == 3:
		return MulX, formRMV
	case op == 0xf7:
		return [4]Operation{BExtr, Shlx, Sarx, Shrx}[impliedPrefix(in)], formRMV
	case op == 0xf6, op >= 0xe0 && op < 0xf0: // cmpccxadd
		return Unknown, formMR
	}
	return vectorMeaning(in)
}

// impliedPrefix is the field pp of VEX: 0 no prefix, 1 66, 2 f3, 3 f2.
func impliedPrefix(in *Inst) int {
	switch {
	case in.OpSize:
		return 1
	case in.Rep == 0xf3:
		return 2
	case in.Rep == 0xf2:
		return 3
	}
	return 0
}

// vexMeaning is for map 1 of VEX and EVEX.
func vexMeaning(in *Inst) (Operation, form) {
	switch in.Op {
	case 0x11, 0x13, 0x17, 0x29, 0x2b, 0x7f, 0x91, 0xd6, 0xe7: // stores
		return Vector, formMR
	case 0x7e:
		if in.OpSize {
			return Vector, formMR
		}
	case 0xae: // vldmxcsr, vstmxcsr
		return State, formM
	}
	if in.HasModRM {
		return Vector, formRM
	}
	return Vector, formN
}

// vectorMeaning is for the maps 0F38 and 0F3A of vector instructions.
func vectorMeaning(in *Inst) (Operation, form) {
	stores := false
	switch op := in.Op; in.Map & 0xf {
	case 2:
		stores = in.Map != 2 &&
			(op == 0x2e || op == 0x2f || op == 0x8e || op == 0x8a || op == 0x8b || op == 0x63 ||
				op >= 0xa0 && op <= 0xa3 ||
				in.Map == 0x22 && in.Rep == 0xf3 && (op>>4 <= 3 && op&0xf <= 5))
	case 3:
		stores = op >= 0x14 && op <= 0x17 ||
			in.Map != 3 && (op == 0x19 || op == 0x39 || op == 0x1b || op == 0x3b || op == 0x1d)
	}
	if stores {
		return Vector, formMR
	}
	return Vector, formRM
}

// Operation returns what the instruction computes. It is cheaper than all of Effects.
func (in *Inst) Operation() Operation {
	op, _ := meaningOf(in)
	return op
}
