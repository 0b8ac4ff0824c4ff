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
	stateReservedBits = (1<<64 - 1) &^ (1<<51 - 1)
)

// HasStates reports whether the record holds states: it has no events then.
func (b Batch) HasStates() bool { return b.states != nil }

// States are the states of the record, in the order of their hits. It fails at the first that is
// not whole.
func (b Batch) States() iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		words := b.states
		for len(words) > 0 {
			s, n, err := parseState(words)
			if !yield(s, err) || err != nil {
				return
			}
			words = words[8*n:]
		}
	}
}

func parseState(data []byte) (s State, words int, err error) {
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(data[8*i:]) }
	have := len(data) / 8
	bad := func() (State, int, error) {
		return State{}, 0, fmt.Errorf("read what a hit saw: %d words are less than it says", have)
	}
	if have < stateHeader {
		return bad()
	}
	head, id := at(0), at(1)
	if head&stateReservedBits != 0 {
		return State{}, 0, fmt.Errorf("read what a hit saw: its header is %#x", head)
	}
	s = State{
		Site:    int(id & (1<<stateSite - 1)),
		Ordinal: id >> stateSite,
		Hash:    uint32(head),
		Flags:   uint8(head >> stateFlagsShift & stateKnownFlags),
		Whole:   head&stateWhole != 0,
		Left:    head&stateLeft != 0,
	}
	if head&stateOutcome != 0 {
		s.Outcome = 1
	}
	words = stateHeader
	if s.Whole {
		if have < words+GeneralRegisters {
			return bad()
		}
		s.Registers = make([]uint64, GeneralRegisters)
		for i := range s.Registers {
			s.Registers[i] = at(words + i)
		}
		words += GeneralRegisters
	}
	n := int(head >> stateWordsShift & stateMostWords)
	if have < words+n {
		return bad()
	}
	if n > 0 {
		s.Words = make([]uint64, n)
		for i := range s.Words {
			s.Words[i] = at(words + i)
		}
	}
	words += n
	if head&stateFailed != 0 {
		if have < words+1 {
			return bad()
		}
		s.FailedReads = uint16(at(words))
		words++
	}
	return s, words, nil
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

// HashRegisters is the hash of the 16 general registers, by their hardware numbers, that a state
// has.
func HashRegisters(registers *[16]uint64) uint32 {
	var even, odd uint64
	for i := 0; i < len(registers); i += 2 {
		even = (even ^ registers[i]) * 0x9e3779b97f4a7c15
		even ^= even >> 29
		odd = (odd ^ registers[i+1]) * 0xc2b2ae3d27d4eb4f
		odd ^= odd >> 31
	}
	even ^= odd
	return uint32(even ^ even>>32)
}
