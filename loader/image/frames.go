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
	entries, err := readFrames(s.Data, s.Addr)
	if err != nil {
		return err
	}
	calls := callSiteReader{image: im}
	ranges := make([]Range, 0, len(entries))
	for _, e := range entries {
		if e.personality != 0 && !slices.Contains(im.Personalities, e.personality) {
			im.Personalities = append(im.Personalities, e.personality)
		}
		text := im.SectionAt(e.Lo)
		if text == nil || !text.Exec || isStubs(text.Name) ||
			e.Hi > text.Addr+uint64(len(text.Data)) {
			continue
		}
		if e.Fault == "" && e.lsda != 0 {
			e.Calls, e.Fault = calls.read(e.lsda, e.Range)
		}
		if e.Fault != "" {
			e.Rows, e.Calls = nil, nil
		}
		ranges = append(ranges, e.Range)
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
	Range
	lsda             uint64 // address of the language-specific data area, 0 if there is none
	personality      uint64 // of the personality routine, 0 if there is none or memory holds it
	firstRow, rowEnd int    // its rows in frameReader.rows
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

// A frameReader reads the entries of .eh_frame.
type frameReader struct {
	data    []byte
	addr    uint64
	common  map[uint64]*commonEntry // by offset
	entries []frameEntry
	rows    []Row
}

// readFrames reads the frame description entries of a section that is loaded at addr. An entry
// whose code cannot be located is passed over; an entry that is located, but not understood, is
// there with the fault. Time and memory are linear in the length of data.
func readFrames(data []byte, addr uint64) ([]frameEntry, error) {
	const perEntry, perRow = 40, 9 // bytes, as programs have them
	r := frameReader{
		data: data, addr: addr, common: map[uint64]*commonEntry{},
		entries: make([]frameEntry, 0, len(data)/perEntry), rows: make([]Row, 0, len(data)/perRow),
	}
	for at := uint64(0); at+4 <= uint64(len(data)); {
		body, err := r.record(at)
		if err != nil {
			return nil, err
		}
		next := uint64(len(body.data))
		if body.more() {
			idAt := uint64(body.at)
			if id := body.uint(4); id == 0 && !body.failed {
				r.common[at] = readCommon(body)
			} else { // how far back its common entry is
				r.readEntry(body, r.common[idAt-id])
			}
		}
		at = next
	}
	for i := range r.entries {
		e := &r.entries[i]
		e.Rows = r.rows[e.firstRow:e.rowEnd:e.rowEnd]
	}
	return r.entries, nil
}

// record returns a cursor over the record at offset at, set behind its length. It is empty for a
// terminator.
func (r *frameReader) record(at uint64) (cursor, error) {
	const extended = 0xffffffff
	c := cursor{data: r.data, at: int(at), addr: r.addr}
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
		p := frameProgram{cursor: body, common: c, state: unwindState{CFA{Reg: Undefined}, RAOther}}
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

// readEntry reads a frame description entry; body is set behind the pointer to its common entry.
func (r *frameReader) readEntry(body cursor, common *commonEntry) {
	if common == nil {
		return
	}
	e := frameEntry{firstRow: len(r.rows), rowEnd: len(r.rows)}
	e.Lo = body.pointer(common.codePointer)
	e.Hi = e.Lo + body.pointer(common.codePointer&formatMask)
	if body.failed || e.Hi <= e.Lo {
		return
	}
	e.Signal, e.Fault, e.personality = common.signal, common.fault, common.personality
	if common.sized {
		augmentation := body.take(body.uleb())
		e.lsda = augmentation.pointer(common.lsdaPointer)
		if augmentation.failed {
			e.Fault = "cannot read augmentation data"
		}
	}
	if e.Fault == "" {
		p := frameProgram{cursor: body, common: common, state: common.initial, lo: e.Lo, hi: e.Hi,
			loc: e.Lo, rows: r.rows}
		e.Fault = p.run()
		p.flush(e.Hi)
		if r.rows = p.rows; e.Fault == "" {
			e.rowEnd = len(r.rows)
		}
	}
	r.entries = append(r.entries, e)
}
