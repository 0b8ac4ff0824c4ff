package machine

import "math/bits"

// Knowledge says how sure a value is: that of a result is the least of what it depends on, which is
// their conjunction bit by bit.
type Knowledge uint8

// The degrees of knowledge, in their order.
const (
	Unknown     Knowledge = 0
	Unconfirmed Knowledge = 1
	Confirmed   Knowledge = 3
)

// A Way is how control goes on behind an instruction.
type Way uint8

// The ways.
const (
	Falls  Way = iota // to the next instruction
	Takes             // a conditional jump, to its target
	Leads             // a jump, call or return
	Faults            // nowhere: the processor raises an exception, and nothing has changed
	Unsure            // not known
)

// An Outcome is where control goes.
type Outcome struct {
	Way   Way
	Known Knowledge
	To    uint64 // an address, unless the way is Faults or Unsure
}

// A Machine is the registers of a thread. Its zero value knows nothing of them. It belongs to one
// goroutine.
type Machine struct {
	general file
	flags   flags
	vectors vectors
	port    port
}

// New returns a machine that knows nothing of its registers.
func New() *Machine {
	m := &Machine{}
	m.general.known[Next&31], m.general.known[Zero&31] = whole(Confirmed), whole(Confirmed)
	m.vectors.rounding = Unconfirmed
	return m
}

// General returns what a general register holds, or FS.
func (m *Machine) General(n int) (uint64, Knowledge) {
	return m.general.get(uint8(n), 8)
}

// SetGeneral gives a general register, or FS, a value.
func (m *Machine) SetGeneral(n int, v uint64, k Knowledge) {
	m.general.value[n&31], m.general.known[n&31] = v, whole(k)
	m.general.pending &^= 1 << (n & 31)
}

// Pend makes general registers unknown whose values are to be asked for before they are used.
func (m *Machine) Pend(registers uint16) {
	for r := registers; r != 0; r &= r - 1 {
		m.general.known[bits.TrailingZeros16(r)] = 0
	}
	m.general.pending |= uint32(registers)
}

// Pending are the registers of Pend that have not been written, set or forgotten since.
func (m *Machine) Pending() (registers uint16) { return uint16(m.general.pending) }

// Flags returns the flags, and which of them are known, and which of these are confirmed.
func (m *Machine) Flags() (value, known, confirmed uint8) {
	return m.flags.value, m.flags.known, m.flags.confirmed
}

// SetFlags gives all flags a value.
func (m *Machine) SetFlags(value uint8, k Knowledge) {
	m.flags.set(AllFlags, 0, value, k)
}

// Confirm has the flags and the general registers that are known be confirmed, but for FS.
func (m *Machine) Confirm() {
	m.flags.confirmed = m.flags.known
	for n, known := range m.general.known[:16] {
		if known != whole(Confirmed) && known.whole() == Unconfirmed {
			m.SetGeneral(n, m.general.value[n], Confirmed)
		}
	}
}

// FlagsUsed are the flags that the last step has used, and FlagsWritten those that it has changed,
// or left undefined.
func (m *Machine) FlagsUsed() uint8 { return m.flags.read }

// FlagsWritten: see FlagsUsed.
func (m *Machine) FlagsWritten() uint8 { return m.flags.written }

// Written has a bit for each general register that the last step has written.
func (m *Machine) Written() uint16 { return uint16(m.general.wrote) }

// Unknown has a bit for each general register that the last step has written of which not all is
// known.
func (m *Machine) Unknown() (registers uint16) {
	for w := m.Written(); w != 0; w &= w - 1 {
		if n := bits.TrailingZeros16(w); m.general.known[n].whole() == Unknown {
			registers |= 1 << n
		}
	}
	return registers
}

// Accesses are those of the last step, in their order. They are good until the next.
func (m *Machine) Accesses() []Access { return m.port.accesses }

// Vector returns the 32 bytes that a vector register holds, and what is known of each.
func (m *Machine) Vector(n int) (*[32]byte, *[32]Knowledge) {
	v := &m.vectors.registers[n&15]
	return &v.bytes, &v.known
}

// SetVector gives a vector register a value.
func (m *Machine) SetVector(n int, bytes [32]byte, k Knowledge) {
	v := &m.vectors.registers[n&15]
	v.bytes = bytes
	v.know(0, 32, k)
}

// SetMXCSR says how floating-point numbers are rounded and what raises exceptions. Where that is
// not as processes begin, results are unknown. At first it is so, unconfirmed.
func (m *Machine) SetMXCSR(v uint32, k Knowledge) {
	if v&0xffc0 != 0x1f80 {
		k = Unknown
	}
	m.vectors.rounding = k
}

// Forget makes registers and flags unknown. Of vectors, all.
func (m *Machine) Forget(s Set) {
	for g := s.General; g != 0; g &= g - 1 {
		m.general.known[bits.TrailingZeros16(g)] = 0
	}
	m.general.pending &^= uint32(s.General)
	m.flags.set(0, s.Flags, 0, Unknown)
	m.vectors.forget(s.Vectors)
}

// Doubt makes unconfirmed what is confirmed, but for FS, which threads hardly ever change.
func (m *Machine) Doubt() {
	for i := range m.general.known[:registers] {
		if i != Next && i != Zero && i != FS {
			m.general.known[i] &= whole(Unconfirmed)
		}
	}
	m.flags.confirmed = 0
	m.vectors.doubt()
}

// Hash returns the hash of the 16 general registers that a hit sends, and whether all of them are
// known.
func (m *Machine) Hash() (uint32, bool) {
	known := whole(Confirmed)
	for _, k := range m.general.known[:16] {
		known &= k
	}
	return HashOf((*[16]uint64)(m.general.value[:])), known.whole() != Unknown
}

// HashOf returns the hash of the 16 general registers, by their hardware numbers, that a hit sends.
func HashOf(registers *[16]uint64) uint32 {
	even, odd := uint64(0), uint64(0)
	for i := 0; i < len(registers); i += 2 {
		even = (even ^ registers[i]) * 0x9e3779b97f4a7c15
		even ^= even >> 29
		odd = (odd ^ registers[i+1]) * 0xc2b2ae3d27d4eb4f
		odd ^= odd >> 31
	}
	x := even ^ odd
	return uint32(x ^ x>>32)
}
