package wire

import (
	"encoding/binary"
	"fmt"
	"iter"
)

// StatesRecord is the bit of a record's count that says that it holds states, not events.
const StatesRecord = 1 << 31

// A State is what a hit has seen of a thread: its registers and what its load program has read.
// Registers and Words refer to nothing of the record.
type State struct {
	Site    int // the cookie of the probe
	Outcome int
	Hash    uint32 // of the 16 general registers
	Flags   uint8  // CF PF AF ZF SF OF DF from bit 0 on
	// Ordinal is the number of the hit in its thread, from 1: what Batch.Hits counts. A probe for
	// values alone has that of the hit before it.
	Ordinal uint64
	Whole   bool // Registers are there
	Left    bool // traced code may be left before the next hit, which is whole then
	// Interrupted says that a signal's handler has come since the state before: what lies behind
	// the hit has not been read, as the handler may have changed it.
	Interrupted bool
	// FailedReads has a bit for each read of the load program, in their order, that failed.
	FailedReads uint16
	Registers   []uint64 // rax, rcx ... r15 in the order of their hardware numbers, and fs base
	// what the reads have read, each in the words that its size takes; zeroes of one that failed
	Words []uint64
}

// GeneralRegisters is how many Registers a whole state has: 16, and the base of fs.
const GeneralRegisters = 17

const (
	stateWordsShift   = 32
	stateFlagsShift   = 40
	stateOutcome      = 1 << 47
	stateWhole        = 1 << 48
	stateFailed       = 1 << 49
	stateLeft         = 1 << 50
	stateSite         = 18
	stateOrdinal      = 64 - stateSite
	stateMostWords    = 1<<8 - 1
	stateHeader       = 2
	stateKnownFlags   = 1<<7 - 1
	stateInterrupted  = 1 << 51
	stateReservedBits = (1<<64 - 1) &^ (1<<52 - 1)
)

// HasStates reports whether the record holds states: it has no events then.
func (b Batch) HasStates() bool { return b.states != nil }

// States are the states of the record, in the order of their hits. It fails at the first that is
// not whole.
func (b Batch) States() iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		for rest := b.states; len(rest) > 0; {
			var s State
			var err error
			rest, err = s.Parse(rest)
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// RawStates are the states of the record, one behind the other, for State.Parse. They are good
// until the next record is read.
func (b Batch) RawStates() []byte { return b.states }

// Parse reads the state at the start of data, and returns what is behind it. It uses the memory
// that Registers and Words have. It fails where the state is not whole.
func (s *State) Parse(data []byte) (rest []byte, err error) {
	have := len(data) / 8
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(data[8*i:]) }
	if have < stateHeader {
		return nil, errCut(have)
	}
	head, id := at(0), at(1)
	if head&stateReservedBits != 0 {
		return nil, fmt.Errorf("read what a hit saw: its header is %#x", head)
	}
	*s = State{
		Site:    int(id & (1<<stateSite - 1)),
		Ordinal: id >> stateSite,
		Hash:    uint32(head),
		Flags:   uint8(head >> stateFlagsShift & stateKnownFlags),
		Whole:   head&stateWhole != 0,
		Left:    head&stateLeft != 0,

		Interrupted: head&stateInterrupted != 0,
		Registers:   s.Registers[:0], Words: s.Words[:0],
	}
	if head&stateOutcome != 0 {
		s.Outcome = 1
	}
	n, words := stateHeader, int(head>>stateWordsShift&stateMostWords)
	last := n + words
	if s.Whole {
		last += GeneralRegisters
	}
	if head&stateFailed != 0 {
		last++
	}
	if have < last {
		return nil, errCut(have)
	}
	if s.Whole {
		for range GeneralRegisters {
			s.Registers = append(s.Registers, at(n))
			n++
		}
	}
	for range words {
		s.Words = append(s.Words, at(n))
		n++
	}
	if head&stateFailed != 0 {
		s.FailedReads = uint16(at(n))
	}
	return data[8*last:], nil
}

func errCut(words int) error {
	return fmt.Errorf("read what a hit saw: %d words are less than it says", words)
}

// AppendState appends a state as a record has it.
func AppendState(data []byte, s *State) []byte {
	head := uint64(s.Hash) | uint64(len(s.Words))<<stateWordsShift |
		uint64(s.Flags)<<stateFlagsShift
	set := func(on bool, bit uint64) {
		if on {
			head |= bit
		}
	}
	set(s.Outcome != 0, stateOutcome)
	set(s.Whole, stateWhole)
	set(s.FailedReads != 0, stateFailed)
	set(s.Left, stateLeft)
	set(s.Interrupted, stateInterrupted)
	data = binary.LittleEndian.AppendUint64(data, head)
	data = binary.LittleEndian.AppendUint64(data, uint64(s.Site)|s.Ordinal<<stateSite)
	if s.Whole {
		for _, v := range s.Registers {
			data = binary.LittleEndian.AppendUint64(data, v)
		}
	}
	for _, v := range s.Words {
		data = binary.LittleEndian.AppendUint64(data, v)
	}
	if s.FailedReads != 0 {
		data = binary.LittleEndian.AppendUint64(data, uint64(s.FailedReads))
	}
	return data
}
