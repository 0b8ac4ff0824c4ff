package slice

import (
	"math/bits"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
)

// arguments are the registers that a call passes them in, by the System V ABI.
const (
	arguments = 1<<machine.RDI | 1<<machine.RSI | 1<<machine.RDX | 1<<machine.RCX | 3<<8
	general   = 0xffff
)

// external has registers be made by external code that has run before an instruction. Of a call
// that has returned they are made by the call, and that used the registers that pass arguments.
func (b *Builder) external(e *wet.Executed) {
	made, by := uint32(general), def(0)
	if last := &b.frames.last; last.op == machine.Call && last.next == e.Addr {
		made &^= machine.CalleeSaved
		by = def(b.graph.Len())
		b.found = b.graph.edges.take(b.found[:0])
		for r := uint32(arguments); r != 0; r &= r - 1 {
			b.depend(b.general[bits.TrailingZeros32(r)])
		}
		b.graph.edges.add(b.found)
	}
	for r := made; r != 0; r &= r - 1 {
		b.general[bits.TrailingZeros32(r)] = by
		b.values[bits.TrailingZeros32(r)].Known = machine.Unknown
	}
	for i := range b.vectors {
		b.vectors[i] = by
	}
	for i := range b.flags {
		b.flags[i] = by
	}
}

// depend adds what made a value to what the instance at hand depends on.
func (b *Builder) depend(on def) {
	if on == 0 {
		return
	}
	e := edge(on-1) << 1
	for _, is := range b.found[:min(few, len(b.found))] {
		if is == e {
			return
		}
	}
	if len(b.found) >= few {
		if b.many[e] {
			return
		}
		b.many[e] = true
	}
	b.found = append(b.found, e)
}

// few is how many dependences are looked through; of those behind them there is a set: a string
// instruction may have a million.
const few = 32

// uses finds what an instance depends on by what it uses.
func (b *Builder) uses(e *wet.Executed) {
	if e.Code.Op == machine.Opaque {
		b.graph.Opaque++
	}
	used := e.Code.Uses()
	for r := used.General; r != 0; r &= r - 1 {
		b.depend(b.general[bits.TrailingZeros32(r)])
	}
	for r := used.Vectors; r != 0; r &= r - 1 {
		b.depend(b.vectors[bits.TrailingZeros32(r)])
	}
	for f := e.FlagsUsed; f != 0; f &= f - 1 {
		b.depend(b.flags[bits.TrailingZeros8(f)])
	}
	for i := range e.Accesses {
		if a := &e.Accesses[i]; !a.Write && a.At != machine.Unknown {
			b.reads(a)
		}
	}
}

// reads finds who wrote the bytes of an access. Where one of them has another value than is known
// to have been there, others have written the aligned word that it is in: who wrote its bytes
// before is none of it, whatever they are.
func (b *Builder) reads(a *machine.Access) {
	data := a.Data()
	if a.Known == machine.Unknown {
		data = nil
	}
	for from := 0; from < a.Size; {
		to := min(from+int(8-(a.Addr+uint64(from))%8), a.Size)
		isOthers, doubtful, since := false, false, def(0)
		for i := from; i < min(to, len(data)); i++ {
			p, at := b.memory.at(a.Addr + uint64(i))
			if p.known[at] && p.value[at] != data[i] {
				isOthers, since = true, max(since, p.by[at])
			}
		}
		for i := from; i < to; i++ {
			p, at := b.memory.at(a.Addr + uint64(i))
			if isOthers {
				p.by[at] = 0
			}
			doubtful = doubtful || data == nil && p.known[at]
			if i < len(data) {
				p.known[at], p.value[at] = true, data[i]
			}
			b.depend(p.by[at])
		}
		if isOthers {
			b.graph.foreign = append(b.graph.foreign, foreign{b.graph.Len(), since})
		}
		if doubtful {
			b.graph.Doubtful++
		}
		from = to
	}
}

// defines has an instance be what made the values that it has written.
func (b *Builder) defines(e *wet.Executed, by def) {
	b.beforeCall = b.general[machine.RSP]
	for _, r := range e.Written {
		b.general[r.Number&31] = by
		b.values[r.Number&31] = r
	}
	for f := e.FlagsWritten; f != 0; f &= f - 1 {
		b.flags[bits.TrailingZeros8(f)] = by
	}
	vectors := e.Code.WrittenVectors()
	for r := vectors; r != 0; r &= r - 1 {
		b.vectors[bits.TrailingZeros16(r)] = by
	}
	for i := range e.Accesses {
		a := &e.Accesses[i]
		switch {
		case !a.Write:
		case a.At == machine.Unknown || a.Size == 0:
			b.graph.Unsure++
		default:
			data := a.Data()
			for j := range a.Size {
				p, at := b.memory.at(a.Addr + uint64(j))
				p.by[at] = by
				if p.known[at] = a.Known != machine.Unknown && j < len(data); p.known[at] {
					p.value[at] = data[j]
				}
			}
		}
	}
}

const pageSize = 4096

// A memory says who wrote each byte, and what, as far as that is known.
type memory struct {
	pages  map[uint64]*page
	number uint64
	last   *page // of that number
}

type page struct {
	by    [pageSize]def
	value [pageSize]byte
	known [pageSize]bool
}

// at returns the page of an address, and where it is in that.
func (m *memory) at(addr uint64) (p *page, at uint64) {
	if number := addr / pageSize; m.last == nil || m.number != number {
		if m.pages == nil {
			m.pages = map[uint64]*page{}
		}
		m.number = number
		if m.last = m.pages[number]; m.last == nil {
			m.last = &page{}
			m.pages[number] = m.last
		}
	}
	return m.last, addr % pageSize
}
