package image

import (
	"bytes"
	"compress/zlib"
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// debugData is the debug information of a file. What it may cost to read is bounded: a hostile
// file's entries can share one long name, or one long list of ranges.
type debugData struct {
	data  *dwarf.Data
	units []debugUnit

	supplement *debugData // what several files have in common (dwz(1)); nil: there is none
	strings    []byte     // .debug_str, which files that have this one as their supplement refer to

	scopes map[dwarf.Offset][]scope // by the first entry of a unit that has been read for them

	left *debugRoom
}

// debugRoom is what of a file's debug information may be read yet.
type debugRoom struct {
	names  int // bytes
	ranges int
	scopes int
	// bytes of names that are read each time that an entry is looked up: those of a unit's first
	// entry at most
	least int
}

// A debugUnit is the place of a unit.
type debugUnit struct {
	start dwarf.Offset
	first dwarf.Offset // entry
	table uint64       // of abbreviations: its offset

	version int // of DWARF
}

// debugSections are the sections that are read, without ".debug_".
var debugSections = []string{"abbrev", "info", "line", "str", "line_str", "str_offsets", "addr",
	"ranges", "rnglists"}

func (f elfFile) openDWARF() (*debugData, error) {
	sections, err := f.readDebugSections()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"str", "line_str"} {
		clipNames(sections[name])
	}
	units := debugUnits(sections["info"])
	if err := checkAbbreviations(sections["abbrev"], units); err != nil {
		return nil, err
	}
	data, err := dwarf.New(sections["abbrev"], nil, nil, sections["info"], sections["line"], nil,
		sections["ranges"], sections["str"])
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"line_str", "str_offsets", "addr", "rnglists"} {
		if err := data.AddSection(".debug_"+name, sections[name]); err != nil {
			return nil, err
		}
	}
	return &debugData{data: data, units: units, strings: sections["str"],
		left: &debugRoom{names: maxDebugNames, ranges: maxRanges, scopes: maxScopes}}, nil
}

func (f elfFile) readDebugSections() (map[string][]byte, error) {
	sections := map[string][]byte{}
	room := uint64(maxDebug)
	for _, name := range debugSections {
		s := f.debugSection(name)
		if s == nil || s.Type == elf.SHT_NOBITS {
			continue
		}
		data, err := f.unpack(s, room)
		if err != nil {
			return nil, fmt.Errorf("section %s: %w", s.Name, err)
		}
		room -= uint64(len(data))
		sections[name] = data
	}
	return sections, nil
}

// debugSection returns a section of debug information, whose name is without ".debug_"; nil: there
// is none. Compilers called some .zdebug_ before ELF had compressed sections (-gz=zlib-gnu), those
// that are smaller so.
func (f elfFile) debugSection(name string) *elf.Section {
	if s := f.parsed.Section(".debug_" + name); s != nil {
		return s
	}
	return f.parsed.Section(gnuCompressed + name)
}

const gnuCompressed = ".zdebug_"

// unpack reads a section, if it claims no more than compression can give, nor than there is room
// for.
func (f elfFile) unpack(s *elf.Section, room uint64) ([]byte, error) {
	const maxRatio = 64
	size, read := s.Size, s.Data
	if strings.HasPrefix(s.Name, gnuCompressed) {
		var err error
		if size, err = gnuSize(s); err != nil {
			return nil, err
		}
		read = func() ([]byte, error) { return gnuData(s, size) }
	}
	// one list may be all of it
	ofRanges := strings.HasSuffix(s.Name, "_ranges") || strings.HasSuffix(s.Name, "_rnglists")
	if s.FileSize > uint64(f.size) || size > maxRatio*max(s.FileSize, 4096) ||
		ofRanges && size > maxRangeLists {
		return nil, fmt.Errorf("claims %d bytes", size)
	}
	if size > room {
		return nil, fmt.Errorf("more than %d MB of debug information", maxDebug>>20)
	}
	return read()
}

// gnuHeader is how long the header of a .zdebug_ section is: "ZLIB" and the size, big-endian.
const gnuHeader = 12

// gnuSize is the size of a .zdebug_ section, unpacked.
func gnuSize(s *elf.Section) (uint64, error) {
	var header [gnuHeader]byte
	if _, err := s.ReadAt(header[:], 0); err != nil || string(header[:4]) != "ZLIB" {
		return 0, errors.New("it has no header of compressed debug information")
	}
	return binary.BigEndian.Uint64(header[4:]), nil
}

// gnuData unpacks a .zdebug_ section of a size.
func gnuData(s *elf.Section, size uint64) ([]byte, error) {
	r, err := zlib.NewReader(io.NewSectionReader(s, gnuHeader, int64(s.FileSize)-gnuHeader))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data := make([]byte, size)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, fmt.Errorf("is not the %d bytes that it claims: %w", size, err)
	}
	return data, nil
}

// clipNames ends names at a length that no compiler reaches: debug/dwarf copies one each time that
// an entry has it.
func clipNames(names []byte) {
	for len(names) > maxName {
		if end := bytes.IndexByte(names[:maxName], 0); end >= 0 {
			names = names[end+1:]
			continue
		}
		names[maxName-1] = 0
		names = names[maxName:]
	}
}

// debugUnits finds the units of .debug_info. (debug/dwarf alone would read every entry.)
func debugUnits(info []byte) []debugUnit {
	const extended = 0xffffffff
	var units []debugUnit
	c := cursor{data: info}
	for c.more() {
		start := dwarf.Offset(c.at)
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
		version, table := unitHeader(&unit, wordLen)
		if !unit.failed {
			units = append(units, debugUnit{start, dwarf.Offset(unit.at), table, version})
		}
	}
	return units
}

// unitHeader reads what follows the length in a unit's header, and returns the version of DWARF
// and the offset of the unit's table of abbreviations. A word is an offset: 4 or 8 bytes.
func unitHeader(unit *cursor, wordLen int) (version int, table uint64) {
	const (
		typeUnit     = 0x02
		skeletonUnit = 0x04
		splitUnit    = 0x05
		splitType    = 0x06
		idLen        = 8
	)
	if version = int(unit.uint(2)); version < 5 {
		table = unit.uint(wordLen)
		unit.byte() // how long an address is
		return version, table
	}
	kind := unit.byte()
	unit.byte()
	table = unit.uint(wordLen)
	switch kind {
	case skeletonUnit, splitUnit:
		unit.skip(idLen)
	case typeUnit, splitType:
		unit.skip(idLen + uint64(wordLen))
	}
	return version, table
}

// checkAbbreviations fails where units share parts of their tables, or an abbreviation has more
// attributes than any: debug/dwarf keeps a table for each offset that a unit names.
func checkAbbreviations(data []byte, units []debugUnit) error {
	known := map[uint64]bool{}
	room := len(data)
	for _, u := range units {
		if known[u.table] || u.table > uint64(len(data)) {
			continue
		}
		known[u.table] = true
		c := cursor{data: data, at: int(u.table)}
		for c.uleb() != 0 {
			if err := skipAbbreviation(&c); err != nil {
				return err
			}
		}
		if room -= c.at - int(u.table); room < 0 {
			return errors.New("tables of abbreviations overlap")
		}
	}
	return nil
}

func skipAbbreviation(c *cursor) error {
	const implicitConst, most = 0x21, 1000
	c.uleb() // tag
	c.byte() // whether it has children
	for range most {
		attribute, form := c.uleb(), c.uleb()
		if form == implicitConst {
			c.sleb()
		}
		if attribute == 0 && form == 0 {
			return nil
		}
	}
	return fmt.Errorf("an abbreviation has more than %d attributes", most)
}

// entry reads the next entry, nil behind the last.
func (d *debugData) entry(r *dwarf.Reader) (*dwarf.Entry, error) {
	e, err := r.Next()
	if err != nil || e == nil {
		return nil, err
	}
	d.complete(e)
	return e, d.charge(nameBytes(e))
}

// entryAt reads the entry at an offset, and returns a reader of those that follow.
func (d *debugData) entryAt(at dwarf.Offset) (*dwarf.Reader, *dwarf.Entry, error) {
	if err := d.charge(d.left.least); err != nil {
		return nil, nil, err
	}
	r := d.data.Reader()
	r.Seek(at)
	e, err := d.entry(r)
	return r, e, err
}

// complete puts texts that are in the supplement into an entry.
func (d *debugData) complete(e *dwarf.Entry) {
	if d.supplement == nil {
		return
	}
	texts := d.supplement.strings
	for i := range e.Field {
		f := &e.Field[i]
		if at, ok := f.Val.(int64); ok && f.Class == dwarf.ClassStringAlt && at >= 0 &&
			at < int64(len(texts)) {
			c := cursor{data: texts, at: int(at)}
			f.Val, f.Class = c.string(), dwarf.ClassString
		}
	}
}

// rangesOf returns the addresses that an entry covers.
func (d *debugData) rangesOf(e *dwarf.Entry) ([][2]uint64, error) {
	if err := d.charge(d.left.least); err != nil {
		return nil, err
	}
	list, err := d.data.Ranges(e)
	if err != nil {
		return nil, err
	}
	if d.left.ranges -= len(list); d.left.ranges < 0 {
		return nil, fmt.Errorf("more than %d ranges", maxRanges)
	}
	return list, nil
}

// charge counts names that were read.
func (d *debugData) charge(bytes int) error {
	if d.left.names -= bytes; d.left.names < 0 {
		return fmt.Errorf("more than %d MB of names", maxDebugNames>>20)
	}
	return nil
}

func nameBytes(e *dwarf.Entry) (sum int) {
	for i := range e.Field {
		if s, ok := e.Field[i].Val.(string); ok {
			sum += len(s)
		}
	}
	return sum
}
