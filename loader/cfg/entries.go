package cfg

import (
	"encoding/binary"
	"slices"
	"strings"
)

// readAt reads the entries of the table at v.off.
func (s *resolver) readAt(v value, l limit) (*table, certainty) {
	e := extent{v.form, v.scale, v.size, v.off, v.anchor, l.most, l.unset, l.certainty, l.frame}
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
	t := &table{loose: v.form == element && s.isLoose(addr, targets), targets: targets, check: noCheck, sources: []uint64{addr}}
	switch {
	case s.isWritten(addr): // it is read up to where code names one of its entries, be it the second
		t.targets, t.loose, least = s.withLabels(targets), true, 1
	case found.never > 0:
		t.targets = union(targets, nil)
	default:
		t.indexed, t.check = true, l.check
	}
	switch n := len(targets); {
	case t.targets == nil:
	case uint64(n+found.never) == l.most+1 && l.guess:
		return t, exact
	case l.certainty == open && n >= least && !found.goesOn:
		return t, open
	}
	return nil, unknown
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
	for i := uint64(0); i <= l.most; i++ {
		at := uint64(v.off) + i*uint64(v.scale)
		addr, to, ok := s.entryAt(at, v)
		if l.certainty == open && (i > 0 && s.mentions.has(at) || v.size == 8 && to == s.d.entry) {
			break // no label: it is a table of functions
		}
		switch {
		case i&l.unset != 0:
			e.never++
		case ok:
			e.targets = append(e.targets, to)
		case s.isEnd(s.d, l.frame, addr):
			e.never++
		default:
			e.goesOn = to >= 0 && s.isUnexplained(to)
			return e
		}
	}
	return e
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
