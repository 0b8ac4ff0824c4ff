package sweep

import (
	"cmp"
	"slices"
	"strings"

	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// nameSymbols gives each piece its symbol, and notes the parts that are empty by their addresses.
func (f *File) nameSymbols() {
	for _, s := range f.Image.Symbols() {
		if IsPart(s.Name) {
			f.Parts[s.Addr] = append(f.Parts[s.Addr], s)
		}
	}
	for i := range f.Code.Pieces {
		at := f.Code.Pieces[i].Lo
		s, isNamed := f.symbolAt(at)
		if f.Code.Pieces[i].Symbol = s.Name; !isNamed && len(f.Parts[at]) > 0 {
			// assemblers give a part no size, though it has code
			f.Code.Pieces[i].Symbol = f.Parts[at][0].Name
			delete(f.Parts, at)
		}
	}
}

// NameAt is the symbol of what begins at an address, "" if it has none: of several functions'
// symbols that one by which programs call it.
func (f *File) NameAt(addr uint64) string {
	if s, ok := f.symbolAt(addr); ok {
		return s.Name
	}
	if i := f.Code.FindPiece(addr); i >= 0 && f.Code.Pieces[i].Lo == addr {
		return f.Code.Pieces[i].Symbol
	}
	return ""
}

// symbolAt finds the symbol at an address by which programs call what begins there. Parts that are
// empty are none.
func (f *File) symbolAt(addr uint64) (best image.Symbol, ok bool) {
	list := f.Image.Symbols()
	from, _ := slices.BinarySearchFunc(list, addr,
		func(s image.Symbol, addr uint64) int { return cmp.Compare(s.Addr, addr) })
	for _, s := range list[from:] {
		if s.Addr != addr {
			break
		}
		if s.Size == 0 && IsPart(s.Name) {
			continue
		}
		if !ok || byCallersName(s.Name, best.Name) < 0 {
			best, ok = s, true
		}
	}
	return best, ok
}

// byCallersName orders the names of one function, what programs call it first: libraries have
// others for their own use, which begin with underscores or are longer.
func byCallersName(a, b string) int {
	underscores := func(name string) int { return len(name) - len(strings.TrimLeft(name, "_")) }
	part := func(name string) int {
		if IsPart(name) {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(min(len(b), 1), min(len(a), 1)), // any before none
		cmp.Compare(part(a), part(b)), cmp.Compare(underscores(a), underscores(b)),
		cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// Imported returns the imported function that the call i enters, or "".
func (f *File) Imported(i int) string {
	if q := &f.Code.Insns[i]; q.Kind.IsRelative() {
		return f.Imports[q.Target()]
	}
	return f.importThroughSlot(i)
}

// importThroughSlot returns the imported function that the indirect call or jump i reaches through
// its slot of the global offset table, or "".
func (f *File) importThroughSlot(i int) string {
	if q := &f.Code.Insns[i]; !q.IsRIPRelative() || q.Kind != x86.CallInd && q.Kind != x86.JmpInd {
		return ""
	}
	_, rm, _ := f.Code.Operands(i)
	return f.Imports[uint64(rm.Disp)]
}

// IsStub says whether addr lies in a section of linkage stubs.
func (f *File) IsStub(addr uint64) bool {
	s := f.Image.SectionAt(addr)
	return s != nil && s.Exec && IsStubs(s)
}

// IsStubs says whether a section holds linkage stubs.
func IsStubs(s *image.Section) bool { return strings.HasPrefix(s.Name, ".plt") }

// IsFunction says whether addr is known to begin a function, though no unwind rows describe it.
func (fl *File) IsFunction(addr uint64) bool {
	s := fl.Image.SectionAt(addr)
	if s == nil || !s.Exec {
		return false
	}
	_, named := slices.BinarySearchFunc(fl.Image.Symbols(), addr,
		func(f image.Symbol, addr uint64) int { return cmp.Compare(f.Addr, addr) })
	return named || s.Addr == addr
}

// IsPart says whether a symbol names a part that a compiler has moved away from a routine: GCC's
// and Clang's cold ones, and the blocks that -fbasic-block-sections gives a section each.
func IsPart(symbol string) bool {
	return strings.Contains(symbol, ".cold") || strings.Contains(symbol, ".__part.")
}

// IsPartOf says whether a symbol names such a part of a routine.
func IsPartOf(symbol, routine string) bool {
	of, ok := strings.CutPrefix(symbol, routine)
	return ok && (strings.HasPrefix(of, ".cold") || strings.HasPrefix(of, ".__part."))
}
