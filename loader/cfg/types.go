package cfg

import (
	"fmt"
	"strings"

	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// An End says how control leaves a basic block.
type End uint8

// The ends of a block.
const (
	Fall End = iota // runs into Succ[0]
	// Succ[0] taken, Succ[1] not taken; -1 leaves the routine (a conditional tail jump to Target)
	Jcc
	Jmp     // Succ[0]
	Call    // direct call of Target; Succ[0] is the continuation
	CallInd // indirect call; Succ[0] is the continuation
	Ret     // returns
	Tail    // direct jump out of the routine, to Target
	TailInd // indirect jump out of the routine
	// indirect jump within the routine, resolved: see Block.Table; Succ holds the distinct targets
	Table
	NoReturn   // call (direct to Target, or indirect) that never returns
	Trap       // ud2, hlt: never goes on
	Unresolved // indirect jump that could not be resolved: the routine is left out
)

// An Insn is an instruction at its link-time address.
type Insn struct {
	Addr uint64
	x86.Inst
}

// A Block is a basic block; a call ends one.
type Block struct {
	Lo, Hi uint64 // link-time addresses, Hi exclusive
	Insns  []Insn
	End    End
	Succ   []int  // indices into Routine.Blocks
	Target uint64 // of a direct call, jump or conditional jump
	Pads   []int  // landing pads of the call that ends the block
	// at a call: CFA - rsp just before the call instruction; -1 when it is not known
	Depth int
	Table *JumpTable // for End == Table
}

// A JumpTable is a resolved jump table, or the table of a computed goto.
type JumpTable struct {
	// block index for each table entry, by table index from the first entry reachable; nil if only
	// the set of targets is known
	Targets []int
	// Check is the block whose conditional jump checks the index's bound (its not-leaving side
	// leads to the table's jump through blocks with a single predecessor and no call), or -1.
	Check int
	// Index is where the index is just before Check's conditional jump. The low Index.Size bytes,
	// zero-extended, plus Bias (modulo 2^(8*Index.Size)) give the position in Targets.
	Index x86.Operand
	Bias  int64
}

// A Routine is a function: its entry, all its blocks wherever they lie (cold parts too), its
// landing pads.
type Routine struct {
	ID     int    // index in Program.Routines
	Name   string // demangled; fn_<address> when the file has no name
	Symbol string // as in the symbol table, "" when there is none
	Addr   uint64
	Entry  int // index of the entry block
	// blocks by which it is entered as well: hand-written routines that share their end are one
	Others []int
	Blocks []Block
	Pads   []int // all landing pads, block indices
	// faults may lead to its landing pads as well as calls do (-fnon-call-exceptions)
	Faulty  bool
	Ranges  [][2]uint64 // link-time addresses, ends exclusive, sorted
	LeftOut string      // why the routine cannot be traced; "" if its CFG is exact
	Cause   string      // of LeftOut, see FormatReason
	parts   []Part
}

// A Part of a routine is one contiguous piece of code, with its unwind rows.
type Part struct {
	Lo, Hi uint64 // link-time addresses, Hi exclusive
	Rows   []image.Row
	Code   []byte
}

// NewRoutine begins a routine: its parts, which it keeps. Nothing else is filled in but Ranges.
func NewRoutine(parts []Part) *Routine {
	r := &Routine{parts: parts}
	for _, part := range parts {
		r.Ranges = append(r.Ranges, [2]uint64{part.Lo, part.Hi})
	}
	return r
}

// Code returns the bytes of an instruction of the routine, shared; nil, if it is in none of Ranges.
func (r *Routine) Code(q *Insn) []byte {
	for i := range r.parts {
		if part := &r.parts[i]; part.Lo <= q.Addr && q.Addr < part.Hi {
			at := q.Addr - part.Lo
			return part.Code[at : at+uint64(q.Len) : at+uint64(q.Len)]
		}
	}
	return nil
}

// FormatReason returns the reason why a routine is left out, and its cause, which routines have in
// common: the reason without the place, for which format has " at %x".
func FormatReason(format string, args ...any) (reason, cause string) {
	return fmt.Sprintf(format, args...), strings.ReplaceAll(format, " at %x", "")
}

// CFA returns the rule that gives the canonical frame address before the instruction at pc.
func (r *Routine) CFA(pc uint64) image.CFA {
	for i := range r.parts {
		if part := &r.parts[i]; part.Lo <= pc && pc < part.Hi {
			return image.RowAt(part.Rows, pc).CFA
		}
	}
	return image.CFA{Reg: image.Undefined}
}

// End is the address behind the instruction.
func (q *Insn) End() uint64 { return q.Addr + uint64(q.Len) }

// Target is where an instruction leads that has its target in itself, as a distance.
func (q *Insn) Target() uint64 { return q.End() + uint64(q.Rel) }
