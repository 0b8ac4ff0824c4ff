package wet

import (
	"cmp"
	"encoding/binary"

	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wet/memory"
)

// A Place is an executed instruction.
type Place struct {
	Symbol  uint64 // position in the thread's stream of paths: the timestamp of section 3.1
	Step    int    // index of the block in its path
	Routine int
	Block   int
	Insn    int // index in the block
}

// Compare says which of two places of a stream comes first: below 0, if p does.
func (p Place) Compare(q Place) int {
	return cmp.Or(cmp.Compare(p.Symbol, q.Symbol), cmp.Compare(p.Step, q.Step),
		cmp.Compare(p.Insn, q.Insn))
}

// An Oracle gives a walk what its model does not know: while recording, what hits have seen;
// afterwards, what the file says of that. A stretch is what runs from one hit, or mark, to the
// next.
type Oracle interface {
	// Begin begins a stretch without a hit, at the start and behind a mark. lost: nothing is to be
	// known of it.
	Begin(at Place) (lost bool, err error)
	// Site is called before an instruction that carries a probe, and begins a stretch: it has the
	// machine know what the hit has seen.
	Site(at Place, number int, m *machine.Machine) (lost bool, err error)
	// Load says what a load reads, and how sure that is. isNew: that is more than was predicted.
	Load(l *Load) (k machine.Knowledge, isNew bool)
	// Resync is called where external code has run: it may know what the registers hold. begins: a
	// stretch begins there.
	Resync(at Place, m *machine.Machine) (begins, lost bool, err error)
	// Result is called behind an instruction that has written registers and left them unknown: it
	// may have the machine know them.
	Result(at Place, unknown uint16, m *machine.Machine)
	// Used is called before an instruction that uses pending registers, and sets these: see
	// machine.Machine.Pend.
	Used(at Place, registers uint16, m *machine.Machine)
	// Leaves is called where control goes to external code, before anything is forgotten.
	Leaves(to machine.Outcome, m *machine.Machine)
	// Doubt says that memory may have changed in any way: what hits have read is not to be used.
	Doubt()
	// Disagrees says that a jump leads elsewhere than the path.
	Disagrees()
}

// A Load is what the model predicts of one.
type Load struct {
	Place
	Addr  uint64
	Bytes []byte // 1 to 64
	// nobody but the thread's own traced code knows where it loads: see package memory
	Private bool
	memory.Held
	memory *memory.Memory
}

// state is what is known before the load, as a small number.
func (l *Load) state(predicted machine.Knowledge, held bool) uint64 {
	state := uint64(predicted) << 2
	if held {
		state |= 1
	}
	if l.Private {
		state |= 2
	}
	return state
}

// stateInCommon is added where what the segment has in common with others has the bytes.
const stateInCommon = 1 << 4

// isUntouched reports whether the segment has touched none of the bytes.
func (l *Load) isUntouched() bool {
	return l.Held.Held == 0 && l.memory != nil && !l.memory.IsTouched(l.Addr, len(l.Bytes))
}

// beside is what is held right before the bytes, of as many, or 0.
func (l *Load) beside() uint64 {
	if l.memory == nil {
		return 0
	}
	var word [8]byte
	n := min(len(l.Bytes), len(word))
	if !l.memory.Load(l.Addr-uint64(n), word[:n], false).All(n) {
		return 0
	}
	return binary.LittleEndian.Uint64(word[:])
}

// A Register is what an instruction has written to a general register.
type Register struct {
	Number uint8 // hardware number
	Value  uint64
	Known  machine.Knowledge
}

// Executed is an executed instruction and what it computed. It is good until the observer returns.
type Executed struct {
	Place
	TID      int
	Addr     uint64 // link-time
	Code     *machine.Insn
	External bool // external code, or a gap, comes right before it
	Written  []Register
	Accesses []machine.Access
	// flags that were used, and those that were written or left undefined
	FlagsUsed, FlagsWritten uint8
	FlagsBefore             Flags
	walker                  *Walker
}

// Flags are the flags, which of them are known, and which of these are confirmed: see
// machine.Flags.
type Flags struct{ Value, Known, Confirmed uint8 }

// Vector returns the 32 bytes that a vector register holds behind the instruction, and what is
// known of each.
func (e *Executed) Vector(n int) (*[32]byte, *[32]machine.Knowledge) {
	return e.walker.vector(n)
}

// An Observer is told each executed instruction, in their order.
type Observer interface {
	Executed(*Executed) error
}
