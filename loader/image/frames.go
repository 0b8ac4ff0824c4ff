package image

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// readFrames reads .eh_frame and the language-specific data that it refers to.
func (im *Image) readFrames() error {
	s := im.Section(".eh_frame")
	if s == nil {
		return nil
	}
	f := &frames{data: s.Data, addr: s.Addr}
	calls := callSiteReader{image: im}
	ranges := make([]Range, 0, f.count())
	var rows []Row
	err := f.each(func(at uint64, e frameEntry) {
		r := Range{Lo: e.lo, Hi: e.hi, Signal: e.common.signal, frames: f, at: uint32(at)}
		var more details
		rows, more.fault = e.rows(rows[:0])
		if at := e.common.personality; at != 0 && !slices.Contains(im.Personalities, at) {
			im.Personalities = append(im.Personalities, at)
		}
		text := im.SectionAt(r.Lo)
		if text == nil || !text.Exec || isStubs(text.Name) ||
			r.Hi > text.Addr+uint64(len(text.Data)) {
			return
		}
		if more.fault == "" && e.lsda != 0 {
			more.calls, more.fault = calls.read(e.lsda, r)
		}
		if more.fault == "" {
			r.first = rows[0].CFA
		}
		if more.fault != "" || len(more.calls) > 0 {
			kept := more
			r.more = &kept
		}
		ranges = append(ranges, r)
	})
	if err != nil {
		return err
	}
	im.Ranges = withoutOverlap(ranges)
	return nil
}

// withoutOverlap sorts ranges and drops those that begin inside another.
func withoutOverlap(ranges []Range) []Range {
	slices.SortStableFunc(ranges, func(a, b Range) int { return cmp.Compare(a.Lo, b.Lo) })
	out := ranges[:0]
	for _, r := range ranges {
		if len(out) == 0 || r.Lo >= out[len(out)-1].Hi {
			out = append(out, r)
		}
	}
	return out
}

// A frameEntry is a frame description entry as it is in the file.
type frameEntry struct {
	lo, hi  uint64 // code
	common  *commonEntry
	lsda    uint64 // address of the language-specific data area, 0 if there is none
	fault   string
	program cursor // its call frame instructions
}

// A commonEntry is a common information entry: what many frame description entries share.
type commonEntry struct {
	codeAlign   uint64
	dataAlign   int64
	returnReg   uint64
	codePointer pointerEncoding // of addresses of code
	lsdaPointer pointerEncoding
	personality uint64
	sized       bool // entries say how long their augmentation data is
	signal      bool
	initial     unwindState
	fault       string
}

// frames are the entries of .eh_frame, or rows that stand for them.
type frames struct {
	data   []byte
	addr   uint64                  // where it is loaded
	common map[uint64]*commonEntry // by offset
	rows   []Row
}

// eachRecord calls back with the offset of each record, and a cursor behind its length.
func (f *frames) eachRecord(visit func(at uint64, body cursor)) error {
	for at := uint64(0); at+4 <= uint64(len(f.data)); {
		body, err := f.record(at)
		if err != nil {
			return err
		}
		next := uint64(len(body.data))
		if body.more() {
			visit(at, body)
		}
		at = next
	}
	return nil
}

// count is how many entries there are at most.
func (f *frames) count() (n int) {
	// what is wrong is found when they are read
	_ = f.eachRecord(func(uint64, cursor) { n++ })
	return n
}

// each reads the frame description entries. An entry whose code cannot be located is passed over;
// an entry that is located, but not understood, is there with the fault. Time is linear in the
// length of the section.
func (f *frames) each(visit func(at uint64, e frameEntry)) error {
	f.common = map[uint64]*commonEntry{}
	return f.eachRecord(func(at uint64, body cursor) {
		idAt := uint64(body.at)
		if id := body.uint(4); id == 0 && !body.failed {
			f.common[at] = readCommon(body)
		} else if e, ok := readEntry(body, f.common[idAt-id]); ok { // how far back that is
			visit(at, e)
		}
	})
}

// entryAt reads the entry that each has found at an offset.
func (f *frames) entryAt(at uint64) frameEntry {
	body, err := f.record(at)
	if err != nil {
		return frameEntry{fault: err.Error()} // each has read it
	}
	idAt := uint64(body.at)
	e, _ := readEntry(body, f.common[idAt-body.uint(4)])
	return e
}

// record returns a cursor over the record at offset at, set behind its length. It is empty for a
// terminator.
func (f *frames) record(at uint64) (cursor, error) {
	const extended = 0xffffffff
	c := cursor{data: f.data, at: int(at), addr: f.addr}
	length := c.uint(4)
	if length == extended {
		length = c.uint(8)
	}
	body := c.take(length)
	if body.failed {
		return body, fmt.Errorf(".eh_frame: record at %#x runs past the end of the section", at)
	}
	return body, nil
}

// readCommon reads a common entry; body is set behind its id.
func readCommon(body cursor) *commonEntry {
	c := &commonEntry{lsdaPointer: omitted}
	version := body.byte()
	augmentation := body.string()
	c.codeAlign = body.uleb()
	c.dataAlign = body.sleb()
	if version == 1 {
		c.returnReg = uint64(body.byte())
	} else {
		c.returnReg = body.uleb()
	}
	c.readAugmentation(&body, augmentation)
	if version != 1 && version != 3 {
		c.fault = fmt.Sprintf("unwind information of version %d", version)
	}
	if c.fault == "" {
		p := frameProgram{cursor: body, common: c, state: unwindState{cfa: CFA{Reg: Undefined},
			ra: RAOther}}
		c.fault = p.run()
		c.initial = p.state
	}
	return c
}

func (c *commonEntry) readAugmentation(body *cursor, augmentation string) {
	letters, sized := strings.CutPrefix(augmentation, "z")
	if c.sized = sized; !sized {
		if augmentation != "" {
			c.fault = fmt.Sprintf("unknown augmentation %q", augmentation)
		}
		return
	}
	known := body.take(body.uleb())
	for _, letter := range letters {
		switch letter {
		case 'R':
			c.codePointer = pointerEncoding(known.byte())
		case 'L':
			c.lsdaPointer = pointerEncoding(known.byte())
		case 'P':
			encoding := pointerEncoding(known.byte())
			if at := known.pointer(encoding &^ indirectFlag); encoding&indirectFlag == 0 {
				c.personality = at
			}
		case 'S':
			c.signal = true
		default:
			c.fault = fmt.Sprintf("unknown augmentation %q", augmentation)
			return
		}
	}
	if known.failed {
		c.fault = fmt.Sprintf("cannot read augmentation %q", augmentation)
	}
}

// readEntry reads a frame description entry; body is set behind the pointer to its common entry. It
// answers false where the code cannot be located.
func readEntry(body cursor, common *commonEntry) (e frameEntry, ok bool) {
	if common == nil {
		return e, false
	}
	e.common = common
	e.lo = body.pointer(common.codePointer)
	e.hi = e.lo + body.pointer(common.codePointer&formatMask)
	if body.failed || e.hi <= e.lo {
		return e, false
	}
	e.fault = common.fault
	if common.sized {
		augmentation := body.take(body.uleb())
		e.lsda = augmentation.pointer(common.lsdaPointer)
		if augmentation.failed {
			e.fault = "cannot read augmentation data"
		}
	}
	e.program = body
	return e, true
}

// rows appends the entry's unwind rows to a list, unless something is wrong with them.
func (e *frameEntry) rows(list []Row) (rows []Row, fault string) {
	rows, _, fault = e.rowsAt(list, 0)
	return rows, fault
}

// rowsAt is rows, and says where the caller's frame pointer is at a location.
func (e *frameEntry) rowsAt(list []Row, at uint64) (rows []Row, fp FPRule, fault string) {
	if e.fault != "" {
		return list, fp, e.fault
	}
	p := frameProgram{cursor: e.program, common: e.common, state: e.common.initial, lo: e.lo,
		hi: e.hi, loc: e.lo, rows: list, wanted: at}
	if fault = p.run(); fault != "" {
		return list, fp, fault
	}
	p.flush(e.hi)
	return p.rows, p.fpThere, ""
}

// AppendRows appends the unwind rows of the range to a list. They are sorted by PC, the first is at
// Lo, and adjacent ones differ; there is none with a Fault. They are read anew each time, some 10
// ns for each: who needs them often keeps them.
func (r *Range) AppendRows(list []Row) []Row {
	switch {
	case r.Fault() != "" || r.frames == nil:
		return list
	case r.frames.rows != nil:
		return append(list, r.frames.rows...)
	}
	e := r.frames.entryAt(uint64(r.at))
	list, _ = e.rows(list)
	return list
}

// Unwind returns the row that holds before the instruction at pc, which the range has, and where
// the caller's frame pointer is then; false: it is not known. Cost: about a microsecond.
func (r *Range) Unwind(pc uint64) (row Row, fp FPRule, ok bool) {
	if r.Fault() != "" || r.frames == nil || r.frames.rows != nil {
		return row, fp, false
	}
	e := r.frames.entryAt(uint64(r.at))
	rows, fp, fault := e.rowsAt(nil, pc)
	return RowAt(rows, pc), fp, fault == ""
}

// EntryCFA is the rule that holds at Lo; one that is Undefined with a Fault.
func (r *Range) EntryCFA() CFA {
	if r.Fault() != "" {
		return CFA{Reg: Undefined}
	}
	return r.first
}

// NewRange is a range with these unwind rows, at least one.
func NewRange(lo, hi uint64, rows ...Row) Range {
	return Range{Lo: lo, Hi: hi, frames: &frames{rows: rows}, first: rows[0].CFA}
}
