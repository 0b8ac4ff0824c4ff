package sweep

import (
	"iter"
	"maps"
	"slices"

	"wpptrace/loader/cfg"
)

// FindHoldsTwice says whether data or code in no routine names a function of another image that may
// return more than once, its stub, or its slot.
func (f *File) FindHoldsTwice() bool {
	twice := map[uint64]bool{}
	for addr, name := range f.Imports {
		if cfg.IsReturnsTwiceSymbol(name) {
			twice[addr] = true
		}
	}
	if slices.ContainsFunc(f.Image.Foreign(), cfg.IsReturnsTwiceSymbol) ||
		f.HoldsAny(maps.Keys(twice)) {
		return true
	}
	named := false
	if len(twice) > 0 {
		f.Code.eachNamedUncovered(f.Image, func(addr uint64) { named = named || twice[addr] })
	}
	return named
}

// HoldsAny says whether data holds one of some addresses of code, or code in no routine names it.
func (f *File) HoldsAny(addrs iter.Seq[uint64]) bool {
	for addr := range addrs {
		if in := f.Image.SectionAt(addr); in != nil && in.Exec && f.DataReferences.Has(addr) {
			return true
		}
	}
	return false
}
