package wire

import (
	"encoding/binary"
	"fmt"
)

// MaxSites is how many sites a word can name.
const MaxSites = 1 << 18

// A Word is one 8-byte message. See the kinds for what it carries.
type Word uint64

// A Kind is what a word says.
type Kind uint8

// The kinds of word. A witness may be preceded by the chain of its callers (From, innermost first)
// and by a case; a chain that ends with a signal handler, an Interrupt, and an End that is Inside or
// Called, by registers.
// An End elsewhere, in a signal handler that no word has told of, is preceded by registers and a
// From, a Handler, of what that has interrupted. What belongs to one word is in one batch with it.
const (
	Witness   Kind = iota // the activation with this CFA came to the site, with this outcome
	From                  // a return address in the chain of callers of the activation that the next witness names
	Case                  // the value that a switch reads at the next witness
	Repeat                // the witness before it (with its case) came this many times more
	Register              // what a register held where the handler came, or the thread ended: Registers, in this order
	End                   // the thread ended, or its program was replaced; its user instruction pointer
	Interrupt             // a signal's handler comes, before the instruction of the image at Address
	Fault                 // an instruction of other code has faulted, with the stack pointer Address
	Invalid
)

// Kind says what the word is.
func (w Word) Kind() Kind {
	if w>>63 == 0 {
		return Witness
	}
	switch w >> 60 {
	case 8:
		return From
	case 9:
		return Case
	case 10:
		return Repeat
	case 11:
		return End
	case 12:
		return Register
	case 13:
		return Interrupt
	case 14:
		return Fault
	}
	return Invalid
}

// Site is the index of a witness's site in the plan.
func (w Word) Site() int { return int(w >> 45 & (MaxSites - 1)) }

// Outcome is 1 if the witness's conditional jump is taken, else 0.
func (w Word) Outcome() int { return int(w >> 44 & 1) }

// CFA is the canonical frame address of a witness's activation, a multiple of 8.
func (w Word) CFA() uint64 { return uint64(w) & (1<<44 - 1) << 3 }

// Registers are the hardware numbers of the registers that are told, in the order of their words.
var Registers = [16]uint8{8, 9, 10, 11, 12, 13, 14, 15, 7, 6, 5, 3, 2, 0, 1, 4}

// Value is the payload of a Case or a Register, or the count of a Repeat.
func (w Word) Value() uint64 { return uint64(w) & (1<<60 - 1) }

// A Place says where the address of a From or End lies.
type Place uint8

// The places.
const (
	Inside         Place = iota // in the image, at Address (link-time)
	Outside                     // in other code
	Handler                     // the frame of a signal handler, which interrupted the image at Address (link-time)
	HandlerOutside              // the frame of a signal handler, which interrupted other code
	Unreadable                  // the stack could not be read
	Truncated                   // the chain goes on, too long to send
	Killed                      // of a thread's end: in other code, and not by its own doing
	Called                      // in other code that returns to the image, to Address, and has pushed nothing; of a From, where a signal handler has interrupted that
)

// Place says where the address of a From or End lies.
func (w Word) Place() Place { return Place(w >> 48 & 7) }

// Address is the link-time address of an Interrupt, of a From or End that is Inside or Called, or of a
// Handler; of a Fault the stack pointer.
func (w Word) Address() uint64 { return uint64(w) & (1<<48 - 1) }

// Resync reports whether a From belongs to the whole chain of callers, sent when a thread is first
// seen in mid-run or after a loss.
func (w Word) Resync() bool { return w>>51&1 == 1 }

// MakeWitness returns the word of a hit.
func MakeWitness(site, outcome int, cfa uint64) Word {
	return Word(uint64(site)<<45 | uint64(outcome)<<44 | cfa>>3&(1<<44-1))
}

// MakeFrom returns a word of a chain of callers.
func MakeFrom(p Place, address uint64) Word {
	return Word(8<<60 | uint64(p)<<48 | address&(1<<48-1))
}

// MakeResync returns a word of a whole chain of callers.
func MakeResync(p Place, address uint64) Word { return MakeFrom(p, address) | 1<<51 }

// CaseBits are what a word has of the value that a switch reads: the low ones.
const CaseBits = 60

// MakeCase returns the word of a switch's value.
func MakeCase(v uint64) Word { return Word(9<<60 | v&(1<<CaseBits-1)) }

// MakeRegister returns the word of what a register held.
func MakeRegister(v uint64) Word { return Word(12<<60 | v&(1<<CaseBits-1)) }

// MakeRepeat returns the word that repeats the witness before it n times.
func MakeRepeat(n uint64) Word { return Word(10<<60 | n&(1<<60-1)) }

// Faulted reports whether the instruction of the image at Address has faulted, of an Interrupt or an End
// that is Inside: if it is probed, it has been hit before.
func (w Word) Faulted() bool { return w>>52&1 == 1 }

// MakeFaulted returns the word of the same for what has faulted.
func MakeFaulted(w Word) Word { return w | 1<<52 }

// MakeInterrupt returns the word of a handler that comes.
func MakeInterrupt(address uint64) Word { return Word(13<<60 | address&(1<<48-1)) }

// MakeFault returns the word of a fault in other code.
func MakeFault(sp uint64) Word { return Word(14<<60 | sp&(1<<48-1)) }

// MakeEnd returns the word of a thread's end.
func MakeEnd(p Place, address uint64) Word {
	return Word(11<<60 | uint64(p)<<48 | address&(1<<48-1))
}

// String is for logs and test failures.
func (w Word) String() string {
	switch w.Kind() {
	case Witness:
		return fmt.Sprintf("witness %d:%d cfa %x", w.Site(), w.Outcome(), w.CFA())
	case From:
		return fmt.Sprintf("from %d:%x resync %v", w.Place(), w.Address(), w.Resync())
	case Case:
		return fmt.Sprintf("case %d", w.Value())
	case Repeat:
		return fmt.Sprintf("repeat %d", w.Value())
	case Register:
		return fmt.Sprintf("register %x", w.Value())
	case Interrupt:
		return fmt.Sprintf("interrupt %x", w.Address()) + w.fault()
	case Fault:
		return fmt.Sprintf("fault %x", w.Address())
	case End:
		return fmt.Sprintf("end %d:%x", w.Place(), w.Address()) + w.fault()
	}
	return fmt.Sprintf("invalid %x", uint64(w))
}

// A Batch is one record of the ring buffer.
type Batch struct {
	Thread   uint32
	Started  uint64 // CLOCK_BOOTTIME when the thread began, ns
	Sequence uint64 // from 0 for each thread; a batch that was lost has a number too
	Hits     uint64 // of the thread up to here
	Lost     uint64 // of them
	words    []byte
}

// BatchHeader is the length of a record before its words, bytes.
const BatchHeader = 40

// ParseBatch reads a record. The batch refers to the record's memory. It fails on a record that is
// too short for what it says it holds.
func ParseBatch(record []byte) (Batch, error) {
	if len(record) < BatchHeader {
		return Batch{}, fmt.Errorf("read a batch of words: %d bytes are less than its header", len(record))
	}
	n := int(binary.LittleEndian.Uint32(record[4:]))
	if n > (len(record)-BatchHeader)/8 {
		return Batch{}, fmt.Errorf("read a batch of words: %d words do not fit in %d bytes", n, len(record))
	}
	return Batch{
		Thread:   binary.LittleEndian.Uint32(record),
		Started:  binary.LittleEndian.Uint64(record[8:]),
		Sequence: binary.LittleEndian.Uint64(record[16:]),
		Hits:     binary.LittleEndian.Uint64(record[24:]),
		Lost:     binary.LittleEndian.Uint64(record[32:]),
		words:    record[BatchHeader : BatchHeader+8*n],
	}, nil
}

// Len is the number of words.
func (b Batch) Len() int { return len(b.words) / 8 }

// Word returns word i.
func (b Batch) Word(i int) Word { return Word(binary.LittleEndian.Uint64(b.words[8*i:])) }

// Witnesses is the number of hits that the batch's words stand for.
func (b Batch) Witnesses() (n uint64) {
	for i := range b.Len() {
		switch w := b.Word(i); w.Kind() {
		case Witness:
			n++
		case Repeat:
			n += w.Value()
		}
	}
	return n
}

func (w Word) fault() string {
	if w.Faulted() {
		return " faulted"
	}
	return ""
}
