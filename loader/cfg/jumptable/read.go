package jumptable

import (
	"encoding/binary"
	"slices"
	"strings"

	"wpptrace/loader/cfg/absint"
)

// readAt reads the entries of the table at v.off. A table has to be read whole; more targets than
// it has do no harm.
func (s *reader) readAt(v absint.Value, l limit) (*Table, certainty) {
	found, l := s.entriesWithin(v, l)
	s.leadsOutside = s.leadsOutside || found.leadsOutside
	targets, addr := found.targets, uint64(v.Off)
	isWritten, isFull := s.isWritten(addr), found.full && l.guess
	if len(targets) == 0 || isWritten && (v.Form == absint.Target || s.addsToLabels()) ||
		v.Form == absint.Element && !s.flow.in.Image.PIE && (addr%8 != 0 || v.Scale%8 != 0) {
		return nil, unknown
	}
	t := &Table{loose: s.isLoose(v, targets), Targets: targets, Unused: found.unused,
		Check: absint.NoCheck, sources: []uint64{addr}}
	least := minEntries
	switch {
	case isWritten: // it is read up to where code names one of its entries, perhaps the second
		t.Targets, t.loose, least = s.withLabels(targets), true, 1
	case v.Form == absint.Element && !isFull:
		// nobody knows how many, but all that it may hold are addresses that data holds
		t.Targets = s.withLabels(targets)
		if s.holdsLabels(v) { // in records, with other data between
			least = 1
		}
	case found.skips:
		t.Targets = union(targets, nil)
	default:
		t.Indexed, t.Check = true, l.check
	}
	switch {
	case t.Targets == nil:
	case isFull:
		return t, exact
	case l.certainty == open && len(targets) >= least && !found.goesOn:
		return t, open
	}
	return nil, unknown
}

// entriesWithin returns where the entries of the table at v.off lead, and by which limit, for one
// that does not hold is none.
func (s *reader) entriesWithin(v absint.Value, l limit) (entries, limit) {
	if l.negative && !s.isOwnAnchor(v) {
		l = unlimited(l.frame)
	}
	found := s.entriesOf(v, l)
	if found.full && l.certainty == exact && s.isLonger(v, l) {
		l = unlimited(l.frame)
		found = s.entriesOf(v, l)
	}
	return found, l
}

// entriesOf returns where the entries of the table at v.off lead, and remembers it.
func (s *reader) entriesOf(v absint.Value, l limit) entries {
	e := extent{form: v.Form, scale: v.Scale, size: v.Size, addr: v.Off, anchor: v.Anchor, limit: l}
	e.check, e.negative, e.reread = absint.NoCheck, false, false
	found, ok := s.known[e]
	if !ok {
		found = s.readEntries(v, l)
		s.known[e] = found
	}
	return found
}

// isLonger says whether a table seems to go on behind the last entry that its bound lets in: what
// was compared may have changed since, in memory that others write. Where it was read once more, an
// entry that code names may be the table's own.
func (s *reader) isLonger(v absint.Value, l limit) bool {
	for i := l.most + 1; ; i++ {
		n := s.entryNo(v, i)
		isAnothers := s.flow.in.Code.IsNamed(n.at) &&
			(!l.reread || s.isOwnAnchor(v) && s.beginsAnother(v, n.at))
		if isAnothers || !n.inside && !slices.Contains(s.flow.in.Ends, n.addr) {
			return false
		}
		if n.inside {
			return true
		}
	}
}

// beginsTable says whether the word at v.off may be a table's first: it leads to code.
func (s *reader) beginsTable(v absint.Value) bool {
	return s.entryNo(v, 0).to >= 0
}

// isWritten says whether the program can write where the table lies: it may hold other labels then
// than those that the file has there.
func (s *reader) isWritten(addr uint64) bool {
	in := s.flow.in.Image.SectionAt(addr)
	// which the loader protects
	return in != nil && in.Writable && !strings.HasPrefix(in.Name, ".data.rel.ro")
}

// holdsLabels says whether more than one of the first words of a table of addresses leads into the
// routine, and none to where one is entered.
func (s *reader) holdsLabels(v absint.Value) bool {
	labels := 0
	for i := range uint64(mostLess) {
		n := s.entryNo(v, i)
		if i > 0 && s.flow.in.Code.IsNamed(n.at) {
			break
		}
		switch {
		case s.flow.in.Code.IsEntry(n.to): // a record of functions, as most are
			return false
		case s.flow.in.Code.Inside(n.to) >= 0:
			labels++
		}
	}
	return labels >= minEntries
}

// addsToLabels says whether the routine adds distances that memory holds to what may be a label:
// what comes of it may be stored in a table of labels, and is no label that data holds.
func (s *reader) addsToLabels() bool {
	if s.adds == nil {
		isSum := func(v absint.Value) bool {
			return v.Form == absint.Target && !(v.Base == v.AnchorBase && s.isOwnAnchor(v))
		}
		adds := false
		for b := range s.flow.in.Blocks {
			s.flow.run([]int{b}, func(m *absint.Machine) absint.Value {
				adds = adds || slices.ContainsFunc(m.Regs[:], isSum) ||
					slices.ContainsFunc(m.Memory.Cells,
						func(c absint.Cell) bool { return isSum(c.Value) })
				return absint.Value{}
			})
		}
		s.adds = &adds
	}
	return *s.adds
}

// withLabels returns some targets and all that may be a label of the routine; nil, if those are
// more than any routine has.
func (s *reader) withLabels(targets []int) []int {
	if s.labels == nil {
		s.labels = []int{}
		for i := range s.flow.in.Labels {
			if s.flow.in.Code.Inside(i) >= 0 {
				s.labels = append(s.labels, i)
			}
			if len(s.labels) > MaxLabels {
				break
			}
		}
	}
	if len(s.labels) > MaxLabels {
		return nil
	}
	return union(targets, s.labels)
}

// isLoose says whether a table, or one of its targets, may be known to others than the jumps
// through it, as labels are, and none of a switch.
func (s *reader) isLoose(v absint.Value, targets []int) bool {
	switch {
	case v.Form == absint.Target:
		return !s.isOwnAnchor(v)
	case s.flow.in.Image.PIE: // switches have tables of distances there
		return true
	}
	return s.flow.in.Code.IsPointedTo(uint64(v.Off)) || slices.ContainsFunc(targets,
		func(i int) bool { return s.flow.in.Code.IsTaken(i) })
}

// isOwnAnchor says whether the entries are distances from where the table begins, as a switch has
// them: from a place in the data, for others are distances from a label, or from where all are.
func (s *reader) isOwnAnchor(v absint.Value) bool {
	if v.Size != 4 {
		return false
	}
	in := s.flow.in.Image.SectionAt(uint64(v.Anchor))
	return v.Anchor == v.Off || in != nil && !in.Exec &&
		in == s.flow.in.Image.SectionAt(uint64(v.Off))
}

// readEntries returns where the entries lead, as far as they lead into the routine: those of a
// table of distances from itself from its beginning, whatever place in it the code names, and
// through holes. Where it is not known where a table of distances from a label ends, its
// surroundings are read instead.
func (s *reader) readEntries(v absint.Value, l limit) entries {
	isOwn := s.isOwnAnchor(v)
	isEndless := v.Form == absint.Target && !isOwn && l.certainty == open
	if isEndless && !l.guess {
		return s.readAround(v, l)
	}
	skips := isOwn && v.Off > v.Anchor
	if skips {
		before := uint64(v.Off-v.Anchor) / uint64(v.Scale)
		v.Off -= int64(before * uint64(v.Scale))
		l.most, l.unset = l.most+before, 0
	}
	e := s.readOn(v, l)
	if isEndless && !e.full {
		return s.readAround(v, l)
	}
	e.skips = e.skips || skips
	return e
}

// readOn reads the entries from the first on, up to the last or the one that ends the table.
func (s *reader) readOn(v absint.Value, l limit) (e entries) {
	isOwn, isOpen, another := s.isOwnAnchor(v), l.certainty == open, false
	for i := uint64(0); i <= l.most; i++ {
		n := s.entryNo(v, i)
		another = another || isOwn && isOpen && len(e.targets) > 0 && s.beginsAnother(v, n.at)
		switch {
		case len(e.targets) == 0 && isOwn && n.at < uint64(v.Anchor):
			e.skips = true
		case len(e.targets) == 0 && isOpen && v.Form == absint.Element && i < mostLess &&
			s.isBefore(n):
			e.skips = true
		case i&l.unset != 0:
			e.skips = true
			if n.inside {
				e.unused = append(e.unused, n.to)
			}
		case isOpen && v.Form == absint.Element && len(e.targets) > 0 &&
			s.flow.in.Code.IsNamed(n.at) && s.flow.in.Code.IsDoubtful(n.to):
			s.contested = append(s.contested, n.to)
			e.goesOn = true // to what may be another's, whose table seems to begin here
			return e
		case n.inside && !(isOpen && v.Form == absint.Element && s.flow.in.Code.IsEntry(n.to) &&
			s.flow.in.Code.Inside(n.to) >= 0):
			e.targets = append(e.targets, n.to)
		case s.flow.in.Code.IsEnd(l.frame, n.addr):
			e.skips = true
		default:
			e.goesOn = s.mayGoOn(v, l, n, e.targets, another)
			e.leadsOutside = !isOpen && !s.isBehind(v, n) &&
				(len(e.targets) > 0 || s.comesBack(v, l, i)) && s.leadsAstray(n)
			return e
		}
	}
	e.full = true
	if l.unset != 0 {
		e.unused = append(e.unused, s.beyond(v, l.most+1)...)
	}
	e.goesOn = isOpen && !l.guess
	return e
}

// readAround returns where all words lead, in a table of distances from a label of which it is not
// known where it begins and ends, and on both sides of it: what the program jumps by is among them,
// and what else leads into the routine does no harm. The place that is known has to be in it: none
// that an index which begins far above 0 makes of the table's.
func (s *reader) readAround(v absint.Value, l limit) (e entries) {
	in := s.flow.in.Image.SectionAt(uint64(v.Off))
	if in == nil || in.Exec || !s.isNearTable(v) {
		return e
	}
	e.skips = true
	step := int64(v.Size)
	if v.Scale%v.Size != 0 { // packed
		step = int64(v.Scale)
	}
	e.goesOn = !s.readTowards(&e, v, step, l) || !s.readTowards(&e, v, -step, l)
	return e
}

// readTowards adds where the words in one direction lead, up to a long gap that lies, or leads,
// beyond what code names: within one object, a table may be filled where it has no label. It
// answers false if not all were read, or one leads to what may be a cold part of the routine.
func (s *reader) readTowards(e *entries, v absint.Value, step int64, l limit) bool {
	const longGap = 256 // words
	in := s.flow.in.Image.SectionAt(uint64(v.Off))
	gap, named := 0, false
	for at := uint64(v.Off); at-in.Addr < uint64(len(in.Data)) &&
		(gap < longGap || !named); at += uint64(step) {
		s.flow.in.Steps.Add(-1)
		n := s.entryAt(at, v)
		switch {
		case len(e.targets) == absint.MaxEntries, s.flow.in.Steps.Load() <= 0:
			return false
		case s.flow.in.Code.Inside(n.to) >= 0 || n.inside && gap == 0:
			e.targets, gap, named = append(e.targets, n.to), 0, false
			continue
		case n.inside, n.to >= 0 && !s.flow.in.Code.IsEnd(l.frame, n.addr) &&
			s.flow.in.Code.MayBePart(n.to, gap == 0):
			return false
		}
		gap++
		named = named || s.flow.in.Code.IsNamed(at)
	}
	return true
}

// isNearTable says whether a table that holds distances from a label seems to begin at v.off or, if
// the least index is not 0, a little behind it.
func (s *reader) isNearTable(v absint.Value) bool {
	for i := range uint64(mostLess) {
		n := s.entryNo(v, i)
		if n.inside && (i == 0 || !s.flow.in.Image.PIE) ||
			s.flow.in.Image.PIE && s.flow.in.Code.IsNamed(n.at) {
			return true
		}
	}
	return false
}

// mostLess is how many entries may lie before those of the least index: what compilers subtract
// from an index that is known not to be less, they take from the table's address.
const mostLess = 16

// isBefore says whether an entry at the beginning may lie before that of the least index: it leads
// neither into the routine, nor to what may yet become a part of it, nor, as what a table of
// functions holds, to the beginning of another.
func (s *reader) isBefore(n entry) bool {
	if n.inside || n.to < 0 {
		return !n.inside
	}
	return s.flow.in.Code.IsAmidFunction(n.to)
}

// beginsAnother says whether another table of distances from itself seems to begin at an entry of
// one: code names it, and its entries lead to code.
func (s *reader) beginsAnother(v absint.Value, at uint64) bool {
	const enough = 2 // entries: the next table may be short, or have holes
	if !s.flow.in.Code.IsNamed(at) {
		return false
	}
	v.Anchor = int64(at)
	for i := range uint64(enough) {
		if s.entryAt(at+i*uint64(v.Scale), v).to < 0 {
			return false
		}
	}
	return true
}

// beyond returns where the entries from i on lead that no mask lets a jump come to, as far as they
// lead into the routine.
func (s *reader) beyond(v absint.Value, i uint64) (list []int) {
	for end := i + absint.MaxEntries; i < end; i++ {
		n := s.entryNo(v, i)
		if !n.inside || s.flow.in.Code.IsNamed(n.at) {
			break
		}
		list = append(list, n.to)
	}
	return list
}

// isBehind says whether an entry lies behind the table, where what another one's code names begins,
// or another section.
func (s *reader) isBehind(v absint.Value, n entry) bool {
	return n.index > 0 && s.flow.in.Code.IsNamed(n.at) ||
		s.flow.in.Image.SectionAt(n.at) != s.flow.in.Image.SectionAt(uint64(v.Off))
}

// comesBack says whether an entry behind entry i leads into the routine. Where none does the table
// is another's now: tools that rewrite a program leave its old code there, which does not run.
func (s *reader) comesBack(v absint.Value, l limit, i uint64) bool {
	for i++; i <= min(l.most, absint.MaxEntries); i++ {
		if s.entryNo(v, i).inside {
			return true
		}
	}
	return false
}

// leadsAstray says whether an entry that does not lead into the routine leads to code of none, or
// amid that of another, which is noted then.
func (s *reader) leadsAstray(n entry) bool {
	if n.to < 0 {
		in := s.flow.in.Image.SectionAt(n.addr)
		return in != nil && in.Exec && !slices.Contains(s.flow.in.Ends, n.addr)
	}
	if s.flow.in.Code.IsEntry(n.to) {
		return false
	}
	s.contested = append(s.contested, n.to)
	return true
}

// mayGoOn says whether a table may go on at an entry, which is none that leads into the routine,
// behind some targets and perhaps another table's beginning.
func (s *reader) mayGoOn(v absint.Value, l limit, n entry, targets []int, another bool) bool {
	switch {
	case s.flow.in.Code.IsDoubtful(n.to): // it may be a cold case
		s.contested = append(s.contested, n.to)
		return true
	case n.inside: // the routine's beginning is a label only where there is no frame yet
		return l.frame == absint.EntryCFA
	case l.certainty != open || another:
		return false
	case s.isOwnAnchor(v) && s.flow.in.Code.IsNamed(n.at) && !s.flow.in.Code.IsBoundary(n.addr):
		// compilers leave no gaps in these
		return false
	}
	return s.resumes(v, l, n, targets)
}

// resumes says whether a table of which it is not known how long it is may go on behind an entry
// that leads nowhere: one of the next leads into the routine, where none of the targets is, before
// any that code names. Of a table of addresses, all but the routine's beginning is known without
// that.
func (s *reader) resumes(v absint.Value, l limit, n entry, targets []int) bool {
	in := s.flow.in.Image.SectionAt(uint64(v.Off))
	if in == nil {
		return false
	}
	for i, last := n.index+1, min(l.most, n.index+absint.MaxEntries); i <= last; i++ {
		n := s.entryNo(v, i)
		switch {
		case s.flow.in.Code.IsNamed(n.at) || n.at-in.Addr >= uint64(len(in.Data)):
			return false
		case v.Form == absint.Element:
			if n.to == s.flow.in.Entry && l.frame == absint.EntryCFA {
				return true
			}
		case n.inside && !slices.Contains(targets, n.to):
			return true
		}
	}
	return false
}

// An entry is one of a table's, and where it leads.
type entry struct {
	index  uint64 // if it was read by that
	at     uint64 // its own address
	addr   uint64 // 0 if it is none that a table may hold
	to     int    // the instruction at addr, or -1
	inside bool   // that is in the routine, or in a part that becomes the routine's by that
}

// entryNo reads one of the entries of the table at v.off.
func (s *reader) entryNo(v absint.Value, index uint64) entry {
	n := s.entryAt(uint64(v.Off)+index*uint64(v.Scale), v)
	n.index = index
	return n
}

// entryAt reads the entry at an address of a table that has such as v.
func (s *reader) entryAt(at uint64, v absint.Value) entry {
	n := entry{at: at, to: -1}
	addr, ok := s.wordAt(at, v.Size, v.Form == absint.Element)
	if !ok {
		return n
	}
	if v.Form == absint.Target {
		addr += uint64(v.Anchor)
	}
	n.addr, n.to = addr, s.flow.in.Code.Find(addr)
	n.inside = s.flow.in.Code.Inside(n.to) >= 0 || n.to >= 0 && s.flow.in.Code.Joins(n.to)
	return n
}

// wordAt reads what memory holds at an address, of 4 bytes with the sign, or of 8: a whole address
// has to be one that the loader relocates, where it does.
func (s *reader) wordAt(at uint64, size uint8, whole bool) (uint64, bool) {
	if size == 8 {
		if to, relocated := s.flow.in.Image.Relocations().At(at); relocated {
			return to, true
		}
	}
	b := s.flow.in.Image.Bytes(at, at+uint64(size))
	switch {
	case b == nil || size == 8 && whole && s.flow.in.Image.PIE:
		return 0, false
	case size == 8:
		return binary.LittleEndian.Uint64(b), true
	}
	return uint64(int64(int32(binary.LittleEndian.Uint32(b)))), true
}
