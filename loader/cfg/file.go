package cfg

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// A file is what an image says of its code, and its code of itself, before control is followed:
// what mentions what, and by which names. What is indexed by instruction covers the whole file.
type file struct {
	code           *code
	im             *image.Image
	imports        map[uint64]string
	importsLibc    bool // the C library is another image
	references     *references
	insnReferences *references // those by instructions that are no indirect jumps
	// those by anything but instructions of routines and dynamic symbols
	dataReferences *references
	names          map[uint64]string         // by address
	local          map[uint64]bool           // by entry: its name is static
	parts          map[uint64][]image.Symbol // by address: those that name parts of routines
	pointedParts   []int                     // pieces: see findPointedParts
}

func readFile(im *image.Image, c *code) *file {
	f := &file{code: c, im: im, imports: im.Imports(), names: map[uint64]string{},
		local: map[uint64]bool{},
		parts: map[uint64][]image.Symbol{}}
	f.importsLibc = slices.Contains(slices.Collect(maps.Values(f.imports)), "__libc_start_main")
	f.references, f.insnReferences, f.dataReferences = collectReferences(im, c)
	f.nameSymbols()
	return f
}

// isStub says whether addr lies in a section of linkage stubs.
func (f *file) isStub(addr uint64) bool {
	s := f.im.SectionAt(addr)
	return s != nil && s.Exec && isStubs(s)
}

// isFunction says whether addr is known to begin a function, though no unwind rows describe it.
func (fl *file) isFunction(addr uint64) bool {
	s := fl.im.SectionAt(addr)
	if s == nil || !s.Exec {
		return false
	}
	_, named := slices.BinarySearchFunc(fl.im.Symbols(), addr,
		func(f image.Symbol, addr uint64) int { return cmp.Compare(f.Addr, addr) })
	return named || s.Addr == addr
}

func isStubs(s *image.Section) bool { return strings.HasPrefix(s.Name, ".plt") }

// nameSymbols gives each piece its symbol, and notes all of them by address, and the parts
// that are empty by theirs. Of several functions' symbols that one wins by which programs call it.
func (f *file) nameSymbols() {
	names := f.names
	for _, s := range f.im.Symbols() {
		if isPart(s.Name) {
			f.parts[s.Addr] = append(f.parts[s.Addr], s)
			if s.Size == 0 {
				continue
			}
		}
		if old, ok := names[s.Addr]; !ok || byCallersName(s.Name, old) < 0 {
			names[s.Addr] = s.Name
			f.local[s.Addr] = s.Local
		}
	}
	for i := range f.code.pieces {
		at := f.code.pieces[i].Lo
		if _, ok := names[at]; !ok && len(f.parts[at]) > 0 {
			// assemblers give a part no size, though it has code
			names[at] = f.parts[at][0].Name
			delete(f.parts, at)
		}
		f.code.pieces[i].symbol = names[at]
	}
}

// byCallersName orders the names of one function, what programs call it first: libraries have
// others for their own use, which begin with underscores or are longer.
func byCallersName(a, b string) int {
	underscores := func(name string) int { return len(name) - len(strings.TrimLeft(name, "_")) }
	part := func(name string) int {
		if isPart(name) {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(min(len(b), 1), min(len(a), 1)), // any before none
		cmp.Compare(part(a), part(b)), cmp.Compare(underscores(a), underscores(b)),
		cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// imported returns the imported function that the call i enters, or "".
func (f *file) imported(i int) string {
	if q := &f.code.insns[i]; q.Kind.IsRelative() {
		return f.imports[q.target()]
	}
	return f.importThroughSlot(i)
}

// importThroughSlot returns the imported function that the indirect call or jump i reaches through
// its slot of the global offset table, or "".
func (f *file) importThroughSlot(i int) string {
	if q := &f.code.insns[i]; !q.IsRIPRelative() || q.Kind != x86.CallInd && q.Kind != x86.JmpInd {
		return ""
	}
	_, rm, _ := f.code.operands(i)
	return f.imports[uint64(rm.Disp)]
}
