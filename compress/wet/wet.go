package wet

import (
	"wpptrace/compress/wet/machine"
)

// A Place is an executed instruction.
type Place struct {
	Symbol  uint64 // position in the thread's stream of paths: the timestamp of section 3.1
	Routine int
	Block   int
	Insn    int // index in the block
}

// An Oracle gives a walk what hits have seen: from the ring buffer while recording, from the file
// afterwards.
type Oracle interface {
	// Site is called before the instruction that carries a probe.
	Site(at Place, m *machine.Machine) error
	// Load says what a load reads, of which the model of memory predicts something.
	Load(at Place, addr uint64, predicted []byte, k machine.Knowledge,
		to []byte) machine.Knowledge
	// Resync is called where nothing is known any more: behind external code, or a gap.
	Resync(at Place, m *machine.Machine) error
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
	TID       int
	Addr      uint64 // link-time
	Written   []Register
	Accesses  []machine.Access
	FlagsUsed uint8
	Flags     uint8
}

// An Observer is told each executed instruction, in their order.
type Observer interface {
	Executed(*Executed) error
}
