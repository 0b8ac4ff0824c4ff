package image

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/ianlancetaylor/demangle"
)

// Symbols returns the functions that .symtab, that of the debug information if the file has none,
// and .dynsym define, those chosen at load time (IFUNC) too, sorted by address. A function that
// both tables name is there twice.
func (im *Image) Symbols() []Symbol { return im.symbols }

// A symbolEntry is an entry of a symbol table.
type symbolEntry struct {
	name        string
	kind        elf.SymType
	defined     bool
	local       bool
	value, size uint64
}

const symbolLen = 24 // bytes of an entry

// A symbolTable is one as it is in the file: its entries are read as they are asked for. The zero
// value has none.
type symbolTable struct {
	data  []byte // without the empty first entry
	names string
}

// symbolTable reads the symbol table of a type. (debug/elf copies each name, which lets a small
// file claim any amount of memory.)
func (f elfFile) symbolTable(kind elf.SectionType) (t symbolTable, err error) {
	table := f.parsed.SectionByType(kind)
	if table == nil {
		return t, nil
	}
	if table.Link == 0 || int(table.Link) >= len(f.parsed.Sections) {
		return t, fmt.Errorf("symbol table %s has no names", table.Name)
	}
	if t.data, err = f.plainSection(table); err != nil {
		return symbolTable{}, fmt.Errorf("symbol table %s: %w", table.Name, err)
	}
	t.data = t.data[min(symbolLen, len(t.data)):]
	names, err := f.plainSection(f.parsed.Sections[table.Link])
	if err != nil {
		return symbolTable{}, fmt.Errorf("names of symbol table %s: %w", table.Name, err)
	}
	t.names = unsafe.String(unsafe.SliceData(names), len(names)) // which nobody writes any more
	budget := nameBudget(1+t.len(), len(t.names))
	for i := range t.len() {
		if budget -= len(t.at(i).name); budget < 0 {
			return symbolTable{}, fmt.Errorf("names of symbol table %s overlap", table.Name)
		}
	}
	return t, nil
}

func (t symbolTable) len() int { return len(t.data) / symbolLen }

// at reads an entry. Its name shares the memory of the table.
func (t symbolTable) at(i int) symbolEntry {
	data := t.data[i*symbolLen:][:symbolLen]
	return symbolEntry{
		name:    nameAt(t.names, binary.LittleEndian.Uint32(data)),
		kind:    elf.ST_TYPE(data[4]),
		local:   elf.ST_BIND(data[4]) == elf.STB_LOCAL,
		defined: binary.LittleEndian.Uint16(data[6:]) != uint16(elf.SHN_UNDEF),
		value:   binary.LittleEndian.Uint64(data[8:]),
		size:    binary.LittleEndian.Uint64(data[16:]),
	}
}

// countFunctions counts the functions that the table defines.
func (t symbolTable) countFunctions() (n int) {
	for i := range t.len() {
		if _, ok := t.functionAt(i); ok {
			n++
		}
	}
	return n
}

// functionAt is the address of an entry, if it defines a function.
func (t symbolTable) functionAt(i int) (addr uint64, ok bool) {
	data := t.data[i*symbolLen:][:symbolLen]
	if !isFunction(elf.ST_TYPE(data[4])) || data[6]|data[7] == byte(elf.SHN_UNDEF) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(data[8:]), true
}

func isFunction(kind elf.SymType) bool {
	const gnuIFunc = elf.STT_LOOS
	return kind == elf.STT_FUNC || kind == gnuIFunc
}

// plainSection reads a section that need not be mapped.
func (f elfFile) plainSection(s *elf.Section) ([]byte, error) {
	if s.Type == elf.SHT_NOBITS || s.Flags&elf.SHF_COMPRESSED != 0 || s.FileSize > uint64(f.size) {
		return nil, errors.New("not in the file")
	}
	if s.FileSize > maxTable {
		return nil, fmt.Errorf("it has more than %d MB: no program has so many symbols",
			maxTable>>20)
	}
	data := make([]byte, s.FileSize)
	if _, err := s.ReaderAt.ReadAt(data, 0); err != nil {
		return nil, err
	}
	return data, nil
}

// nameAt returns the name at an offset, cut at a length that no compiler reaches, so that reading
// many that overlap takes bounded time.
func nameAt(names string, at uint32) string {
	if uint64(at) >= uint64(len(names)) {
		return ""
	}
	name := names[at:min(len(names), int(at)+maxName)]
	name, _, _ = strings.Cut(name, "\x00")
	return name
}

// functionSymbols are the functions that two tables define, sorted by address and name, and then as
// they are in the tables. Their numbers are sorted in their place: symbols are large.
func functionSymbols(static, dynamic symbolTable) []Symbol {
	type place struct {
		addr uint64
		at   int32 // in both tables, one behind the other
	}
	first := static.len()
	entry := func(at int32) symbolEntry {
		if int(at) < first {
			return static.at(int(at))
		}
		return dynamic.at(int(at) - first)
	}
	places := make([]place, 0, static.countFunctions()+dynamic.countFunctions())
	for i := range first + dynamic.len() {
		t, at := static, i
		if i >= first {
			t, at = dynamic, i-first
		}
		if addr, ok := t.functionAt(at); ok {
			places = append(places, place{addr, int32(i)})
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		if a.addr != b.addr { // nearly always
			return cmp.Compare(a.addr, b.addr)
		}
		return cmp.Or(strings.Compare(entry(a.at).name, entry(b.at).name), cmp.Compare(a.at, b.at))
	})
	out := make([]Symbol, len(places))
	for i, p := range places {
		s := entry(p.at)
		out[i] = Symbol{Name: s.name, Addr: s.value, Size: s.size, Dynamic: int(p.at) >= first,
			Local: s.local}
	}
	return out
}

// Demangle returns the source form of a C++ or Rust symbol without parameters, other symbols as
// they are. The suffix that a compiler gives to a clone (.cold, .part.0, .constprop.0) stays.
func Demangle(symbol string) string { return demangled(symbol, demangle.NoParams) }

// demangled is the source form of a symbol, with parameters unless an option leaves them out.
func demangled(symbol string, options ...demangle.Option) string {
	const maxPower = 12 // 4096 characters: a mangled name can stand for one exponentially longer
	name, err := demangle.ToString(symbol, append(options, demangle.MaxLength(maxPower))...)
	if err != nil || name == "" {
		return symbol
	}
	return name + cloneSuffix(symbol)
}

// cloneSuffix returns the suffix behind a mangled name: what begins at the first dot, but in a name
// of the old Rust scheme, which has dots of its own, what is behind its hash (17h, 16 digits, E).
func cloneSuffix(symbol string) string {
	const hashLen = len("17h0123456789abcdefE")
	if at := strings.LastIndex(symbol, "17h"); at > 0 && at+hashLen <= len(symbol) &&
		symbol[at+hashLen-1] == 'E' {
		return symbol[at+hashLen:]
	}
	if at := strings.IndexByte(symbol, '.'); at >= 0 {
		return symbol[at:]
	}
	return ""
}
