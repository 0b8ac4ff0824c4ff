package cfg

import (
	"encoding/binary"
	"math/bits"
	"sort"
	"sync/atomic"

	"wpptrace/internal/parallel"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// references is the set of the addresses that the file mentions otherwise than in a direct call or
// jump of a routine: instructions that take them, data words, relocations, dynamic symbols, the
// program's entry. An address of code in it may be reached through a pointer; an address of data in
// it begins an object, so that no table reaches beyond it. It holds one bit for each byte of the
// mapped sections. Several goroutines may look at it at a time, one may add to it.
type references struct {
	sections []image.Section
	bits     [][]uint64   // by section
	last     atomic.Int32 // the section found last: neighbours ask for neighbours
}

func newReferences(sections []image.Section) *references {
	m := &references{sections: sections, bits: make([][]uint64, len(sections))}
	for i := range sections {
		m.bits[i] = make([]uint64, (len(sections[i].Data)+63)/64)
	}
	return m
}

// section returns the index of the section that addr lies in, or -1.
func (m *references) section(addr uint64) int {
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

func (m *references) add(addr uint64) {
	if i := m.section(addr); i >= 0 {
		at := addr - m.sections[i].Addr
		m.bits[i][at/64] |= 1 << (at % 64)
	}
}

func (m *references) has(addr uint64) bool {
	i := m.section(addr)
	if i < 0 {
		return false
	}
	at := addr - m.sections[i].Addr
	return m.bits[i][at/64]>>(at%64)&1 != 0
}

// next returns the first address in [lo, hi) that is mentioned; [lo, hi) lies in one section.
func (m *references) next(lo, hi uint64) (uint64, bool) {
	i := m.section(lo)
	if i < 0 {
		return 0, false
	}
	base := m.sections[i].Addr
	for at := lo - base; at < min(hi-base, uint64(len(m.sections[i].Data))); {
		if word := m.bits[i][at/64] >> (at % 64); word != 0 {
			at += uint64(bits.TrailingZeros64(word))
			return base + at, at < hi-base
		}
		at = (at/64 + 1) * 64
	}
	return 0, false
}

// collectReferences reads the whole image for references: all, those by instructions that are no
// indirect jumps, and those by anything but instructions and dynamic symbols.
func collectReferences(im *image.Image, c *code) (all, insns, data *references) {
	all, insns, data = newReferences(im.Sections), newReferences(im.Sections),
		newReferences(im.Sections)
	parallel.Both(func() {
		for i := range c.insns {
			by := insns
			if c.insns[i].Kind == x86.JmpInd {
				by = all
			}
			eachOperand(&c.insns[i], c.bytes(i), !im.PIE, func(addr uint64) {
				by.add(addr)
			})
		}
		if tables := offsetTables(im); len(tables) > 0 && insns.has(tables[0]) {
			insns.addDistances(tables[0], c)
		}
	}, func() { data.addData(im, c) })
	all.join(insns)
	all.join(data)
	for _, s := range im.Symbols() {
		if s.Dynamic {
			all.add(s.Addr)
		}
	}
	return all, insns, data
}

// join adds those of others that are of the same image.
func (m *references) join(others *references) {
	for i, words := range others.bits {
		for k, word := range words {
			m.bits[i][k] |= word
		}
	}
}

// addData adds what is named elsewhere.
func (m *references) addData(im *image.Image, c *code) {
	lo, hi := c.pieces[0].Lo, c.pieces[len(c.pieces)-1].Hi
	c.eachNamedUncovered(im, m.add)
	for i := range im.Sections {
		s := &im.Sections[i]
		// In a position independent file all pointers have relocations but those of the dynamic
		// section, which the loader relocates unasked.
		switch {
		case isUnwindData(s):
		case !im.PIE:
			m.addWords(s)
			m.addPacked(s, lo, hi)
		case s.Name == ".dynamic":
			m.addWords(s)
		}
	}
	for _, to := range im.Relocations() {
		m.add(to)
	}
	for _, to := range im.Resolvers() {
		m.add(to)
	}
	for _, routine := range im.Personalities {
		m.add(routine)
	}
	m.add(im.Entry)
}

// offsetTables lists where global offset tables are: the one that code takes by that name comes
// first.
func offsetTables(im *image.Image) (list []uint64) {
	for _, name := range [...]string{".got.plt", ".got"} {
		if s := im.Section(name); s != nil {
			list = append(list, s.Addr)
		}
	}
	return list
}

// addDistances adds what instructions name by its distance from the global offset table, as the
// medium and the large code model have it.
func (m *references) addDistances(offsetTable uint64, c *code) {
	for i := range c.insns {
		if number, size := c.insns[i].AddressImmediate(c.bytes(i)); size == 8 {
			m.add(offsetTable + number)
		}
	}
}

func isUnwindData(s *image.Section) bool {
	return s.Exec || s.Name == ".eh_frame" || s.Name == ".eh_frame_hdr" ||
		s.Name == ".gcc_except_table"
}

// addWords adds the aligned words of a section.
func (m *references) addWords(s *image.Section) {
	for at := int(-s.Addr & 7); at+8 <= len(s.Data); at += 8 {
		m.add(binary.LittleEndian.Uint64(s.Data[at:]))
	}
}

// addPacked adds the words of a section that lead to what is in [lo, hi), wherever they are: packed
// structures have them at any address.
func (m *references) addPacked(s *image.Section, lo, hi uint64) {
	for at := 0; at+8 <= len(s.Data); at++ {
		if word := binary.LittleEndian.Uint64(s.Data[at:]); word-lo < hi-lo {
			m.add(word)
		}
	}
}

// eachOperand calls back for each address that an instruction names by a rip-relative operand or,
// in a file that is not position independent, by an absolute displacement or an immediate.
func eachOperand(q *Insn, code []byte, absolute bool, visit func(addr uint64)) {
	q.EachAddress(code, q.end(), absolute, visit)
}
