package machine

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// Knowledge says how sure a value is: that of a result is the least of what it depends on, which is
// their conjunction bit by bit.
type Knowledge uint8

// The degrees of knowledge, in their order.
const (
	Unknown     Knowledge = 0
	Unconfirmed Knowledge = 1
	Confirmed   Knowledge = 3
)

// Memory is what instructions load from and store to. Both are of 1 to 64 bytes.
type Memory interface {
	// Load fills to as far as anything is known of it.
	Load(addr uint64, to []byte) Knowledge
	Store(addr uint64, from []byte, k Knowledge)
}

// An Access is one that an instruction has made.
type Access struct {
	Addr  uint64
	Size  int // 0: it is not known how much
	Write bool
	At    Knowledge // of Addr
	Known Knowledge // of what was read or written; Unknown, too, if the address is not known
	Bytes [64]byte  // those that Size says; the first, where it is more
	long  []byte    // all, where it is more
}

// Data is the bytes that were read or written. They are good until the machine's next step.
func (a *Access) Data() []byte {
	if a.Size > len(a.Bytes) {
		return a.long
	}
	return a.Bytes[:a.Size]
}

// Clone returns an access whose data stay.
func (a *Access) Clone() Access {
	c := *a
	c.long = slices.Clone(a.long)
	return c
}

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
	general [32]uint64
	known   [32]parts
	flags   flags
	vectors vectors

	wrote    uint32 // general registers, by the last step
	at       uint64 // where the operand of the last load is
	atKnown  Knowledge
	accesses []Access
	long     [2][]byte // room for those of the first accesses of a string instruction
	buffer   [64]byte
}

// New returns a machine that knows nothing of its registers.
func New() *Machine {
	m := &Machine{}
	m.known[Next&31], m.known[Zero&31] = 0x3f, 0x3f
	m.vectors.rounding = Unconfirmed
	return m
}

// parts is what is known of a general register: of its lowest byte, of the one above, of the rest,
// two bits each from the lowest on.
type parts uint8

func whole(k Knowledge) parts    { return parts(k) * 0x15 }
func (p parts) whole() Knowledge { return Knowledge(p & (p >> 2) & (p >> 4) & 3) }

// General returns what a general register holds, or FS.
func (m *Machine) General(n int) (uint64, Knowledge) {
	return m.general[n&31], m.known[n&31].whole()
}

// SetGeneral gives a general register, or FS, a value.
func (m *Machine) SetGeneral(n int, v uint64, k Knowledge) {
	m.general[n&31], m.known[n&31] = v, whole(k)
}

// Flags returns the flags, and which of them are known, and which of these are confirmed.
func (m *Machine) Flags() (value, known, confirmed uint8) {
	return m.flags.value, m.flags.known, m.flags.confirmed
}

// SetFlags gives all flags a value.
func (m *Machine) SetFlags(value uint8, k Knowledge) {
	m.flags.set(AllFlags, 0, value, k)
}

// FlagsUsed are the flags that the last step has used, and FlagsWritten those that it has changed,
// or left undefined.
func (m *Machine) FlagsUsed() uint8 { return m.flags.read }

// FlagsWritten: see FlagsUsed.
func (m *Machine) FlagsWritten() uint8 { return m.flags.written }

// Written has a bit for each general register that the last step has written.
func (m *Machine) Written() uint16 { return uint16(m.wrote) }

// Accesses are those of the last step, in their order. They are good until the next.
func (m *Machine) Accesses() []Access { return m.accesses }

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

// WrittenVectors has a bit for each vector register that the last step has written.
func (m *Machine) WrittenVectors() uint16 { return m.vectors.wrote }

// Forget makes registers and flags unknown. Of vectors, all.
func (m *Machine) Forget(s Set) {
	for g := s.General; g != 0; g &= g - 1 {
		m.known[bits.TrailingZeros16(g)] = 0
	}
	m.flags.set(0, s.Flags, 0, Unknown)
	m.vectors.forget(s.Vectors)
}

// Doubt makes unconfirmed what is confirmed.
func (m *Machine) Doubt() {
	for i := range m.known[:registers] {
		if i != Next && i != Zero {
			m.known[i] &= 0x15
		}
	}
	m.flags.confirmed = 0
	m.vectors.doubt()
}

// Hash returns the hash of the 16 general registers that a hit sends, and whether all of them are
// known.
func (m *Machine) Hash() (uint32, bool) {
	h, g, known := uint64(0), uint64(0), parts(0x3f)
	for i := 0; i < 16; i += 2 {
		h = (h ^ m.general[i]) * 0x9e3779b97f4a7c15
		h ^= h >> 29
		g = (g ^ m.general[i+1]) * 0xc2b2ae3d27d4eb4f
		g ^= g >> 31
		known &= m.known[i] & m.known[i+1]
	}
	x := h ^ g
	return uint32(x ^ x>>32), known.whole() != Unknown
}

// address returns the address of an operand.
func (m *Machine) address(o *Operand) (uint64, Knowledge) {
	base, index, segment := o.Reg&31, o.Index&31, o.Segment&31
	a := m.general[base] + m.general[index]<<(o.Scale&3) + uint64(o.Disp)
	if o.Short {
		a = uint64(uint32(a))
	}
	return a + m.general[segment], (m.known[base] & m.known[index] & m.known[segment]).whole()
}

// load reads at m.at.
func (m *Machine) load(size uint8, mem Memory) (uint64, Knowledge) {
	a := m.access(int(size))
	if m.atKnown == Unknown {
		return 0, Unknown
	}
	b := m.buffer[:size]
	a.Known = mem.Load(m.at, b) & m.atKnown
	v := read(&m.buffer, size)
	binary.LittleEndian.PutUint64(a.Bytes[:], v)
	return v, a.Known
}

// read returns the number in the first bytes of a buffer.
func read(b *[64]byte, size uint8) uint64 {
	return binary.LittleEndian.Uint64(b[:]) & maskOf(size)
}

// store writes at m.at.
func (m *Machine) store(v uint64, size uint8, k Knowledge, mem Memory) {
	a := m.access(int(size))
	a.Write, a.Known = true, k&m.atKnown
	binary.LittleEndian.PutUint64(a.Bytes[:], v)
	if m.atKnown != Unknown {
		binary.LittleEndian.PutUint64(m.buffer[:], v)
		mem.Store(m.at, m.buffer[:size], a.Known)
	}
}

// access adds an access at m.at, a read of what is not known.
func (m *Machine) access(size int) *Access {
	n := len(m.accesses)
	if n < cap(m.accesses) {
		m.accesses = m.accesses[:n+1]
	} else {
		m.accesses = append(m.accesses, Access{})
	}
	a := &m.accesses[n]
	a.Addr, a.Size, a.Write, a.At, a.Known = m.at, size, false, m.atKnown, Unknown
	a.long = nil
	return a
}

// value returns what an operand holds, without anything above its size.
func (m *Machine) value(o *Operand, in *Insn, mem Memory) (uint64, Knowledge) {
	switch o.Class {
	case General:
		return m.register(o.Reg, o.Size)
	case Mem:
		m.at, m.atKnown = m.address(o)
		return m.load(o.Size, mem)
	case Immediate:
		return uint64(in.Imm) & maskOf(o.Size), Confirmed
	case High:
		return m.general[o.Reg&3] >> 8 & 0xff, Knowledge(m.known[o.Reg&3] >> 2 & 3)
	}
	return 0, Unknown
}

// register returns the low bytes of a general register.
func (m *Machine) register(n, size uint8) (uint64, Knowledge) {
	v, p := m.general[n&31], m.known[n&31]
	switch size {
	case 8:
		return v, p.whole()
	case 4:
		return uint64(uint32(v)), p.whole()
	case 2:
		return uint64(uint16(v)), Knowledge(p & (p >> 2) & 3)
	}
	return uint64(uint8(v)), Knowledge(p & 3)
}

// put gives an operand a value: one in memory at m.at, where value has found it. Above a result of
// 4 bytes a register is cleared, above a shorter one it stays.
func (m *Machine) put(o *Operand, v uint64, k Knowledge, mem Memory) {
	switch o.Class {
	case General:
		m.setRegister(o.Reg&31, v, o.Size, k)
	case Mem:
		m.store(v, o.Size, k, mem)
	case High:
		r := o.Reg & 3
		m.wrote |= 1 << r
		m.general[r] = m.general[r]&^0xff00 | v&0xff<<8
		m.known[r] = m.known[r]&^0x0c | parts(k)<<2
	}
}

func (m *Machine) setRegister(n uint8, v uint64, size uint8, k Knowledge) {
	n &= 31
	m.wrote |= 1 << n
	switch r := &m.general[n]; size {
	case 8:
		*r, m.known[n] = v, whole(k)
	case 4:
		*r, m.known[n] = uint64(uint32(v)), whole(k)
	case 2:
		*r = *r&^0xffff | v&0xffff
		m.known[n] = m.known[n]&0x30 | parts(k)*5
	default:
		*r = *r&^0xff | v&0xff
		m.known[n] = m.known[n]&^3 | parts(k)
	}
}

// write is put of an operand that was not read.
func (m *Machine) write(o *Operand, v uint64, k Knowledge, mem Memory) {
	if o.Class == Mem {
		m.at, m.atKnown = m.address(o)
	}
	m.put(o, v, k, mem)
}
