package code

import (
	"wpptrace/compress/wet/machine"
	"wpptrace/loader/x86"
)

// Insn decodes the instruction that in is, whose bytes are at the start of code. What package
// machine does not emulate becomes an opaque one that writes at least what the instruction may.
func Insn(in *x86.Inst, code []byte) machine.Insn {
	t := translator{in: in, Effects: in.Effects(code, 0), code: code}
	t.segment = machine.Zero
	segment, ok := in.Segment()
	switch segment {
	case x86.FS:
		t.segment = machine.FS
	case x86.GS:
		t.segment = machine.GS
	}
	if out, cause := t.insn(); ok && cause == emulated {
		return out
	} else if ok {
		return t.opaque(cause)
	}
	return t.opaque(machine.Addresses)
}

// emulated is the cause of what is not opaque.
const emulated machine.Cause = 255

// A translator makes one instruction of another.
type translator struct {
	x86.Effects
	in      *x86.Inst
	code    []byte
	segment uint8
	out     machine.Insn
}

// plain are the operations whose operands are in their places.
var plain = [256]machine.Op{
	x86.NoOp: machine.NoOp, x86.Mov: machine.Mov, x86.MovZX: machine.Mov, x86.MovSX: machine.MovSX,
	x86.MovBE: machine.MovBE, x86.Lea: machine.Lea, x86.Xchg: machine.Xchg,
	x86.Push: machine.Push, x86.Pop: machine.Pop, x86.Add: machine.Add, x86.Or: machine.Or,
	x86.Adc: machine.Adc, x86.Sbb: machine.Sbb, x86.And: machine.And, x86.Sub: machine.Sub,
	x86.Xor: machine.Xor, x86.Cmp: machine.Cmp, x86.Test: machine.Test, x86.Inc: machine.Inc,
	x86.Dec: machine.Dec, x86.Neg: machine.Neg, x86.Not: machine.Not, x86.Rol: machine.Rol,
	x86.Ror: machine.Ror, x86.Rcl: machine.Rcl, x86.Rcr: machine.Rcr, x86.Shl: machine.Shl,
	x86.Shr: machine.Shr, x86.Sar: machine.Sar, x86.Shld: machine.Shld, x86.Shrd: machine.Shrd,
	x86.IMul: machine.IMul, x86.MulWide: machine.MulWide, x86.IMulWide: machine.IMulWide,
	x86.Div: machine.Div, x86.IDiv: machine.IDiv, x86.SignFill: machine.SignFill,
	x86.MovIf: machine.MovIf, x86.SetIf: machine.SetIf, x86.BSwap: machine.BSwap,
	x86.Bt: machine.Bt, x86.Bts: machine.Bts, x86.Btr: machine.Btr, x86.Btc: machine.Btc,
	x86.Bsf: machine.Bsf, x86.Bsr: machine.Bsr, x86.PopCnt: machine.PopCnt,
	x86.TzCnt: machine.TzCnt, x86.LzCnt: machine.LzCnt, x86.CmpXchg: machine.CmpXchg,
	x86.XAdd: machine.XAdd, x86.CmpXchgPair: machine.CmpXchg2, x86.Crc32: machine.Crc32,
	x86.AdcX: machine.AdcX, x86.AdoX: machine.AdoX, x86.AndN: machine.AndN,
	x86.BExtr: machine.BExtr, x86.Blsi: machine.Blsi, x86.BlsMsk: machine.BlsMsk,
	x86.Blsr: machine.Blsr, x86.Bzhi: machine.Bzhi, x86.PDep: machine.PDep,
	x86.PExt: machine.PExt, x86.MulX: machine.MulX, x86.Rorx: machine.Rorx,
	x86.Sarx: machine.Sarx, x86.Shlx: machine.Shlx, x86.Shrx: machine.Shrx,
	x86.Movs: machine.Movs, x86.Cmps: machine.Cmps, x86.Stos: machine.Stos,
	x86.Lods: machine.Lods, x86.Scas: machine.Scas, x86.Leave: machine.Leave,
	x86.PushF: machine.PushF, x86.PopF: machine.PopF, x86.LahF: machine.LahF,
	x86.SahF: machine.SahF, x86.ClearCarry: machine.ClC, x86.SetCarry: machine.StC,
	x86.FlipCarry: machine.CmC, x86.ClearDirection: machine.ClD, x86.SetDirection: machine.StD,
	x86.JumpIf: machine.JumpIf, x86.JumpRCX: machine.JumpCX, x86.LoopRCX: machine.Loop,
	x86.LoopEqual: machine.LoopEqual, x86.LoopUnequal: machine.LoopUneven,
	x86.Jump: machine.Jump, x86.CallTo: machine.Call, x86.Return: machine.Return,
}

// insn returns the instruction, or why it is opaque.
func (t *translator) insn() (machine.Insn, machine.Cause) {
	if t.Operation == x86.Vector || t.Operation == x86.State {
		return t.vector()
	}
	op := plain[t.Operation]
	if op == machine.Opaque {
		return machine.Insn{}, causes[t.Operation]
	}
	o := &t.out
	*o = machine.Insn{Op: op, Len: t.in.Len, Condition: t.Condition, Locked: t.Locked, Imm: t.Imm}
	o.Dst, o.Src = t.operand(&t.Dst), t.operand(&t.Src)
	o.Size = max(t.Dst.Size, t.Src.Size)
	if t.Dst.Size > 0 {
		o.Size = t.Dst.Size
	}
	switch t.Operation {
	case x86.NoOp:
		*o = machine.Insn{Op: machine.NoOp, Len: t.in.Len}
	case x86.Mov:
		if !t.HasImm && o.Src.Class == machine.None { // of a segment register
			return *o, machine.Segments
		}
		t.immediate(o.Size)
	case x86.Lea:
		o.Src.Segment = machine.Zero
	case x86.Xchg:
		o.Locked = o.Dst.Class == machine.Mem
	case x86.Add, x86.Or, x86.Adc, x86.Sbb, x86.And, x86.Sub, x86.Xor, x86.Cmp, x86.Test:
		t.immediate(o.Size)
	case x86.Rol, x86.Ror, x86.Rcl, x86.Rcr, x86.Shl, x86.Shr, x86.Sar, x86.Bt, x86.Bts, x86.Btr,
		x86.Btc:
		if t.HasImm {
			t.immediate(1)
		}
	case x86.Shld, x86.Shrd, x86.Rorx:
		o.Third = t.third(1)
	case x86.IMul, x86.AndN, x86.BExtr, x86.Bzhi, x86.PDep, x86.PExt, x86.MulX, x86.Sarx, x86.Shlx,
		x86.Shrx:
		o.Third = t.third(o.Size)
	case x86.Crc32:
		o.Dst.Size = max(o.Size, 4)
		o.Size = o.Dst.Size
	case x86.BSwap:
		if o.Size == 2 { // undefined
			return *o, machine.NotKnown
		}
	case x86.CmpXchgPair:
		o.Size /= 2
		o.Dst.Size = o.Size
	default:
		return t.implicit()
	}
	return *o, emulated
}

// implicit is for what has operands that it does not name, and jumps.
func (t *translator) implicit() (machine.Insn, machine.Cause) {
	o := &t.out
	delta, constant := t.StackDelta()
	switch t.Operation {
	case x86.Push, x86.PushF, x86.Pop, x86.PopF:
		return t.stack()
	case x86.Movs, x86.Cmps, x86.Stos, x86.Lods, x86.Scas:
		return t.strings()
	case x86.Leave:
		o.Size = 8
		if t.in.OpSize {
			return *o, machine.NotKnown
		}
	case x86.Return:
		o.Size, o.Imm = 8, int64(delta-8)
		if !constant || t.in.OpSize {
			return *o, machine.NotKnown
		}
	case x86.JumpIf, x86.JumpRCX, x86.LoopRCX, x86.LoopEqual, x86.LoopUnequal:
		o.Size, o.Imm = 8, int64(t.in.Rel)
		if t.in.Short() {
			o.Size = 4
		}
	case x86.Jump, x86.CallTo:
		if t.Src.Reg < 0 && !t.Src.Mem {
			o.Imm, o.Size = int64(t.in.Rel), 8
			o.Src = machine.Operand{Class: machine.Immediate, Size: 8}
		}
		if o.Size != 8 {
			return *o, machine.NotKnown
		}
	case x86.LahF, x86.SahF, x86.ClearCarry, x86.SetCarry, x86.FlipCarry, x86.ClearDirection,
		x86.SetDirection:
		o.Size = 1
	}
	return *o, emulated
}

// stack is for push and pop.
func (t *translator) stack() (machine.Insn, machine.Cause) {
	o := &t.out
	names := t.HasImm || t.Dst.Reg >= 0 || t.Src.Reg >= 0 || t.Dst.Mem || t.Src.Mem
	if !names && (t.Operation == x86.Push || t.Operation == x86.Pop) {
		return *o, machine.Segments
	}
	size := t.Accesses(nil)
	for _, a := range size {
		if a.At.Base == x86.RSP && a.At.Index < 0 {
			o.Size = a.At.Size
		}
	}
	if t.Operation == x86.Push {
		t.immediate(o.Size)
	}
	return *o, emulated
}

// strings is for the string instructions.
func (t *translator) strings() (machine.Insn, machine.Cause) {
	o := &t.out
	if t.in.Short() {
		return *o, machine.Addresses
	}
	o.Size = t.Accesses(nil)[0].At.Size
	o.Src = machine.Operand{Class: machine.Mem, Size: o.Size, Reg: machine.RSI,
		Index: machine.Zero, Segment: t.segment}
	switch t.Repeat {
	case 0:
	case 0xf2:
		o.Repeat = machine.RepeatUnequal
	default:
		o.Repeat = machine.RepeatEqual
	}
	return *o, emulated
}

// immediate makes the immediate the source, if there is one.
func (t *translator) immediate(size uint8) {
	if t.HasImm {
		t.out.Src = machine.Operand{Class: machine.Immediate, Size: size}
	}
}

// third returns the third operand: the immediate, if no register is.
func (t *translator) third(size uint8) machine.Operand {
	if t.Third == x86.NoRegister {
		return machine.Operand{Class: machine.Immediate, Size: size}
	}
	return machine.Operand{Class: machine.General, Size: size, Reg: uint8(t.Third)}
}

func (t *translator) operand(o *x86.Operand) machine.Operand {
	switch {
	case o.Mem:
		m := machine.Operand{Class: machine.Mem, Size: o.Size, Segment: t.segment,
			Reg: register(o.Base), Index: register(o.Index), Short: t.in.Short(), Disp: o.Disp}
		for m.Scale = 0; 1<<m.Scale < o.Scale; m.Scale++ {
		}
		if o.RIP {
			m.Reg = machine.Next
		}
		return m
	case o.Reg < 0:
		return machine.Operand{}
	case o.Reg >= x86.AH:
		return machine.Operand{Class: machine.High, Size: 1, Reg: uint8(o.Reg - x86.AH)}
	}
	return machine.Operand{Class: machine.General, Size: o.Size, Reg: uint8(o.Reg)}
}

func register(n int8) uint8 {
	if n < 0 {
		return machine.Zero
	}
	return uint8(n)
}

// causes are why operations are opaque: NotKnown, if they are not among these.
var causes = [256]machine.Cause{
	x86.Vector: machine.Vectors, x86.X87: machine.X87, x86.State: machine.State,
	x86.CpuID: machine.Identity, x86.RdTSC: machine.Clock, x86.Random: machine.Random,
	x86.SystemCall: machine.System, x86.XBegin: machine.Transactions,
	x86.XEnd: machine.Transactions, x86.XAbort: machine.Transactions, x86.Stop: machine.Stops,
}

// opaque is the instruction as one that is not emulated.
func (t *translator) opaque(cause machine.Cause) machine.Insn {
	s := machine.Set{General: uint16(t.Written()), Flags: uint8(t.FlagsWritten()),
		Memory: t.StoresUnseen()}
	if delta, ok := t.StackDelta(); delta != 0 || !ok {
		s.General |= 1 << machine.RSP
	}
	switch t.Operation {
	case x86.Unknown, x86.Vector, x86.State:
		s.Vectors = 0xffff
	case x86.SystemCall:
		s.Memory = true
	}
	var dst machine.Operand
	exact := t.MemorySize()
	if to, bytes, ok := t.Stores(); ok {
		if exact > 0 {
			bytes = int(exact)
		}
		if dst = t.operand(&to); bytes <= 128 && !t.Far() {
			dst.Size = uint8(bytes)
		} else {
			dst, s.Memory = machine.Operand{}, true
		}
	}
	for _, a := range t.Accesses(nil) {
		if a.Writes && dst.Class != machine.Mem { // push fs
			s.Memory = true
		}
	}
	in := machine.OpaqueInsn(t.in.Len, cause, s, dst)
	for _, a := range t.Accesses(nil) {
		if a.Reads {
			in.Src = t.operand(&a.At)
			in.Src.Size = max(in.Src.Size, exact)
			if t.Far() {
				in.Src.Segment = machine.GS // where that begins, nobody knows
			}
		}
	}
	return in
}
