package sweep

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"sort"
	"sync/atomic"

	"wpptrace/internal/parallel"
	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// References is the set of the addresses that the file mentions otherwise than in a direct call or
// jump of a routine: instructions that take them, data words, relocations, dynamic symbols, the
// program's entry. An address of code in it may be reached through a pointer; an address of data in
// it begins an object, so that no table reaches beyond it. It holds one bit for each byte of those
// pages of the mapped sections that have any. Several goroutines may look at it at a time, one may
// add to it.
type References struct {
	sections []image.Section
	pages    [][]*page    // by section
	last     atomic.Int32 // the section found last: neighbours ask for neighbours
}

// A page has the bits of so many addresses, from the beginning of its section on.
type page [pageLen / 64]uint64

const pageLen = 2048

func newReferences(sections []image.Section) *References {
	m := &References{sections: sections, pages: make([][]*page, len(sections))}
	for i := range sections {
		m.pages[i] = make([]*page, (len(sections[i].Data)+pageLen-1)/pageLen)
	}
	return m
}

// section returns the index of the section that addr lies in, or -1.
func (m *References) section(addr uint64) int {
	within := func(i int) bool {
		return m.sections[i].Addr <= addr &&
			addr-m.sections[i].Addr < uint64(len(m.sections[i].Data))
	}
	if last := int(m.last.Load()); last < len(m.sections) && within(last) {
		return last
	}
	i := sort.Search(len(m.sections), func(i int) bool {
		return m.sections[i].Addr > addr
	}) - 1
	if i < 0 || !within(i) {
		return -1
	}
	m.last.Store(int32(i))
	return i
}

func (m *References) add(addr uint64) {
	i := m.section(addr)
	if i < 0 {
		return
	}
	at := addr - m.sections[i].Addr
	p := &m.pages[i][at/pageLen]
	if *p == nil {
		*p = new(page)
	}
	(*p)[at%pageLen/64] |= 1 << (at % 64)
}

// Note adds an address.
func (m *References) Note(addr uint64) { m.add(addr) }

// Has says whether an address is mentioned.
func (m *References) Has(addr uint64) bool {
	i := m.section(addr)
	if i < 0 {
		return false
	}
	at := addr - m.sections[i].Addr
	p := m.pages[i][at/pageLen]
	return p != nil && p[at%pageLen/64]>>(at%64)&1 != 0
}

// Next returns the first address in [lo, hi) that is mentioned; [lo, hi) lies in one section.
func (m *References) Next(lo, hi uint64) (uint64, bool) {
	i := m.section(lo)
	if i < 0 {
		return 0, false
	}
	base := m.sections[i].Addr
	for at, end := lo-base, min(hi-base, uint64(len(m.sections[i].Data))); at < end; {
		p := m.pages[i][at/pageLen]
		if p == nil {
			at = (at/pageLen + 1) * pageLen
			continue
		}
		if word := p[at%pageLen/64] >> (at % 64); word != 0 {
			at += uint64(bits.TrailingZeros64(word))
			return base + at, at < hi-base
		}
		at = (at/64 + 1) * 64
	}
	return 0, false
}

// collectReferences reads the whole image for references: by indirect jumps, by other instructions,
// and by anything but instructions and dynamic symbols.
func collectReferences(im *image.Image, c *Code) (jumps, insns, data *References) {
	jumps, insns, data = newReferences(im.Sections), newReferences(im.Sections),
		newReferences(im.Sections)
	parallel.Both(func() {
		for i := range c.Insns {
			by := insns
			if c.Insns[i].Kind == x86.JmpInd {
				by = jumps
			}
			EachOperand(&c.Insns[i], c.Bytes(i), !im.PIE, func(addr uint64) {
				by.add(addr)
			})
		}
		if tables := OffsetTables(im); len(tables) > 0 && insns.Has(tables[0]) {
			insns.addDistances(tables[0], c)
		}
	}, func() { data.addData(im, c) })
	return jumps, insns, data
}

// joinReferences makes References all of them: who collects them has put into it what is in no
// other set. Nothing is added to any of them afterwards.
func (f *File) joinReferences() {
	for _, s := range f.Image.Symbols() {
		if s.Dynamic {
			f.References.add(s.Addr)
		}
	}
	f.References.join(f.InsnReferences, f.DataReferences)
}

// join adds those of two others that are of the same image: it shares pages with them where only
// one has any.
func (m *References) join(a, b *References) {
	for i := range m.pages {
		for k, own := range m.pages[i] {
			x, y := a.pages[i][k], b.pages[i][k]
			switch {
			case own == nil && (x == nil || y == nil):
				m.pages[i][k] = cmp.Or(x, y)
				continue
			case own == nil:
				own = new(page)
				m.pages[i][k] = own
			}
			for _, other := range []*page{x, y} {
				if other != nil {
					for w, word := range other {
						own[w] |= word
					}
				}
			}
		}
	}
}

// addData adds what is named elsewhere.
func (m *References) addData(im *image.Image, c *Code) {
	lo, hi := c.Pieces[0].Lo, c.Pieces[len(c.Pieces)-1].Hi
	c.eachNamedUncovered(im, m.add)
	for i := range im.Sections {
		s := &im.Sections[i]
		// In a position independent file all pointers have relocations but those of the dynamic
		// section, which the loader relocates unasked.
		switch {
		case IsUnwindData(s):
		case !im.PIE:
			m.addWords(s)
			m.addPacked(s, lo, hi)
		case s.Name == ".dynamic":
			m.addWords(s)
		}
	}
	for _, r := range im.Relocations() {
		m.add(r.To)
	}
	for _, to := range im.Resolvers() {
		m.add(to)
	}
	for _, routine := range im.Personalities {
		m.add(routine)
	}
	m.add(im.Entry)
}

// OffsetTables lists where global offset tables are: the one that code takes by that name comes
// first.
func OffsetTables(im *image.Image) (list []uint64) {
	for _, name := range [...]string{".got.plt", ".got"} {
		if s := im.Section(name); s != nil {
			list = append(list, s.Addr)
		}
	}
	return list
}

// addDistances adds what instructions name by its distance from the global offset table, as the
// medium and the large code model have it.
func (m *References) addDistances(offsetTable uint64, c *Code) {
	for i := range c.Insns {
		if number, size := c.Insns[i].AddressImmediate(c.Bytes(i)); size == 8 {
			m.add(offsetTable + number)
		}
	}
}

// IsUnwindData says whether a section holds code, or what describes its frames.
func IsUnwindData(s *image.Section) bool {
	return s.Exec || s.Name == ".eh_frame" || s.Name == ".eh_frame_hdr" ||
		s.Name == ".gcc_except_table"
}

// addWords adds the aligned words of a section.
func (m *References) addWords(s *image.Section) {
	for at := int(-s.Addr & 7); at+8 <= len(s.Data); at += 8 {
		m.add(binary.LittleEndian.Uint64(s.Data[at:]))
	}
}

// addPacked adds the words of a section that lead to what is in [lo, hi), wherever they are: packed
// structures have them at any address.
func (m *References) addPacked(s *image.Section, lo, hi uint64) {
	for at := 0; at+8 <= len(s.Data); at++ {
		if word := binary.LittleEndian.Uint64(s.Data[at:]); word-lo < hi-lo {
			m.add(word)
		}
	}
}

// EachOperand calls back for each address that an instruction names by a rip-relative operand or,
// in a file that is not position independent, by an absolute displacement or an immediate.
func EachOperand(q *cfg.Insn, code []byte, absolute bool, visit func(addr uint64)) {
	q.EachAddress(code, q.End(), absolute, visit)
}
