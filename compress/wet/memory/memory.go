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
	// mostPages is how many pages a Memory has before a segment should begin: some 130 MB. Between
	// two hits it may have as many more.
	mostPages = 1 << 14
	recent    = 16
)

// A Memory is what is known of a thread's memory. The zero value knows nothing. It belongs to one
// goroutine. An access costs some nanoseconds, unless a page is new.
//
// Some bytes are private: nobody but the thread's own traced code knows where they are, such as
// return addresses and the frames of routines that take no address there. What external code does
// leaves them as they are.
type Memory struct {
	pages   map[uint64]*page
	last    [recent]slot // by the page's number
	life    uint64       // the number of times that Lose was called
	era     uint64       // and LoseAll
	stretch uint64       // and Begin
	segment uint64       // and BeginSegment
	other   uint64       // and Lose and LoseAll, but for those that Calm has taken back
	lowest  uint64       // private byte that was stored since LoseAll, or Drop
	undo    []change
	added   []uint64 // pages
	keeps   bool
}

// A slot has a page that was used lately.
type slot struct {
	number uint64
	page   *page
}

// A page is 4 KB of memory, with a bit for each byte.
type page struct {
	data      [pageSize]byte
	known     bitmap // it has held something
	held      bitmap // since BeginSegment, too,
	touched   bitmap // it was stored or loaded since BeginSegment,
	segment   uint64 // if this is the memory's
	confirmed bitmap
	fresh     bitmap // it was stored or loaded since Lose,
	life      uint64 // if this is the memory's
	private   bitmap // it was stored as a private one since LoseAll,
	era       uint64 // if this is the memory's
	stored    bitmap // it was stored since Begin,
	stretch   uint64 // if this is the memory's
	calm      bitmap // it was known since code ran that may have changed it,
	other     uint64 // if this is the memory's
}

type bitmap [pageSize / 64]uint64

// A change is what a page held before.
type change struct {
	page  *page
	at    uint16
	size  uint8 // 1 to 8
	known uint8
	held  uint8
	// it was touched
	touched uint8
	data    [8]byte
}

// A Held says of some bytes, 1 to 64, what is known: a bit for each, from the first on.
type Held struct {
	Held      uint64 // they have held something since BeginSegment
	Known     uint64 // what they hold is known
	Confirmed uint64 // of these, those that are confirmed
}

// Load copies what is held of some bytes, 1 to 64. private: the load is one of private bytes.
func (m *Memory) Load(addr uint64, to []byte, private bool) (h Held) {
	at := addr % pageSize
	if n := int(pageSize - at); n < len(to) {
		h = m.Load(addr, to[:n], private)
		more := m.Load(addr+uint64(n), to[n:], private)
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
	if p.segment == m.segment {
		h.Held = get(&p.held, at, len(to))
	}
	if p.life == m.life {
		h.Known = get(&p.fresh, at, len(to))
	}
	if private && p.era == m.era {
		h.Known |= get(&p.private, at, len(to))
	}
	h.Known &= get(&p.known, at, len(to))
	h.Confirmed = get(&p.confirmed, at, len(to)) & h.Known
	return h
}

// IsPrivate reports whether some bytes, 1 to 64, are private.
func (m *Memory) IsPrivate(addr uint64, n int) bool {
	at := addr % pageSize
	if first := int(pageSize - at); first < n {
		return m.IsPrivate(addr, first) && m.IsPrivate(addr+uint64(first), n-first)
	}
	p := m.page(addr / pageSize)
	return p != nil && p.era == m.era && get(&p.private, at, n) == mask(n)
}

// Store has some bytes, 1 to 64, hold what a thread has stored; Unknown: it is not known what that
// is. private: they are private from now on, else not.
func (m *Memory) Store(addr uint64, from []byte, k machine.Knowledge, private bool) {
	if private {
		m.lowest = min(m.lowest, addr)
	}
	m.put(addr, from, k, private, true)
}

// Learn has some bytes, 1 to 64, hold what a load has shown. private: see Store.
func (m *Memory) Learn(addr uint64, from []byte, k machine.Knowledge, private bool) {
	if private {
		m.lowest = min(m.lowest, addr)
	}
	m.put(addr, from, k, private, false)
}

func (m *Memory) put(addr uint64, from []byte, k machine.Knowledge, private, store bool) {
	at := addr % pageSize
	if n := int(pageSize - at); n < len(from) {
		m.put(addr, from[:n], k, private, store)
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
		if p.other != m.other {
			p.calm, p.other = bitmap{}, m.other
		}
		set(&p.calm, at, len(from), k != machine.Unknown)
	}
	if p.segment != m.segment {
		p.held, p.touched, p.segment = bitmap{}, bitmap{}, m.segment
	}
	if p.life != m.life {
		p.fresh, p.life = bitmap{}, m.life
	}
	if p.era != m.era {
		p.private, p.era = bitmap{}, m.era
	}
	if len(from) == 8 {
		binary.LittleEndian.PutUint64(p.data[at:], binary.LittleEndian.Uint64(from))
	} else {
		copy(p.data[at:], from)
	}
	set(&p.known, at, len(from), k != machine.Unknown)
	set(&p.held, at, len(from), k != machine.Unknown)
	set(&p.touched, at, len(from), true)
	set(&p.fresh, at, len(from), true)
	set(&p.private, at, len(from), private)
	set(&p.confirmed, at, len(from), k == machine.Confirmed)
}

// keep notes what some bytes hold.
func (m *Memory) keep(p *page, at uint64, n int) {
	for n > 0 {
		c := change{page: p, at: uint16(at), size: uint8(min(n, 8))}
		c.known = uint8(get(&p.known, at, int(c.size)))
		if p.segment == m.segment {
			c.held = uint8(get(&p.held, at, int(c.size)))
			c.touched = uint8(get(&p.touched, at, int(c.size)))
		}
		copy(c.data[:c.size], p.data[at:])
		m.undo = append(m.undo, c)
		at, n = at+uint64(c.size), n-int(c.size)
	}
}

// Lose has nothing be known any more but private bytes: external code has run. What bytes held
// stays held.
func (m *Memory) Lose() { m.life, m.other = m.life+1, m.other+1 }

// Calm says, directly behind Lose, what the code that has run may have written: memory close below
// an address, where the stack ended, and, if elsewhere, any other but what is right above it.
// IsCalm reports what was known before and is not among that.
func (m *Memory) Calm(below uint64, elsewhere bool) {
	const near = 1 << 16 // bytes
	if m.other--; elsewhere {
		m.other++
		for number := below / pageSize; number <= (below+near)/pageSize; number++ {
			if p := m.page(number); p != nil && p.other == m.other-1 {
				p.other = m.other
			}
		}
	}
	for number := (below - min(below, near)) / pageSize; number <= below/pageSize; number++ {
		p := m.page(number)
		if p == nil || p.other != m.other {
			continue
		}
		for at := number * pageSize; at < min(below, (number+1)*pageSize); at += 64 {
			set(&p.calm, at%pageSize, int(min(64, below-at)), false)
		}
	}
}

// IsCalm reports whether some bytes, 1 to 64, were known since code ran that may have changed them,
// of a Memory that keeps its changes.
func (m *Memory) IsCalm(addr uint64, n int) bool {
	at := addr % pageSize
	if first := int(pageSize - at); first < n {
		return m.IsCalm(addr, first) && m.IsCalm(addr+uint64(first), n-first)
	}
	p := m.page(addr / pageSize)
	return p != nil && p.other == m.other && get(&p.calm, at, n) == mask(n)
}

// Drop has no bytes be private below an address: they are of frames that are no more.
func (m *Memory) Drop(below uint64) {
	const most = 1 << 20
	lo := m.lowest
	if lo >= below {
		return
	}
	m.lowest = below
	if below-lo > most { // fewer pages are there than that
		for number, p := range m.pages {
			first := number * pageSize
			if first < below && p.era == m.era {
				m.makePublic(p, 0, min(pageSize, below-first))
			}
		}
		return
	}
	for lo < below {
		n := min(pageSize-lo%pageSize, below-lo)
		if p := m.page(lo / pageSize); p != nil && p.era == m.era {
			m.makePublic(p, lo%pageSize, n)
		}
		lo += n
	}
}

// makePublic has bytes of a page not be private.
func (m *Memory) makePublic(p *page, at, n uint64) {
	for n > 0 {
		some := min(64-at%64, n)
		set(&p.private, at, int(some), false)
		at, n = at+some, n-some
	}
}

// LoseAll has nothing be known any more: the thread may have stored anything anywhere. What bytes
// held stays held.
func (m *Memory) LoseAll() {
	m.life, m.other = m.life+1, m.other+1
	m.era++
	m.lowest = ^uint64(0)
}

// Keep has changes be kept from now on, so that they can be undone.
func (m *Memory) Keep() { m.keeps = true }

// Begin says that what has changed so far is not to be undone.
func (m *Memory) Begin() {
	m.undo, m.added = m.undo[:0], m.added[:0]
	m.stretch++
}

// BeginSegment says that nothing is held yet: what is known stays so. It follows Begin. Where that
// is more than there is to be memory for, all is forgotten.
func (m *Memory) BeginSegment() {
	m.segment++
	if m.IsFull() {
		m.pages, m.last = nil, [recent]slot{}
	}
}

// IsFull reports whether a segment should begin.
func (m *Memory) IsFull() bool { return len(m.pages) > mostPages }

// IsTooLarge reports whether there are more pages than any recording keeps.
func (m *Memory) IsTooLarge() bool { return len(m.pages) > 2*mostPages }

// Rollback undoes what has changed since Begin. Nothing is known then, but what is held.
func (m *Memory) Rollback() {
	for i := len(m.undo) - 1; i >= 0; i-- {
		c := &m.undo[i]
		copy(c.page.data[c.at:], c.data[:c.size])
		for j := range int(c.size) {
			set(&c.page.known, uint64(c.at)+uint64(j), 1, c.known>>j&1 != 0)
			set(&c.page.held, uint64(c.at)+uint64(j), 1, c.held>>j&1 != 0)
			set(&c.page.touched, uint64(c.at)+uint64(j), 1, c.touched>>j&1 != 0)
		}
	}
	for _, number := range m.added {
		delete(m.pages, number)
		m.last[number%recent] = slot{}
	}
	m.undo, m.added = m.undo[:0], m.added[:0]
	m.stretch++
	m.LoseAll()
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

// IsTouched reports whether some of some bytes, 1 to 64, were stored or learned since BeginSegment.
func (m *Memory) IsTouched(addr uint64, n int) bool {
	at := addr % pageSize
	if first := int(pageSize - at); first < n {
		return m.IsTouched(addr, first) || m.IsTouched(addr+uint64(first), n-first)
	}
	p := m.page(addr / pageSize)
	return p != nil && p.segment == m.segment && get(&p.touched, at, n) != 0
}

// Bytes is how much memory the model takes.
func (m *Memory) Bytes() uint64 { return uint64(len(m.pages)) * (2*pageSize + 576) }

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

// OfSegment is what is known of the bytes by what has happened since BeginSegment alone.
func (h Held) OfSegment() Held { return Held{h.Held, h.Known & h.Held, h.Confirmed & h.Held} }
