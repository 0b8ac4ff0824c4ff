package image

import (
	"fmt"
	"math"
)

// An unwindState is what a frame program has said at some location.
type unwindState struct {
	cfa CFA
	ra  RARule
	fp  FPRule
}

// An FPRule says where the caller's frame pointer (rbp) is.
type FPRule struct {
	// Off is where it is saved, over the canonical frame address; 0: it is in the register still.
	Off   int32
	Fault bool // it is elsewhere
}

// A frameProgram executes call frame instructions (DWARF 5, section 6.4.2) and appends the rows
// that they give. Of the registers it follows the return address, and the frame pointer, which is
// in no row.
type frameProgram struct {
	cursor
	common   *commonEntry
	state    unwindState
	saved    []unwindState // by remember_state
	lo, hi   uint64        // code described; both 0 in a common entry
	loc      uint64
	rows     []Row
	firstRow int
	wanted   uint64 // a location in the code
	fpThere  FPRule
}

// The call frame instructions: the high two bits, or else the whole byte.
const (
	advanceLoc = 1 // delta in the low six bits
	offset     = 2 // register in the low six bits
	restore    = 3

	nop                    = 0x00
	setLoc                 = 0x01
	advanceLoc1            = 0x02
	advanceLoc2            = 0x03
	advanceLoc4            = 0x04
	offsetExtended         = 0x05
	restoreExtended        = 0x06
	undefined              = 0x07
	sameValue              = 0x08
	register               = 0x09
	rememberState          = 0x0a
	restoreState           = 0x0b
	defCFA                 = 0x0c
	defCFARegister         = 0x0d
	defCFAOffset           = 0x0e
	defCFAExpression       = 0x0f
	expression             = 0x10
	offsetExtendedSF       = 0x11
	defCFASF               = 0x12
	defCFAOffsetSF         = 0x13
	valOffset              = 0x14
	valOffsetSF            = 0x15
	valExpression          = 0x16
	gnuArgsSize            = 0x2e
	gnuNegativeOffsetExtSF = 0x2f
)

// run executes the program to its end and returns what is wrong with it, or "".
func (p *frameProgram) run() (fault string) {
	p.firstRow = len(p.rows)
	for p.more() {
		op := p.byte()
		low := uint64(op & 0x3f)
		known := true
		switch op >> 6 {
		case advanceLoc:
			p.advance(low * p.common.codeAlign)
		case offset:
			p.saveAt(low, int64(p.uleb())*p.common.dataAlign)
		case restore:
			p.restore(low)
		default:
			known = p.location(op) || p.frameAddress(op) || p.registerRule(op)
		}
		if !known {
			return fmt.Sprintf("unknown call frame instruction %#x", op)
		}
	}
	if p.failed {
		return "call frame instructions are cut off or leave their range"
	}
	return ""
}

// advance ends the row at the current location and moves on.
func (p *frameProgram) advance(delta uint64) {
	if p.hi == 0 || delta == 0 { // locations mean nothing in a common entry
		return
	}
	if delta > p.hi-p.loc {
		p.fail()
		return
	}
	p.flush(p.loc + delta)
	p.loc += delta
}

// flush makes a row of the current state unless it is empty, or its predecessor goes on.
func (p *frameProgram) flush(next uint64) {
	if next <= p.loc {
		return
	}
	if p.loc <= p.wanted && p.wanted < next {
		p.fpThere = p.state.fp
	}
	row := Row{PC: p.loc, CFA: p.state.cfa, RA: p.state.ra}
	if n := len(p.rows); n > p.firstRow && p.rows[n-1].CFA == row.CFA && p.rows[n-1].RA == row.RA {
		return
	}
	p.rows = append(p.rows, row)
}

// location executes the instructions that move on or keep the state.
func (p *frameProgram) location(op byte) bool {
	switch op {
	case nop:
	case setLoc:
		p.advance(p.pointer(p.common.codePointer) - p.loc)
	case advanceLoc1:
		p.advance(uint64(p.byte()) * p.common.codeAlign)
	case advanceLoc2:
		p.advance(p.uint(2) * p.common.codeAlign)
	case advanceLoc4:
		p.advance(p.uint(4) * p.common.codeAlign)
	case rememberState:
		p.saved = append(p.saved, p.state)
	case restoreState:
		n := len(p.saved)
		if n == 0 {
			p.fail()
			break
		}
		p.state, p.saved = p.saved[n-1], p.saved[:n-1]
	case gnuArgsSize:
		p.uleb()
	default:
		return false
	}
	return true
}

// frameAddress executes the instructions that define the canonical frame address.
func (p *frameProgram) frameAddress(op byte) bool {
	switch op {
	case defCFA:
		p.state.cfa = cfaOf(p.uleb(), unsignedOffset(p.uleb()))
	case defCFASF:
		p.state.cfa = cfaOf(p.uleb(), p.sleb()*p.common.dataAlign)
	case defCFARegister:
		reg := p.uleb()
		if old := p.state.cfa; old.Reg >= 0 {
			p.state.cfa = cfaOf(reg, int64(old.Off))
		} else {
			p.state.cfa = CFA{Reg: Undefined}
		}
	case defCFAOffset:
		p.setOffset(unsignedOffset(p.uleb()))
	case defCFAOffsetSF:
		p.setOffset(p.sleb() * p.common.dataAlign)
	case defCFAExpression:
		p.state.cfa = cfaByExpression(p.take(p.uleb()))
	default:
		return false
	}
	return true
}

// cfaByExpression reads a DWARF expression (DWARF 5, section 2.5). Of all that it could say one
// form is a rule: memory at rbp plus an offset.
func cfaByExpression(c cursor) CFA {
	const breg6, deref = 0x76, 0x06
	if c.byte() != breg6 {
		return CFA{Reg: Expression}
	}
	off := c.sleb()
	if c.byte() != deref || c.failed || c.more() || off != int64(int32(off)) {
		return CFA{Reg: Expression}
	}
	return CFA{Reg: Slot, Off: int32(off)}
}

func (p *frameProgram) setOffset(off int64) {
	if reg := p.state.cfa.Reg; reg >= 0 {
		p.state.cfa = cfaOf(uint64(reg), off)
	} else {
		p.state.cfa = CFA{Reg: Undefined}
	}
}

// cfaOf makes a rule, Undefined when it does not fit.
func cfaOf(reg uint64, off int64) CFA {
	if reg > math.MaxInt8 || off != int64(int32(off)) {
		return CFA{Reg: Undefined}
	}
	return CFA{Reg: int8(reg), Off: int32(off)}
}

// unsignedOffset keeps what does not fit a signed offset from wrapping around to something that
// does.
func unsignedOffset(off uint64) int64 { return int64(min(off, math.MaxInt64)) }

// registerRule executes the instructions that say where a register was saved.
func (p *frameProgram) registerRule(op byte) bool {
	if op < offsetExtended || op > valExpression && op != gnuNegativeOffsetExtSF {
		return false
	}
	reg := p.uleb()
	switch op {
	case offsetExtended:
		p.saveAt(reg, int64(p.uleb())*p.common.dataAlign)
	case offsetExtendedSF:
		p.saveAt(reg, p.sleb()*p.common.dataAlign)
	case gnuNegativeOffsetExtSF:
		p.saveAt(reg, -int64(p.uleb())*p.common.dataAlign)
	case restoreExtended:
		p.restore(reg)
	case undefined:
		p.setRule(reg, RAUndefined)
	case sameValue:
		p.setRule(reg, RAOther)
		if reg == framePointer {
			p.state.fp = FPRule{}
		}
	case register, valOffset:
		p.uleb()
		p.setRule(reg, RAOther)
	case valOffsetSF:
		p.sleb()
		p.setRule(reg, RAOther)
	case expression, valExpression:
		p.skip(p.uleb())
		p.setRule(reg, RAOther)
	default:
		return false
	}
	return true
}

// saveAt says that a register is saved at an offset from the canonical frame address.
func (p *frameProgram) saveAt(reg uint64, off int64) {
	const returnAddressAt = -8
	if off == returnAddressAt {
		p.setRule(reg, RAAtCFA)
	} else {
		p.setRule(reg, RAOther)
	}
	if reg == framePointer && off == int64(int32(off)) {
		p.state.fp = FPRule{Off: int32(off)}
	}
}

const framePointer = 6 // DWARF's number of rbp

// restore has a register's rule be that of the common entry.
func (p *frameProgram) restore(reg uint64) {
	p.setRule(reg, p.common.initial.ra)
	if reg == framePointer {
		p.state.fp = p.common.initial.fp
	}
}

func (p *frameProgram) setRule(reg uint64, rule RARule) {
	if reg == p.common.returnReg {
		p.state.ra = rule
	}
	if reg == framePointer {
		p.state.fp = FPRule{Fault: true}
	}
}
