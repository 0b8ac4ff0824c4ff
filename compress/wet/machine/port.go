package machine

import (
	"encoding/binary"
	"slices"
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

// A port is where instructions load and store, one access after the other.
type port struct {
	at       uint64 // where
	known    Knowledge
	accesses []Access  // of the last step
	long     [2][]byte // room for those of the first accesses of a string instruction
	buffer   [64]byte
}

// access adds an access, a read of what is not known.
func (p *port) access(size int) *Access {
	n := len(p.accesses)
	if n < cap(p.accesses) {
		p.accesses = p.accesses[:n+1]
	} else {
		p.accesses = append(p.accesses, Access{})
	}
	a := &p.accesses[n]
	a.Addr, a.Size, a.Write, a.At, a.Known = p.at, size, false, p.known, Unknown
	a.long = nil
	return a
}

// load reads a number.
func (p *port) load(size uint8, mem Memory) (uint64, Knowledge) {
	a := p.access(int(size))
	if p.known == Unknown {
		return 0, Unknown
	}
	a.Known = mem.Load(p.at, p.buffer[:size]) & p.known
	v := binary.LittleEndian.Uint64(p.buffer[:]) & maskOf(size)
	binary.LittleEndian.PutUint64(a.Bytes[:], v)
	return v, a.Known
}

// store writes a number.
func (p *port) store(v uint64, size uint8, k Knowledge, mem Memory) {
	a := p.access(int(size))
	a.Write, a.Known = true, k&p.known
	binary.LittleEndian.PutUint64(a.Bytes[:], v)
	if p.known != Unknown {
		binary.LittleEndian.PutUint64(p.buffer[:], v)
		mem.Store(p.at, p.buffer[:size], a.Known)
	}
}

// storeUnknown writes bytes of which nothing is known; 0: nobody knows how many.
func (p *port) storeUnknown(size int, mem Memory) {
	a := p.access(size)
	a.Write = true
	for at := 0; p.known != Unknown && at < size; at += len(p.buffer) {
		mem.Store(p.at+uint64(at), p.buffer[:min(size-at, len(p.buffer))], Unknown)
	}
}

// loadVector reads the first bytes of a vector.
func (p *port) loadVector(to *vector, size int, mem Memory) {
	a := p.access(size)
	if p.known != Unknown {
		a.Known = mem.Load(p.at, p.buffer[:size]) & p.known
	}
	copy(to.bytes[:], p.buffer[:size])
	copy(a.Bytes[:], p.buffer[:size])
	to.know(0, size, a.Known)
}

// storeVector writes the first bytes of a vector, what is known equally well at once.
func (p *port) storeVector(r *vector, size int, mem Memory) {
	a := p.access(size)
	a.Write, a.Known = true, p.known
	copy(a.Bytes[:], r.bytes[:size])
	for from := 0; from < size; {
		to := from + 1
		for to < size && r.known[to] == r.known[from] {
			to++
		}
		a.Known &= r.known[from]
		if p.known != Unknown {
			copy(p.buffer[:], r.bytes[from:to])
			mem.Store(p.at+uint64(from), p.buffer[:to-from], r.known[from]&p.known)
		}
		from = to
	}
}

// join makes the last access a part of the one before it of its kind, where they touch.
func (p *port) join() {
	last := len(p.accesses) - 1
	a := &p.accesses[last]
	for i := max(last-2, 0); i < last; i++ {
		b := &p.accesses[i]
		if b.Write != a.Write || b.At != a.At || b.Addr+uint64(b.Size) != a.Addr {
			continue
		}
		if end := b.Size + a.Size; end <= len(b.Bytes) {
			copy(b.Bytes[b.Size:], a.Bytes[:a.Size])
		} else {
			if b.long == nil {
				b.long = append(p.long[i&1][:0], b.Bytes[:b.Size]...)
			}
			b.long = append(b.long, a.Bytes[:a.Size]...)
			p.long[i&1] = b.long
		}
		b.Size += a.Size
		b.Known &= a.Known
		p.accesses = p.accesses[:last]
		return
	}
}
