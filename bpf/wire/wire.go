package wire

import (
	"encoding/binary"
	"fmt"
)

// MaxSites is how many sites an event can name.
const MaxSites = 1 << 18

// An Event is one 8-byte message: a hit, what goes with one, or what befell a thread.
//
//	bits       63      62..60  59..53  52       51      50..48  47..45  44       43..0
//	Hit        0       site (18 bits: 62..45)                           outcome  CFA >> 3
//	Caller     kind 8                           resync  origin  address (48 bits)
//	Captured   kind 9  value (60 bits)
//	Repeat     kind 10 count (60 bits)
//	End        kind 11         faulted                  origin  address (48 bits)
//	Register   kind 12 value (60 bits)
//	Interrupt  kind 13         faulted                          address (48 bits)
//	Fault      kind 14                                          stack pointer (48 bits)
//
// The kind is in bits 63..60. bpf/types.h has the same layout in C; a test compares them.
type Event uint64

// A Kind is what an event reports.
type Kind uint8

// The kinds of event. A hit may be preceded by the chain of its callers (Caller, innermost first)
// and by a captured value. Registers go before a chain that ends with a signal handler, before an
// Interrupt, and before an End that is Inside or ReturnsToImage. Registers and a Caller whose
// origin is Handler go before an End elsewhere, in a signal handler without events: that is what
// the handler has interrupted. What belongs to one event is in one batch with it.
const (
	// Hit: the activation with this CFA came to the site, with this outcome.
	Hit Kind = iota
	// Caller: a return address in the chain of callers of the activation that the next hit names.
	Caller
	// Captured: the value that the site of the next hit captures.
	Captured
	// Repeat: the hit before it (with its captured value) came this many times more.
	Repeat
	// Register: what a register held where the handler came, or the thread ended: Registers, in
	// this order.
	Register
	// End: the thread ended, or its program was replaced; its user instruction pointer.
	End
	// Interrupt: a signal's handler comes, before the instruction of the image at Address.
	Interrupt
	// Fault: an instruction of external code has faulted, with the stack pointer Address.
	Fault
	Invalid
)

// Kind is what the event reports.
func (e Event) Kind() Kind {
	if e>>63 == 0 {
		return Hit
	}
	switch e >> 60 {
	case 8:
		return Caller
	case 9:
		return Captured
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

// Site is the index of a hit's site in the plan.
func (e Event) Site() int { return int(e >> 45 & (MaxSites - 1)) }

// Outcome is 1 if the hit's conditional jump is taken, else 0.
func (e Event) Outcome() int { return int(e >> 44 & 1) }

// CFA is the canonical frame address of a hit's activation, a multiple of 8.
func (e Event) CFA() uint64 { return uint64(e) & (1<<44 - 1) << 3 }

// Registers are the hardware numbers of the registers that are reported, in the order of their
// events.
var Registers = [16]uint8{8, 9, 10, 11, 12, 13, 14, 15, 7, 6, 5, 3, 2, 0, 1, 4}

// Value is the payload of a Captured or a Register, or the count of a Repeat.
func (e Event) Value() uint64 { return uint64(e) & (1<<60 - 1) }

// An Origin is where the address of a Caller or End lies.
type Origin uint8

// The origins.
const (
	// Inside: in the image, at Address (link-time).
	Inside Origin = iota
	// Outside: in external code.
	Outside
	// Handler: the frame of a signal handler, which interrupted the image at Address (link-time).
	Handler
	// HandlerOutside: the frame of a signal handler, which interrupted external code.
	HandlerOutside
	// Unreadable: the stack could not be read.
	Unreadable
	// Truncated: the chain goes on, too long to send.
	Truncated
	// Killed, of a thread's end: in external code, and not by its own doing.
	Killed
	// ReturnsToImage: in external code that returns to the image, to Address, and has pushed
	// nothing; of a Caller, where a signal handler has interrupted that.
	ReturnsToImage
)

// Origin is where the address of a Caller or End lies.
func (e Event) Origin() Origin { return Origin(e >> 48 & 7) }

// Address is the link-time address of an Interrupt, of a Caller or End that is Inside or
// ReturnsToImage, or of a Handler; of a Fault the stack pointer.
func (e Event) Address() uint64 { return uint64(e) & (1<<48 - 1) }

// Resync reports whether a Caller belongs to the whole chain of callers, sent when a thread is
// first seen in mid-run or after a loss.
func (e Event) Resync() bool { return e>>51&1 == 1 }

// Plain is a Caller as it would be without Resync.
func (e Event) Plain() Event { return e &^ resync }

// resync marks a Caller of a whole chain.
const resync = 1 << 51

// MakeHit returns the event of a hit.
func MakeHit(site, outcome int, cfa uint64) Event {
	return Event(uint64(site)<<45 | uint64(outcome)<<44 | cfa>>3&(1<<44-1))
}

// MakeCaller returns an event of a chain of callers.
func MakeCaller(p Origin, address uint64) Event {
	return Event(8<<60 | uint64(p)<<48 | address&(1<<48-1))
}

// MakeResync returns an event of a whole chain of callers.
func MakeResync(p Origin, address uint64) Event { return MakeCaller(p, address) | resync }

// ValueBits are what an event has of a captured value or a register: the low ones.
const ValueBits = 60

// MakeCaptured returns the event of a captured value.
func MakeCaptured(v uint64) Event { return Event(9<<60 | v&(1<<ValueBits-1)) }

// MakeRegister returns the event of what a register held.
func MakeRegister(v uint64) Event { return Event(12<<60 | v&(1<<ValueBits-1)) }

// MakeRepeat returns the event that repeats the hit before it n times.
func MakeRepeat(n uint64) Event { return Event(10<<60 | n&(1<<60-1)) }

// Faulted reports whether the instruction of the image at Address has faulted, of an Interrupt or
// an End that is Inside: if it is probed, it has been hit before.
func (e Event) Faulted() bool { return e>>52&1 == 1 }

// MakeFaulted returns the event of the same for what has faulted.
func MakeFaulted(e Event) Event { return e | 1<<52 }

// MakeInterrupt returns the event of a handler that comes.
func MakeInterrupt(address uint64) Event { return Event(13<<60 | address&(1<<48-1)) }

// MakeFault returns the event of a fault in external code.
func MakeFault(sp uint64) Event { return Event(14<<60 | sp&(1<<48-1)) }

// MakeEnd returns the event of a thread's end.
func MakeEnd(p Origin, address uint64) Event {
	return Event(11<<60 | uint64(p)<<48 | address&(1<<48-1))
}

// String is for logs and test failures.
func (e Event) String() string {
	switch e.Kind() {
	case Hit:
		return fmt.Sprintf("hit %d:%d cfa %x", e.Site(), e.Outcome(), e.CFA())
	case Caller:
		return fmt.Sprintf("caller %d:%x resync %v", e.Origin(), e.Address(), e.Resync())
	case Captured:
		return fmt.Sprintf("captured %d", e.Value())
	case Repeat:
		return fmt.Sprintf("repeat %d", e.Value())
	case Register:
		return fmt.Sprintf("register %x", e.Value())
	case Interrupt:
		return fmt.Sprintf("interrupt %x", e.Address()) + e.fault()
	case Fault:
		return fmt.Sprintf("fault %x", e.Address())
	case End:
		return fmt.Sprintf("end %d:%x", e.Origin(), e.Address()) + e.fault()
	}
	return fmt.Sprintf("invalid %x", uint64(e))
}

// A Batch is one record of the ring buffer.
type Batch struct {
	Thread   uint32
	Started  uint64 // CLOCK_BOOTTIME when the thread began, ns
	Sequence uint64 // from 0 for each thread; a batch that was lost has a number too
	Hits     uint64 // of the thread up to here
	Lost     uint64 // of them
	events   []byte
	states   []byte // nil: it is a record of events
}

// BatchHeader is the length of a record before its events, bytes.
const BatchHeader = 40

// ParseBatch reads a record. The batch refers to the record's memory. It fails on a record that is
// too short for what it says it holds.
func ParseBatch(record []byte) (Batch, error) {
	if len(record) < BatchHeader {
		return Batch{}, fmt.Errorf("read a batch of events: %d bytes are less than its header",
			len(record))
	}
	count := binary.LittleEndian.Uint32(record[4:])
	n := int(count &^ StatesRecord)
	if n > (len(record)-BatchHeader)/8 {
		return Batch{}, fmt.Errorf("read a batch of events: %d events do not fit in %d bytes", n,
			len(record))
	}
	b := Batch{
		Thread:   binary.LittleEndian.Uint32(record),
		Started:  binary.LittleEndian.Uint64(record[8:]),
		Sequence: binary.LittleEndian.Uint64(record[16:]),
		Hits:     binary.LittleEndian.Uint64(record[24:]),
		Lost:     binary.LittleEndian.Uint64(record[32:]),
	}
	data := record[BatchHeader : BatchHeader+8*n]
	if count&StatesRecord != 0 {
		b.states = data
	} else {
		b.events = data
	}
	return b, nil
}

// Len is the number of events.
func (b Batch) Len() int { return len(b.events) / 8 }

// Event returns event i.
func (b Batch) Event(i int) Event { return Event(binary.LittleEndian.Uint64(b.events[8*i:])) }

// Received is the number of hits that the batch's events stand for.
func (b Batch) Received() (n uint64) {
	for i := range b.Len() {
		switch e := b.Event(i); e.Kind() {
		case Hit:
			n++
		case Repeat:
			n += e.Value()
		}
	}
	return n
}

func (e Event) fault() string {
	if e.Faulted() {
		return " faulted"
	}
	return ""
}
