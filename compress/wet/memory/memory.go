// Package memory is a model of a thread's memory: what its own stores and loads have shown of it,
// byte by byte, and how sure that is. Recording and asking use it alike: it promises that the same
// calls give the same answers. It knows nothing of the process, and reads nothing.
package memory

import (
	"encoding/binary"

	"wpptrace/compress/wet/machine"
)

const (
	pageSize = 4096
	// mostPages is how many pages a Memory keeps: some 90 MB.
	mostPages = 1 << 14
	recent    = 16
)

// A Memory is what is known of a thread's memory. The zero value knows nothing. It belongs to one
// goroutine. An access costs some nanoseconds, unless a page is new.
type Memory struct {
	pages map[uint64]*page
	last  [recent]slot // by the page's number
	epoch uint64
	life  uint64
	undo  []change
	added []uint64 // pages
	// the number of times that Begin was called
	stretch uint64
	keeps   bool
}

// A slot has a page that was used lately.
type slot struct {
	number uint64
	page   *page
}

// A page is 4 KB of memory, with a bit for each byte.
type page struct {
	data                   [pageSize]byte
	held, known, confirmed bitmap
	stored                 bitmap // since Begin,
	stretch                uint64 // if this is the memory's
	epoch                  uint64 // in another one than the memory's nothing is confirmed
	life                   uint64 // and nothing known
}

type bitmap [pageSize / 64]uint64

// A change is what a page held before.
type change struct {
	page *page
	at   uint16
	size uint8 // 1 to 8
	held uint8
	data [8]byte
}

// A Held says of some bytes, 1 to 64, what is known: a bit for each, from the first on.
type Held struct {
	Held      uint64 // they have held something once
	Known     uint64 // of these, those that hold it still, as far as external code leaves it
	Confirmed uint64 // of these, those that surely do
}

// Load copies what is held of some bytes, 1 to 64.
func (m *Memory) Load(addr uint64, to []byte) (h Held) {
	at := addr % pageSize
	if n := int(pageSize - at); n < len(to) {
		h = m.Load(addr, to[:n])
		more := m.Load(addr+uint64(n), to[n:])
		return Held{h.Held | more.Held<<n, h.Known | more.Known<<n,
			h.Confirmed | more.Confirmed<<n}
	}
	p := m.page(addr / pageSize)
	if p == nil {
		return h
	}
	if len(to) == 8 {
		binary.LittleEndian.PutUint64(to, binary.LittleEndian.Uint64(p.data[at:]))
	} else {
		copy(to, p.data[at:])
	}
	h.Held = get(&p.held, at, len(to))
	if p.life == m.life {
		h.Known = get(&p.known, at, len(to))
		if p.epoch == m.epoch {
			h.Confirmed = get(&p.confirmed, at, len(to)) & h.Known
		}
	}
	return h
}

// Store has some bytes, 1 to 64, hold what a thread has stored; Unknown: it is not known what that
// is.
func (m *Memory) Store(addr uint64, from []byte, k machine.Knowledge) { m.put(addr, from, k, true) }

// Learn has some bytes, 1 to 64, hold what a load has shown.
func (m *Memory) Learn(addr uint64, from []byte, k machine.Knowledge) {
	m.put(addr, from, k, false)
}

func (m *Memory) put(addr uint64, from []byte, k machine.Knowledge, store bool) {
	at := addr % pageSize
	if n := int(pageSize - at); n < len(from) {
		m.put(addr, from[:n], k, store)
		addr, from, at = addr+uint64(n), from[n:], 0
	}
	p := m.page(addr / pageSize)
	if p == nil {
		p = m.add(addr / pageSize)
	}
	if m.keeps {
		m.keep(p, at, len(from))
		if p.stretch != m.stretch {
			p.stored, p.stretch = bitmap{}, m.stretch
		}
		if store {
			set(&p.stored, at, len(from), true)
		}
	}
	if p.epoch != m.epoch {
		p.confirmed, p.epoch = bitmap{}, m.epoch
	}
	if p.life != m.life {
		p.known, p.life = bitmap{}, m.life
	}
	if len(from) == 8 {
		binary.LittleEndian.PutUint64(p.data[at:], binary.LittleEndian.Uint64(from))
	} else {
		copy(p.data[at:], from)
	}
	set(&p.held, at, len(from), k != machine.Unknown)
	set(&p.known, at, len(from), k != machine.Unknown)
	set(&p.confirmed, at, len(from), k == machine.Confirmed)
}

// keep notes what some bytes hold.
func (m *Memory) keep(p *page, at uint64, n int) {
	for n > 0 {
		c := change{page: p, at: uint16(at), size: uint8(min(n, 8))}
		c.held = uint8(get(&p.held, at, int(c.size)))
		copy(c.data[:c.size], p.data[at:])
		m.undo = append(m.undo, c)
		at, n = at+uint64(c.size), n-int(c.size)
	}
}

// Doubt has nothing be confirmed any more: external code has run.
func (m *Memory) Doubt() { m.epoch++ }

// Lose has nothing be known any more: the thread may have stored anything anywhere. What bytes held
// stays held.
func (m *Memory) Lose() {
	m.epoch++
	m.life++
}

// Keep has changes be kept from now on, so that they can be undone.
func (m *Memory) Keep() { m.keeps = true }

// Begin says that what has changed so far is not to be undone. Where that is more than there is to
// be memory for, all is forgotten.
func (m *Memory) Begin() {
	m.undo, m.added = m.undo[:0], m.added[:0]
	m.stretch++
	if len(m.pages) > mostPages {
		m.pages, m.last = nil, [recent]slot{}
	}
}

// Rollback undoes what has changed since Begin. Nothing is known then, but what is held.
func (m *Memory) Rollback() {
	for i := len(m.undo) - 1; i >= 0; i-- {
		c := &m.undo[i]
		copy(c.page.data[c.at:], c.data[:c.size])
		for j := range int(c.size) {
			set(&c.page.held, uint64(c.at)+uint64(j), 1, c.held>>j&1 != 0)
		}
	}
	for _, number := range m.added {
		delete(m.pages, number)
		m.last[number%recent] = slot{}
	}
	m.undo, m.added = m.undo[:0], m.added[:0]
	m.stretch++
	m.Lose()
}

// Stored returns which of some bytes, 1 to 64, the thread has stored since Begin: a bit for each.
func (m *Memory) Stored(addr uint64, n int) (stored uint64) {
	at := addr % pageSize
	if first := int(pageSize - at); first < n {
		return m.Stored(addr, first) | m.Stored(addr+uint64(first), n-first)<<first
	}
	if p := m.page(addr / pageSize); p != nil && p.stretch == m.stretch {
		return get(&p.stored, at, n)
	}
	return 0
}

// Bytes is how much memory the model takes.
func (m *Memory) Bytes() uint64 { return uint64(len(m.pages)) * (pageSize + pageSize/2 + 64) }

func (m *Memory) page(number uint64) *page {
	s := &m.last[number%recent]
	if s.number == number && s.page != nil {
		return s.page
	}
	p := m.pages[number]
	if p != nil {
		*s = slot{number, p}
	}
	return p
}

func (m *Memory) add(number uint64) *page {
	if m.pages == nil {
		m.pages = map[uint64]*page{}
	}
	p := &page{}
	m.pages[number], m.last[number%recent] = p, slot{number, p}
	if m.keeps {
		m.added = append(m.added, number)
	}
	return p
}

// mask has n bits, 1 to 64.
func mask(n int) uint64 { return ^uint64(0) >> (64 - uint(n)) }

// get returns n bits from one on.
func get(set *bitmap, at uint64, n int) uint64 {
	word, bit := at/64, at%64
	b := set[word] >> bit
	if int(bit)+n > 64 {
		b |= set[word+1] << (64 - bit)
	}
	return b & mask(n)
}

// set has n bits from one on be set, or not.
func set(of *bitmap, at uint64, n int, is bool) {
	word, bit := at/64, at%64
	low := mask(n) << bit
	high := uint64(0)
	if int(bit)+n > 64 {
		high = mask(int(bit) + n - 64)
	}
	if is {
		of[word] |= low
		if high != 0 {
			of[word+1] |= high
		}
		return
	}
	of[word] &^= low
	if high != 0 {
		of[word+1] &^= high
	}
}

// Knowledge is how sure n bytes are together.
func (h Held) Knowledge(n int) machine.Knowledge {
	switch all := mask(n); {
	case h.Known&all != all:
		return machine.Unknown
	case h.Confirmed&all != all:
		return machine.Unconfirmed
	}
	return machine.Confirmed
}

// All reports whether all n bytes are held.
func (h Held) All(n int) bool { return h.Held&mask(n) == mask(n) }
