package image

import (
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ErrNoLines says that a file has no line table.
var ErrNoLines = errors.New("no line information")

// Lines maps link-time addresses to source lines. It is safe for concurrent use.
type Lines struct {
	files []string
	rows  []lineRow // sorted by address
}

// A lineRow says what line the code from addr on belongs to.
type lineRow struct {
	addr uint64
	file int32 // index into Lines.files; none behind the end of a sequence
	line int32
}

const noFile = -1

// Lines returns the source lines that .debug_line describes, DWARF 2 to 5, of the file or of its debug information under /usr/lib/debug. The first call reads them, about 0.1 s for
// 10 MB of debug information; the error is ErrNoLines when there are none.
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

func (f elfFile) hasLines() bool {
	return f.Section(".debug_line") != nil || f.Section(".zdebug_line") != nil
}

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
	b := lineBuilder{image: im, indexes: map[string]int32{}, tables: map[int64]bool{}}
	for _, at := range unitOffsets(debug.info) {
		if err := b.addUnit(debug.data, at); err != nil {
			return nil, fmt.Errorf("unit at %#x: %w", at, err)
		}
	}
	return b.finish(), nil
}

// debugData is the debug information of a file, with the bytes of its .debug_info.
type debugData struct {
	data *dwarf.Data
	info []byte
}

func (f elfFile) openDWARF() (debugData, error) {
	sections := map[string][]byte{}
	room := uint64(maxDebug)
	for _, s := range f.Sections {
		name, ok := strings.CutPrefix(s.Name, ".debug_")
		if !ok {
			name, ok = strings.CutPrefix(s.Name, ".zdebug_")
		}
		if !ok || s.Type == elf.SHT_NOBITS {
			continue
		}
		switch name {
		case "abbrev", "info", "line", "str", "line_str", "str_offsets", "addr", "ranges", "rnglists":
			if s.Size > room {
				return debugData{}, fmt.Errorf("section %s: more than %d MB of debug information", s.Name, maxDebug>>20)
			}
			room -= s.Size
			data, err := f.debugSection(s)
			if err != nil {
				return debugData{}, fmt.Errorf("section %s: %w", s.Name, err)
			}
			sections[name] = data
		}
	}
	data, err := dwarf.New(sections["abbrev"], nil, nil, sections["info"], sections["line"], nil, sections["ranges"], sections["str"])
	if err != nil {
		return debugData{}, err
	}
	for _, name := range []string{"line_str", "str_offsets", "addr", "rnglists"} {
		if err := data.AddSection(".debug_"+name, sections[name]); err != nil {
			return debugData{}, err
		}
	}
	return debugData{data, sections["info"]}, nil
}

// debugSection reads a section and unpacks it, if it claims no more than compression can give.
func (f elfFile) debugSection(s *elf.Section) ([]byte, error) {
	const maxRatio = 64
	if s.FileSize > uint64(f.size) || s.Size > maxRatio*max(s.FileSize, 4096) {
		return nil, fmt.Errorf("claims %d bytes", s.Size)
	}
	return s.Data()
}

// unitOffsets finds the first entry of each unit of .debug_info. (debug/dwarf alone would read every entry.)
func unitOffsets(info []byte) []dwarf.Offset {
	const extended = 0xffffffff
	var offsets []dwarf.Offset
	c := cursor{data: info}
	for c.more() {
		wordLen := 4
		length := c.uint(4)
		if length == extended {
			wordLen = 8
			length = c.uint(8)
		}
		unit := c.take(length)
		c.at = len(unit.data)
		if unit.failed {
			break
		}
		if headerLen := unitHeaderLen(&unit, wordLen); !unit.failed {
			offsets = append(offsets, dwarf.Offset(unit.at+headerLen))
		}
	}
	return offsets
}

// unitHeaderLen reads what follows the length in a unit's header, up to the address of its first entry, and returns
// how many bytes are left to it. A word is an offset: 4 or 8 bytes.
func unitHeaderLen(unit *cursor, wordLen int) int {
	const (
		skeletonUnit = 0x04
		splitUnit    = 0x05
		typeUnit     = 0x02
		splitType    = 0x06
	)
	if version := unit.uint(2); version < 5 {
		return wordLen + 1
	}
	switch unit.byte() {
	case skeletonUnit, splitUnit:
		return 1 + wordLen + 8
	case typeUnit, splitType:
		return 1 + wordLen + 8 + wordLen
	}
	return 1 + wordLen
}

// A lineBuilder collects the line tables of a file's units.
type lineBuilder struct {
	image   *Image
	lines   Lines
	indexes map[string]int32 // of Lines.files
	tables  map[int64]bool   // offsets of the line tables read: units may share one
}

// addUnit adds the line table of the unit whose first entry is at an offset.
func (b *lineBuilder) addUnit(data *dwarf.Data, at dwarf.Offset) error {
	r := data.Reader()
	r.Seek(at)
	unit, err := r.Next()
	if err != nil || unit == nil {
		return err
	}
	table, ok := unit.Val(dwarf.AttrStmtList).(int64)
	if !ok || b.tables[table] {
		return nil
	}
	b.tables[table] = true
	lines, err := data.LineReader(unit)
	if err != nil || lines == nil {
		return err
	}
	return b.addTable(lines)
}

// addTable adds one line table, sequence by sequence. The linker leaves sequences of code that it dropped: these begin
// outside of all executable segments.
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
		b.lines.rows = append(b.lines.rows, lineRow{addr: entry.Address, file: file, line: int32(min(entry.Line, 1<<30))})
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

// finish sorts the rows. Of several at one address the last counts, but a row counts before the end of a sequence.
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
	return &b.lines
}
