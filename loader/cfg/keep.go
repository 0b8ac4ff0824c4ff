package cfg

import (
	"slices"

	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// keepsFrame reports whether an instruction leaves rsp and rbp alone, and all memory but its
// operand.
func (op *operation) keepsFrame() bool {
	delta, ok := op.StackDelta(op.code)
	switch {
	case op.Kind == x86.Jcc, op.Kind == x86.Jmp:
		return true
	case !ok || delta != 0 || writtenRegisters(op)>>rbp&1 != 0, op.Kind == x86.Call, op.Kind == x86.CallInd, op.Kind == x86.Syscall:
		return false
	}
	return !op.storesUnseen()
}

// keepsRegister reports whether an instruction leaves a register alone, and calls nothing.
func (op *operation) keepsRegister(reg int8) bool {
	switch op.Kind {
	case x86.Jcc, x86.Jmp:
		return true
	case x86.Call, x86.CallInd, x86.Syscall:
		return false
	}
	return writtenRegisters(op)>>reg&1 == 0
}

// storesUnseen reports whether an instruction may store where no operand says.
func (op *operation) storesUnseen() bool {
	switch {
	case op.Map == 0:
		return isString(&op.Inst) || op.Op >= 0xa0 && op.Op <= 0xa3 // mov of an absolute address
	case op.Map&0xf == 1:
		return op.Op == 0xf7 || op.Op == 0x01 // maskmov and clzero store where a register says
	}
	return false
}

// setsBit reports whether an instruction sets or clears a bit that may lie far from its operand.
func (op *operation) setsBit() bool {
	return op.Map == 1 && (op.Op == 0xab || op.Op == 0xb3 || op.Op == 0xbb)
}

func (op *operation) stores() bool { return op.rm.Mem && writesMemory(op) }

// Keeps reports whether block b surely leaves a place alone: a register, or one in the frame. It may
// call nothing, and for the latter store nowhere but in other places of the frame.
func (r *Routine) Keeps(b int, place x86.Operand) bool {
	return !slices.ContainsFunc(r.Blocks[b].Insns, func(q Insn) bool {
		op := r.operation(&q)
		if !place.Mem {
			return !op.keepsRegister(place.Reg)
		}
		return !op.keepsFrame() || op.stores() && !op.storesBeside(place)
	})
}

// storesBeside reports whether a store goes to another place in the frame.
func (op *operation) storesBeside(place x86.Operand) bool {
	if op.Map > 1 || op.setsBit() || op.Elsewhere() || op.rm.Base != place.Base || op.rm.Index >= 0 {
		return false
	}
	return op.rm.Disp+int64(storeSize(op)) <= place.Disp || place.Disp+int64(place.Size) <= op.rm.Disp
}

// HasPlace reports whether a place is a register but rsp, or in the frame, below the return address,
// as seen from the instruction at pc. What is too far below the stack pointer is the kernel's, for
// signals.
func (r *Routine) HasPlace(place x86.Operand, pc uint64) bool {
	const redZone = 128
	if !place.Mem {
		return place.Reg != rsp
	}
	if place.Base == rsp && place.Disp < -redZone {
		return false
	}
	cfa := r.CFA(pc)
	return (cfa.Reg == dwarfRSP && place.Base == rsp || cfa.Reg == dwarfRBP && place.Base == rbp) && place.Disp+int64(place.Size) <= int64(cfa.Off)-8
}

// hidesFrame reports whether the routine takes no address in its frame.
func (r *Routine) hidesFrame() bool { return hidesFrame(r.Blocks, r.CFA, r.Code) }

// hidesFrame reports whether blocks take no address in their frame: rsp, and rbp where it is the frame
// pointer, are used for memory operands only, and to make the frame and to undo it.
func hidesFrame(blocks []Block, cfa func(addr uint64) image.CFA, code func(q *Insn) []byte) bool {
	pointer := false
	for b := range blocks {
		reg := cfa(blocks[b].Lo).Reg
		if reg == image.Slot {
			return false
		}
		pointer = pointer || reg == dwarfRBP
	}
	for b := range blocks {
		for i := range blocks[b].Insns {
			op := newOperation(&blocks[b].Insns[i], code(&blocks[b].Insns[i]))
			saves := op.isPush(rbp) && cfa(op.Addr).Reg == dwarfRSP // it is not the frame pointer yet
			if (op.mentions(rsp) || pointer && op.mentions(rbp) && !saves) && !op.makesFrame(pointer) {
				return false
			}
		}
	}
	return true
}

func (op *operation) isPush(reg int8) bool {
	return op.Map == 0 && op.Op>>3 == 0x50>>3 && op.opcodeRegister() == reg
}

// opcodeRegister is the register that the low bits of the opcode name.
func (op *operation) opcodeRegister() int8 { return int8(op.Op&7 | op.Rex<<3&8) }

// mentions reports whether an instruction may use the value of a register otherwise than for a
// memory operand.
func (op *operation) mentions(reg int8) bool {
	switch {
	case op.Third() == reg:
		return true
	case op.HasModRM && op.Map == 0 && op.Op == lea:
		return op.rm.Base == reg || op.rm.Index == reg || op.reg == reg
	case op.HasModRM:
		return op.reg == reg && !op.isGroup() || !op.rm.Mem && op.rm.Reg == reg
	case op.Map != 0:
		return op.Op>>3 == 0xc8>>3 && op.opcodeRegister() == reg // bswap
	}
	o := op.Op
	return (o>>3 == 0x50>>3 || o>>3 == 0x90>>3) && op.opcodeRegister() == reg || o == 0xc8 // push, xchg; enter
}

// isGroup reports whether the reg field of the ModRM byte is a part of the opcode.
func (op *operation) isGroup() bool {
	o := op.Op
	return op.Map == 0 && (o >= 0x80 && o <= 0x83 || o == 0xc0 || o == 0xc1 || o == 0xc6 || o == 0xc7 || o >= 0xd0 && o <= 0xd3 || o == 0xf6 || o == 0xf7 || o >= 0xfe) ||
		op.Map == 1 && (o == 0xba || o >= 0x18 && o <= 0x1f)
}

// makesFrame reports whether an instruction sets rsp or rbp as prologues and epilogues do.
func (op *operation) makesFrame(pointer bool) bool {
	if op.Map != 0 {
		return false
	}
	group := op.ModRM >> 3 & 7
	switch op.Op {
	case 0x89:
		return op.rm.Reg == rbp && op.reg == rsp && pointer || op.rm.Reg == rsp && op.reg == rbp && pointer
	case 0x8b:
		return op.reg == rbp && op.rm.Reg == rsp && pointer || op.reg == rsp && op.rm.Reg == rbp && pointer
	case lea:
		return op.reg == rsp
	case 0x81, 0x83:
		return op.rm.Reg == rsp && (group == aluAdd || group == aluSub)
	}
	return false
}
