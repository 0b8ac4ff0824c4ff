package cfg

import (
	"encoding/binary"
	"slices"
	"strings"
)

// readAt reads the entries of the table at v.off.
func (s *resolver) readAt(v value, l limit) (*table, certainty) {
	e := extent{form: v.form, scale: v.scale, size: v.size, addr: v.off, anchor: v.anchor, most: l.most, unset: l.unset, masked: l.masked, certainty: l.certainty, frame: l.frame}
	found, ok := s.known[e]
	if !ok {
		found = s.readEntries(v, l)
		s.known[e] = found
	}
	targets := found.targets
	if len(targets) == 0 {
		return nil, unknown
	}
	addr, least := uint64(v.off), minEntries
	t := &table{loose: v.form == element && s.isLoose(addr, targets), targets: targets, holes: found.holes, check: noCheck, sources: []uint64{addr}}
	switch {
	case s.isWritten(addr): // it is read up to where code names one of its entries, be it the second
		t.targets, t.loose, least = s.withLabels(targets), true, 1
	case found.never > 0 || found.moved:
		t.targets = union(targets, nil)
	default:
		t.indexed, t.check = true, l.check
	}
	switch n := len(targets); {
	case t.targets == nil:
	case l.certainty == exact && uint64(n+found.never) == l.most+1 && s.isLonger(v, l.most+1):
		return s.readAt(v, unlimited(l.frame))
	case uint64(n+found.never) == l.most+1 && l.guess:
		return t, exact
	case l.certainty == open && n >= least && !found.goesOn:
		return t, open
	}
	return nil, unknown
}

// isLonger says whether a table seems to go on with entry i, though its index was compared with less: what was compared
// may have changed since, in memory that others write.
func (s *resolver) isLonger(v value, i uint64) bool {
	for {
		at := uint64(v.off) + i*uint64(v.scale)
		addr, _, ok := s.entryAt(at, v)
		if s.mentions.has(at) || !ok && !s.ends(addr) {
			return false
		}
		if ok {
			return true
		}
		i++
	}
}

// beginsTable says whether the word at v.off may be a table's first: it leads to code.
func (s *resolver) beginsTable(v value) bool {
	_, i, _ := s.entryAt(uint64(v.off), v)
	return i >= 0
}

// isWritten says whether the program can write where the table lies: it may hold other labels then
// than those that the file has there.
func (s *resolver) isWritten(addr uint64) bool {
	in := s.im.SectionAt(addr)
	return in != nil && in.Writable && !strings.HasPrefix(in.Name, ".data.rel.ro") // which the loader protects
}

// withLabels returns some targets and all that may be a label of the routine; nil, if those are more
// than any routine has.
func (s *resolver) withLabels(targets []int) []int {
	const most = 1024
	if s.labels == nil {
		s.labels = []int{}
		s.eachLabel(s.d, func(i int) bool {
			if s.inside(s.d, i) >= 0 {
				s.labels = append(s.labels, i)
			}
			return len(s.labels) > most
		})
	}
	if len(s.labels) > most {
		return nil
	}
	return union(targets, s.labels)
}

// isLoose says whether a table of addresses, or one of its targets, may be known to others than the
// jumps through it, as labels are, and none of a switch.
func (s *resolver) isLoose(addr uint64, targets []int) bool {
	if s.im.PIE { // switches have tables of distances there
		return true
	}
	return s.taken.has(addr) || s.pointedTo.has(addr) || slices.ContainsFunc(targets, func(i int) bool { return s.taken.has(s.insns[i].Addr) })
}

// readEntries returns where the entries lead, up to the first that does not lead into the routine.
func (s *resolver) readEntries(v value, l limit) (e entries) {
	if l.certainty == open && !l.masked {
		v.off, e.moved = s.beginning(v)
	}
	another := false
	for i := uint64(0); i <= l.most; i++ {
		at := uint64(v.off) + i*uint64(v.scale)
		addr, to, ok := s.entryAt(at, v)
		isFunctionTable := v.size == 8 && to == s.d.entry // no label
		isNamed := len(e.targets) > 0 && s.mentions.has(at)
		another = another || isNamed && s.beginsAnother(v, at)
		if l.certainty == open && ((isNamed || another) && !ok && !s.isEnd(s.d, l.frame, addr) || isFunctionTable) {
			e.goesOn = l.masked && s.goesOn(v, l, i)
			return e
		}
		switch {
		case len(e.targets) == 0 && i < mostLess && s.isBefore(v, at, to, ok):
			e.never++
		case i&l.unset != 0:
			e.never++
			if ok {
				e.holes = append(e.holes, to)
			}
		case ok:
			e.targets = append(e.targets, to)
		case s.isEnd(s.d, l.frame, addr):
			e.never++
		default:
			e.goesOn = to >= 0 && s.isUnexplained(to) || l.certainty == open && (s.ends(addr) || s.goesOn(v, l, i+1))
			return e
		}
	}
	if l.unset != 0 && !e.goesOn {
		e.holes = append(e.holes, s.beyond(v, l.most+1)...)
	}
	e.goesOn = l.certainty == open && !l.guess
	return e
}

// beginning returns where a table seems to begin of which no length is known, and whether that is before v.off: the
// least index may be negative.
func (s *resolver) beginning(v value) (off int64, moved bool) {
	if v.size == 4 && !v.anchoredElsewhere() {
		return min(v.off, v.anchor), v.off > v.anchor
	}
	off = v.off
	for range mostLess {
		if _, _, ok := s.entryAt(uint64(off-int64(v.scale)), v); !ok {
			break
		}
		off -= int64(v.scale)
	}
	return off, off != v.off
}

// anchoredElsewhere says whether the entries are distances from another place than where the table begins.
func (v value) anchoredElsewhere() bool {
	const most = mostLess * 8
	return v.size == 4 && (v.anchor > v.off+most || v.off > v.anchor+most)
}

// mostLess is how many entries may lie before those of the least index: what compilers subtract from an index that is
// known not to be less, they take from the table's address.
const mostLess = 16

// isBefore says whether an entry at the beginning, which leads to instruction i and if leads says so into the routine,
// lies before that of the least index: before the place from which the entries are distances, or it leads neither into
// the routine nor, as what a table of functions holds, to the beginning of another.
func (s *resolver) isBefore(v value, at uint64, i int, leads bool) bool {
	if v.size == 4 && !v.anchoredElsewhere() {
		return at < uint64(v.anchor)
	}
	return !leads && (i < 0 || s.pieces[s.pieceOf[i]].first != i)
}

// beginsAnother says whether another table of distances from itself seems to begin at an entry of one: its entries
// lead to code.
func (s *resolver) beginsAnother(v value, at uint64) bool {
	const enough = 2 // entries: the next table may be short, or have holes
	v.anchor = int64(at)
	for i := range uint64(enough) {
		if _, to, _ := s.entryAt(at+i*uint64(v.scale), v); to < 0 {
			return false
		}
	}
	return v.size == 4
}

// beyond returns where the entries from i on lead that no mask lets a jump come to, as far as they lead into
// the routine.
func (s *resolver) beyond(v value, i uint64) (list []int) {
	for ; i < maxEntries; i++ {
		at := uint64(v.off) + i*uint64(v.scale)
		_, to, ok := s.entryAt(at, v)
		if !ok || s.mentions.has(at) {
			break
		}
		list = append(list, to)
	}
	return list
}

// ends says whether a part of the routine ends at an address: there compilers have an index lead that is none of
// the cases, where the source says that there are no others.
func (s *resolver) ends(addr uint64) bool {
	return slices.ContainsFunc(s.d.pieces, func(p int) bool { return s.pieces[p].Hi == addr })
}

// goesOn says whether a table of which it is not known how long it is seems to go on at entry i, behind one
// that leads nowhere or that has an address for itself: one of the next few leads into the routine, too.
func (s *resolver) goesOn(v value, l limit, i uint64) bool {
	const few = 16
	in := s.im.SectionAt(uint64(v.off))
	for end := i + few; in != nil && i <= l.most && i < end; i++ {
		at := uint64(v.off) + i*uint64(v.scale)
		if !l.masked && s.mentions.has(at) || at-in.Addr >= uint64(len(in.Data)) {
			return false
		}
		if _, _, ok := s.entryAt(at, v); ok {
			return true
		}
	}
	return false
}

// entryAt reads one entry of a table and returns the address and the instruction that it leads to, -1
// if to none, and whether that is in the routine, or in a part that becomes the routine's by that.
func (s *resolver) entryAt(at uint64, v value) (addr uint64, i int, ok bool) {
	addr, ok = s.wordAt(at, v.size, v.form == element)
	if !ok {
		return 0, -1, false
	}
	if v.form == target {
		addr += uint64(v.anchor)
	}
	i = s.find(addr)
	return addr, i, s.inside(s.d, i) >= 0 || i >= 0 && s.isOrphan(i)
}

// wordAt reads what memory holds at an address, of 4 bytes with the sign, or of 8: a whole address
// has to be one that the loader relocates, where it does.
func (r *recovery) wordAt(at uint64, size uint8, whole bool) (uint64, bool) {
	if size == 8 {
		if to, relocated := r.im.Relocations()[at]; relocated {
			return to, true
		}
	}
	b := r.im.Bytes(at, at+uint64(size))
	switch {
	case b == nil || size == 8 && whole && r.im.PIE:
		return 0, false
	case size == 8:
		return binary.LittleEndian.Uint64(b), true
	}
	return uint64(int64(int32(binary.LittleEndian.Uint32(b)))), true
}
