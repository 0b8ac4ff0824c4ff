package sweep

import (
	"encoding/binary"
	"iter"
	"maps"
	"slices"
	"strings"

	"wpptrace/loader/cfg"
)

func (f *File) findHoldsTwice() bool {
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

// HeldAt is the address that a slot of the global offset table holds.
func (f *File) HeldAt(slot uint64) (to uint64, ok bool) {
	s := f.Image.SectionAt(slot)
	if s == nil || !strings.HasPrefix(s.Name, ".got") {
		return 0, false
	}
	if to, ok = f.Image.Relocations().At(slot); ok {
		return to, true
	}
	b := f.Image.Bytes(slot, slot+8)
	if len(b) < 8 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b), true
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
