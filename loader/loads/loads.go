package loads

import (
	"wpptrace/loader/plan"
)

// A Plan is what probes read of memory. It is immutable but for Append.
type Plan struct {
	Base  *plan.Plan
	Extra []Site // probes for values alone, behind those of Base.Sites in Looks
	Looks []Look // those of Base.Sites, then those of Extra
	Steps []Step
	Cases []uint32          // of Switch steps: indices in Steps
	After map[uint64]uint32 // by return address of a call, as Base.Calls: where programs go on
}

// A Site is a probe for values alone: it makes no event.
type Site struct {
	Addr      uint64
	Routine   int // index in the base plan's Routines
	Block     int
	Insn      int // index in the block
	Condition uint8
	Behind    bool // it stands behind a call of external code
	Stepped   bool
}

// A Look is what is read at a hit.
type Look struct {
	First  [2]uint32 // by outcome: index in Steps of the first step; 0: nothing is read
	Behind uint32    // the same of what external code may have changed before the hit
	Leaves [2]bool   // by outcome: traced code may be left before the next hit
	Only   bool      // the probe makes no event
}

// An Op is what a step does. Numbers are those of enum load_op in the kernel's part.
type Op uint8

// The operations. Cells hold 64-bit numbers: see Cell.
const (
	End Op = iota // the program ends
	Sum           // dst = a + b*scale + imm
	And           // dst = a & b, of size bytes; and so on
	Or
	Xor
	ShiftLeft
	ShiftRight
	ShiftRightSigned
	Subtract
	Multiply
	Extend // dst = the low size bytes of a, with sign if sign
	Fetch  // size bytes at a + imm are read; dst is the first 8 of them
	Pick   // dst = size bytes of fetch a, from imm on, with sign if sign
	Branch // goes on at jump steps further if a and b compare so (jump, sign: see Compare)
	Switch // goes on at Cases[imm+a], if a is below mask
	Return // goes on at After[a], if it is there; else the program leaves
)

// Cells of a program: the general registers by their hardware numbers, and what else it starts
// with. Each other cell is written once.
const (
	NoCell      = 255
	ImageBias   = 16
	FSBase      = 17
	FirstResult = 18
	Cells       = 64
	MostReads   = 16
	MostBytes   = 64 // of a read
)

// A Step is one step of a load program.
type Step struct {
	Op      Op
	Dst     uint8 // cell
	A, B    uint8 // cells, or NoCell
	Scale   uint8 // 0 to 3: b is shifted left by so many bits
	Size    uint8 // bytes
	Sign    uint8
	Compare uint8
	Imm     int32
	Mask    uint32
}

// A Read is one read of a run.
type Read struct {
	Addr   uint64
	Size   int
	Bytes  [MostBytes]byte
	Failed bool
}

// A Process is what a program is run on.
type Process interface {
	Read(addr uint64, to []byte) bool
	// Continuation finds where a program goes on behind a return.
	Continuation(returnAddress uint64) (step uint32, ok bool)
	Bias(look int) uint64
}
