package jumptable

import (
	"iter"
	"sync"
	"sync/atomic"

	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// Code is what the search asks of instructions and addresses that it comes upon. What it asks of
// the routine itself is in Input. Instructions have numbers, in the order of their addresses; -1 is
// none.
type Code interface {
	Find(addr uint64) (insn int)
	Kind(insn int) x86.Kind
	Effects(insn int) x86.Effects
	CFA(insn int) image.CFA
	Clobbers(call int) x86.Set // what a call may change
	// what an instruction puts somewhere, if that may be an address
	TakenAddress(insn int) uint64

	// the instruction if it is the routine's, else -1
	Inside(insn int) int
	// it is in a part that becomes the routine's if a table leads there
	Joins(insn int) bool
	IsEntry(insn int) bool // some routine is entered there
	// it may be in a part that is another routine's as well
	IsDoubtful(insn int) bool
	// it is in a function of another routine, and does not begin it
	IsAmidFunction(insn int) bool
	// it may be in a cold part; not near: only if nothing says of what
	MayBePart(insn int, near bool) bool
	// what leads to an address with a frame never gets there
	IsEnd(frame image.CFA, addr uint64) bool
	// a part of any routine begins or ends there
	IsBoundary(addr uint64) bool

	IsNamed(addr uint64) bool     // code or data mentions it
	IsTaken(insn int) bool        // what is no indirect jump mentions it
	IsPointedTo(addr uint64) bool // others than the jumps through a table there may know it
}

// A Block is a block of the routine. Preds are its predecessors, those by a call's return included.
type Block struct {
	First, Count int    // its instructions
	Lo, Hi       uint64 // addresses, Hi exclusive
	Succ         []int
	Pads         []int // landing pads
	Preds        []int32
	Returns      bool // a call ends it that may return
	Conditional  bool // a conditional jump ends it
	NeverTaken   bool // that leads where control never gets, so that both successors are the same
}

// Input is a routine whose blocks are built, for as far as is known. It is not written to, but for
// Steps.
type Input struct {
	Code    Code
	Image   *image.Image
	Entry   int // the instruction that the routine begins with
	Blocks  []Block
	Entries []int // blocks by which it is entered
	Pads    []int // blocks that are landing pads
	// instructions that routines called from it may jump back to
	Receivers []int
	// what anything mentions amid the routine; asked for where a jump may go to a label
	Labels iter.Seq[int]
	// no part of another routine may have labels of this one
	OwnLabels bool
	// no address in the frame is taken, and nothing returns twice; asked once at most
	HidesFrame func() bool
	Ends       []uint64 // where the routine's parts end
	// left for the whole program, in instructions executed: when there are none, nothing more is
	// found
	Steps *atomic.Int64
}

// A Table is what an indirect jump was resolved to.
type Table struct {
	Tail     bool  // the jump leaves the routine
	Targets  []int // instructions
	Unused   []int // instructions that entries lead to which no index is that of
	Indexed  bool  // Targets holds one for each index, from 0 on
	AnyLabel bool  // it is none: the targets are all labels of the routine
	Check    absint.Check

	// targets are addresses that memory holds, and not for jumps through the table alone
	loose   bool
	sources []uint64 // where the tables lie that it was read from, but for single words
}

// A Resolver finds what registers hold in one routine, the targets of its indirect jumps first of
// all.
type Resolver struct {
	flow    flow
	tables  reader
	sure    search          // proves where a value comes from
	likely  search          // takes a switch to have one table: see search.guesses
	runs    int             // left for this jump
	claimed map[uint64]bool // tables that jumps are known, or taken, to go through
	own     []int           // what ownLabels answers; nil until asked for
}

// New prepares the search for values in a routine.
func New(in Input) *Resolver {
	s := &Resolver{flow: flow{
		in: in, entry: make([]bool, len(in.Blocks)), wrote: make([]uint32, len(in.Blocks)),
		hidesFrame: sync.OnceValue(in.HidesFrame),
	}}
	f := &s.flow
	s.tables = reader{flow: f, known: map[extent]entries{}}
	s.sure, s.likely = newSearch(f, hiddenSlots), newSearch(f, allSlots)
	s.likely.guesses = true
	for _, b := range in.Entries {
		f.entry[b] = true
	}
	for _, b := range in.Pads {
		f.entry[b] = true
	}
	f.linkThrowers()
	return s
}

// Origins reports whether a register, when the first n instructions of block b have run, holds
// nothing but what accept accepts, wherever it comes from: a value, and whether the routine has
// made it, or had it when it was entered.
func (s *Resolver) Origins(reg int8, b, n int, accept func(v absint.Value, own bool) bool) bool {
	return s.sure.allOrigins(reg, b, n,
		func(v absint.Value, block int) bool { return accept(v, block != outside) })
}
