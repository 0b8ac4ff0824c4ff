package soundness

import (
	"encoding/binary"
	"slices"

	"wpptrace/internal/parallel"
	"wpptrace/loader/cfg/draft"
	"wpptrace/loader/cfg/sweep"
	"wpptrace/loader/image"
)

// findTaken finds the routines that may be entered through a pointer. What a file says of an
// address is what a linker can: the address itself and a few bytes more (a pointer with a tag), or
// its distance from something else.
func findTaken(r *draft.Program) *distances {
	taken := make([]bool, len(r.Routines))
	for _, d := range r.Routines {
		_, taken[d.ID] = r.File.References.Next(d.Addr,
			min(d.Addr+maxTag+1, r.Code.Pieces[r.Code.FindPiece(d.Addr)].Hi))
	}
	f := &distances{r: r, code: r.Code, taken: taken, lo: r.Code.Pieces[0].Lo,
		size: r.Code.Pieces[len(r.Code.Pieces)-1].Hi - r.Code.Pieces[0].Lo, left: mostLookUps}
	byRoutine := make([]mentioned, len(r.Routines))
	parallel.Both(f.searchSections, func() {
		parallel.Each(len(byRoutine), func(i int) { byRoutine[i] = namedBy(r.File, r.Routines[i]) })
	})
	f.fromOffsetTable(byRoutine)
	f.fromLabels(byRoutine)
	return f
}

// isTaken says whether a routine may be entered through a pointer.
func (f *distances) isTaken(d *draft.Routine) bool {
	// by what is not recovered any may be called
	return f.taken[d.ID] || f.left < 0 || f.r.Survey != nil
}

// maxTag is what a tag adds to a pointer at most: functions are aligned to 16 bytes.
const maxTag = 15

// distances finds routines whose addresses are given as distances.
type distances struct {
	r        *draft.Program
	code     *sweep.Code
	taken    []bool // by draft
	lo, size uint64 // where code lies
	left     int    // look-ups
}

// mostLookUps is ten times what programs need, and takes a second: more is hostile. All routines
// are taken for entered by pointers then.
const mostLookUps = 1 << 23

func (f *distances) note(addr uint64) {
	if addr-f.lo < f.size { // so that nearly all are dealt with inline
		f.take(addr)
	}
}

// take looks for a routine that is entered at addr: where it is, a piece of code begins, which it
// returns.
func (f *distances) take(addr uint64) *sweep.Piece {
	if f.left--; f.left < 0 {
		return nil
	}
	i := f.code.FindPiece(addr)
	if i < 0 || f.code.Pieces[i].Lo != addr || f.code.Pieces[i].First == f.code.Pieces[i].Last {
		return nil
	}
	if id := f.r.RoutineAt(f.code.Pieces[i].First); id >= 0 && f.r.IsKnown(id) {
		f.taken[id] = true
	}
	return &f.code.Pieces[i]
}

// searchSections searches all but unwind data and the code of routines. Nothing else that runs
// meanwhile may write, or read, what f has found, or pieces' inTable.
// A survey is searched once: what is found does not depend on what is recovered of it.
func (f *distances) searchSections() {
	if v := f.r.Survey; v != nil {
		if v.Searched {
			f.left = v.LookUps
			return
		}
		defer func() { v.Searched, v.LookUps = true, f.left }()
	}
	for i := range f.r.File.Image.Sections {
		s := &f.r.File.Image.Sections[i]
		switch end := s.Addr + uint64(len(s.Data)); {
		case s.Exec && !sweep.IsStubs(s):
			// assemblers are given tables amidst code
			f.code.EachUncovered(s, func(lo, hi uint64) { f.search(s, lo, hi) })
		case !sweep.IsUnwindData(s):
			f.search(s, s.Addr, end)
		}
	}
}

// search searches a part of a section.
func (f *distances) search(s *image.Section, lo, hi uint64) {
	if f.r.Survey == nil { // else all routines are taken for entered by pointers
		f.fromBytes(s.Data[lo-s.Addr:hi-s.Addr], lo)
	}
	for base, ok := f.r.File.References.Next(lo,
		hi); ok; base, ok = f.r.File.References.Next(base+1, hi) {
		// a table may begin at each address that is mentioned
		f.fromTable(s.Data[base-s.Addr:hi-s.Addr], base, base)
	}
}

// fromBytes finds distances from the word itself, as in relative pointers, wherever it is: packed
// structures have words at any address. So have they addresses as they are, for which a small
// program may use half a pointer's size; in a position independent file they have relocations.
func (f *distances) fromBytes(data []byte, addr uint64) {
	// of the bytes, for one CPU at a time; of what is kept at a time
	const share, most = 1 << 15, 32
	code := make([][]uint64, min((len(data)+share-1)/share, most))
	for ; len(data) > 0 && f.left >= 0; data, addr = data[min(len(data), share*most):], addr+
		share*most {
		parallel.Each(len(code), func(i int) {
			code[i] = f.leadToCode(code[i][:0], data[min(len(data), i*share):], share,
				addr+uint64(i*share))
		})
		for _, to := range slices.Concat(code...) {
			f.take(to)
		}
	}
}

// leadToCode appends to a list where words lead that begin in the first n bytes, if it is to code.
func (f *distances) leadToCode(code []uint64, data []byte, n int, addr uint64) []uint64 {
	note := func(to uint64) {
		if to-f.lo < f.size {
			code = append(code, to)
		}
	}
	for ; len(data) >= 4 && n > 0; data, addr, n = data[1:], addr+1, n-1 {
		note(addr + distance(data))
		if !f.r.File.Image.PIE {
			note(uint64(binary.LittleEndian.Uint32(data)))
		}
		if len(data) < 8 {
			continue
		}
		word := binary.LittleEndian.Uint64(data)
		note(addr + word)
		if !f.r.File.Image.PIE {
			note(word)
		}
	}
	return code
}

// fromTable finds distances from a base, which is where the table begins, as in relative virtual
// tables, or a label. It goes on as long as words lead to code, stubs and what has no unwind
// information, or to nothing, or not that for long: there may be something else between two of
// them. A word at or behind the next address that may be another table's is that one's: it marks no
// part as one that a table leads to. An address that is mentioned by chance makes a table too
// short.
func (f *distances) fromTable(data []byte, at, base uint64) {
	// words, and words in a row that lead to nothing, or not to code
	const most, mostEmpty, mostElse = 1024, 16, 3
	next := f.nextTable(at, at+most*4)
	// jumps go through tables that instructions name
	jumps := f.r.Survey != nil && f.r.File.InsnReferences.Has(at)
	empty, other := 0, 0
	for range most {
		if len(data) < 4 || f.left < 0 || empty > mostEmpty || other > mostElse {
			return
		}
		empty++
		if to := base + distance(data); to != base {
			empty = 0
			other++
			if s := f.r.File.Image.SectionAt(to); s != nil && s.Exec {
				other = 0
				if p := f.take(to); p != nil && at < next {
					p.InTable = true
				} else if p == nil && at < next && jumps {
					f.r.Survey.Amid.Note(to)
				}
			}
		}
		jumps = jumps && other == 0
		data, at = data[4:], at+4
	}
}

// nextTable returns the first address behind at, and before end, where another table of words may
// begin, or end.
func (f *distances) nextTable(at, end uint64) uint64 {
	for next, ok := f.r.File.References.Next(at+1,
		end); ok; next, ok = f.r.File.References.Next(next+1, end) {
		if (next-at)%4 == 0 {
			return next
		}
	}
	return end
}

// fromLabels finds distances from a place amid code, in tables that the same routine names.
func (f *distances) fromLabels(byRoutine []mentioned) {
	for _, by := range byRoutine {
		for _, base := range by.labels {
			for _, table := range by.tables {
				if f.left--; f.left < 0 {
					return
				}
				s := f.r.File.Image.SectionAt(table)
				f.fromTable(s.Data[table-s.Addr:], table, base)
			}
		}
	}
}

// mentioned is what instructions of a routine name.
type mentioned struct {
	// addresses: amid code, which are not where a function begins; of data, which assemblers put
	// amidst code, too
	labels, tables []uint64
	numbers        []uint64 // of 64 bits
}

func namedBy(f *sweep.File, d *draft.Routine) (by mentioned) {
	note := func(addr uint64) {
		s := f.Image.SectionAt(addr)
		if i := f.Code.FindPiece(addr); s == nil || s.Exec && sweep.IsStubs(s) ||
			i >= 0 && f.Code.Pieces[i].Lo == addr {
			return
		} else if i < 0 {
			by.tables = append(by.tables, addr)
		}
		if s.Exec && !f.IsFunction(addr) {
			by.labels = append(by.labels, addr)
		}
	}
	for _, i := range d.Pieces {
		p := &f.Code.Pieces[i]
		for k := p.First; k < p.Last; k++ {
			sweep.EachOperand(&f.Code.Insns[k], f.Code.Bytes(k), !f.Image.PIE, note)
			if number, size := f.Code.Insns[k].AddressImmediate(f.Code.Bytes(k)); size == 8 {
				by.numbers = append(by.numbers, number)
			}
		}
	}
	slices.Sort(by.labels)
	slices.Sort(by.tables)
	by.labels, by.tables = slices.Compact(by.labels), slices.Compact(by.tables)
	return by
}

func distance(b []byte) uint64 { return uint64(int64(int32(binary.LittleEndian.Uint32(b)))) }

// fromOffsetTable finds distances from the global offset table, as the large code model has them in
// instructions.
func (f *distances) fromOffsetTable(byRoutine []mentioned) {
	bases := sweep.OffsetTables(f.r.File.Image)
	for _, by := range byRoutine {
		for _, number := range by.numbers {
			for _, base := range bases {
				f.note(base + number)
			}
		}
	}
}
