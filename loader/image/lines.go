package image

import (
	"cmp"
	"debug/dwarf"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ErrNoLines says that a file has no line table.
var ErrNoLines = errors.New("no line information")

// Lines maps link-time addresses to source lines, and to the calls that are inlined there. It is
// safe for concurrent use.
type Lines struct {
	files   []string
	rows    []lineRow // sorted by address
	inlined inlinedCalls
}

// A lineRow says what line the code from addr on belongs to.
type lineRow struct {
	addr uint64
	file int32 // index into Lines.files; none behind the end of a sequence
	line int32
}

const noFile = -1

// Lines returns the source lines that .debug_line describes, DWARF 2 to 5, of the file or of its
// debug information under /usr/lib/debug. The first call reads them, about 0.1 s for 10 MB of debug
// information, and keeps that in memory until Release; the error is ErrNoLines when there are none.
func (im *Image) Lines() (*Lines, error) { return im.lines() }

// At returns the source file and line of the code at addr.
func (l *Lines) At(addr uint64) (file string, line int, ok bool) {
	i, _ := slices.BinarySearchFunc(l.rows, addr, func(r lineRow, addr uint64) int {
		if r.addr <= addr {
			return -1
		}
		return 1
	})
	if i == 0 || l.rows[i-1].file == noFile || l.rows[i-1].line == 0 {
		return "", 0, false
	}
	r := l.rows[i-1]
	return l.files[r.file], int(r.line), true
}

// Each calls back with the lines of the code from lo up to hi, in the order of addresses: with each
// as often as it begins there.
func (l *Lines) Each(lo, hi uint64, visit func(file string, line int)) {
	i, found := slices.BinarySearchFunc(l.rows, lo,
		func(r lineRow, addr uint64) int { return cmp.Compare(r.addr, addr) })
	if !found && i > 0 {
		i--
	}
	for ; i < len(l.rows) && l.rows[i].addr < hi; i++ {
		if r := l.rows[i]; r.file != noFile && r.line != 0 {
			visit(l.files[r.file], int(r.line))
		}
	}
}

func (f elfFile) hasLines() bool { return f.debugSection("line") != nil }

// linesOf reads the line tables of a file with the image's debug information.
func (im *Image) linesOf(f elfFile) (lines *Lines, err error) {
	defer func() { // debug/dwarf panics on some hostile files
		if p := recover(); p != nil {
			lines, err = nil, fmt.Errorf("malformed debug information: %v", p)
		}
	}()
	if !f.hasLines() {
		return nil, ErrNoLines
	}
	debug, err := f.openDWARF()
	if err != nil {
		return nil, err
	}
	trouble := f.openSupplement(debug)
	b := lineBuilder{image: im, debug: debug, indexes: map[string]int32{}, tables: map[int64]bool{}}
	for _, u := range debug.units {
		if err := b.addUnit(u.first); err != nil {
			return nil, fmt.Errorf("unit at %#x: %w", u.first, err)
		}
	}
	lines = b.finish()
	lines.inlined.note(trouble)
	lines.inlined.note(b.split.missing())
	return lines, nil
}

// A lineBuilder collects the line tables of a file's units, and which code is whose.
type lineBuilder struct {
	image   *Image
	debug   *debugData
	lines   Lines
	indexes map[string]int32 // of Lines.files
	tables  map[int64]bool   // offsets of the line tables read: units may share one
	code    []owned          // by units
	split   splitUnits
}

// addUnit adds the unit whose first entry is at an offset.
func (b *lineBuilder) addUnit(at dwarf.Offset) error {
	_, unit, err := b.debug.entryAt(at)
	if err != nil || unit == nil {
		return err
	}
	b.debug.left.least = max(b.debug.left.least, nameBytes(unit))
	b.split.add(unit)
	if err := b.addCode(unit); err != nil {
		return err
	}
	table, ok := unit.Val(dwarf.AttrStmtList).(int64)
	if !ok || b.tables[table] {
		return nil
	}
	b.tables[table] = true
	lines, err := b.debug.data.LineReader(unit)
	if err != nil || lines == nil {
		return err
	}
	return b.addTable(lines)
}

// addCode notes which code is a unit's.
func (b *lineBuilder) addCode(unit *dwarf.Entry) error {
	if unit.Tag != dwarf.TagCompileUnit || !unit.Children {
		return nil
	}
	list, err := b.debug.rangesOf(unit)
	if err != nil {
		return err
	}
	b.code = b.image.own(b.code, list, len(b.lines.inlined.units), 0)
	b.lines.inlined.units = append(b.lines.inlined.units, inlineUnit{first: unit.Offset})
	return nil
}

// addTable adds one line table, sequence by sequence. The linker leaves sequences of code that it
// dropped: these begin outside of all executable segments.
func (b *lineBuilder) addTable(lines *dwarf.LineReader) error {
	begin := len(b.lines.rows)
	var entry dwarf.LineEntry
	var last *dwarf.LineFile
	file := int32(noFile)
	for {
		if err := lines.Next(&entry); err == io.EOF {
			b.lines.rows = b.lines.rows[:begin] // a sequence without end
			return nil
		} else if err != nil {
			return err
		}
		if len(b.lines.rows) >= maxRows {
			return fmt.Errorf("more than %d rows", maxRows)
		}
		if entry.EndSequence {
			b.lines.rows = append(b.lines.rows, lineRow{addr: entry.Address, file: noFile})
			if _, ok := b.image.FileOffset(b.lines.rows[begin].addr); !ok {
				b.lines.rows = b.lines.rows[:begin]
			}
			begin = len(b.lines.rows)
			continue
		}
		if entry.File != last {
			last, file = entry.File, b.fileIndex(entry.File)
		}
		b.lines.rows = append(b.lines.rows,
			lineRow{addr: entry.Address, file: file, line: int32(min(entry.Line, maxLine))})
	}
}

func (b *lineBuilder) fileIndex(f *dwarf.LineFile) int32 {
	if f == nil {
		return noFile
	}
	index, ok := b.indexes[f.Name]
	if !ok {
		index = int32(len(b.lines.files))
		b.lines.files = append(b.lines.files, f.Name)
		b.indexes[f.Name] = index
	}
	return index
}

// finish sorts the rows. Of several at one address the last counts, but a row counts before the end
// of a sequence.
func (b *lineBuilder) finish() *Lines {
	slices.SortStableFunc(b.lines.rows, func(x, y lineRow) int {
		return cmp.Or(cmp.Compare(x.addr, y.addr), cmp.Compare(min(x.file, 0), min(y.file, 0)))
	})
	rows := b.lines.rows[:0]
	for _, r := range b.lines.rows {
		switch n := len(rows); {
		case n > 0 && rows[n-1].addr == r.addr:
			rows[n-1] = r
		case n > 0 && rows[n-1].file == r.file && rows[n-1].line == r.line:
		default:
			rows = append(rows, r)
		}
	}
	b.lines.rows = slices.Clip(rows)
	calls := &b.lines.inlined
	calls.image, calls.debug, calls.left, calls.code = b.image, b.debug, b.debug.left,
		flatten(b.code)
	calls.names = map[naming]string{}
	return &b.lines
}
