package image

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"wpptrace/loader/x86"
)

// A Relocation is a word that the loader writes before the program runs.
type Relocation struct {
	Addr uint64 // of the word
	To   uint64 // the link-time address that it will hold (less the load base)
}

// Relocations are those of an image, sorted by the addresses of their words, one for each.
type Relocations []Relocation

// At returns what the word at an address will hold, if it has a relocation.
func (list Relocations) At(addr uint64) (to uint64, ok bool) {
	i, ok := slices.BinarySearchFunc(list, addr,
		func(r Relocation, addr uint64) int { return cmp.Compare(r.Addr, addr) })
	if !ok {
		return 0, false
	}
	return list[i].To, true
}

// Relocations returns the relative relocations (RELR's too) and those against functions that the
// file defines itself.
func (im *Image) Relocations() Relocations { return im.relocations }

// Resolvers returns the addresses of the functions that the loader calls to choose an
// implementation (IRELATIVE), sorted.
func (im *Image) Resolvers() []uint64 { return im.resolvers }

// Imports returns the name of the function that each procedure linkage stub jumps to, by the stub's
// address, and by the address of the slot of the global offset table that holds its address.
func (im *Image) Imports() map[uint64]string { return im.imports }

// Jumps returns the slot of each procedure linkage stub that does nothing but jump where that says,
// by the stub's address, of the slots that nobody writes any more once the loader has (RELRO).
func (im *Image) Jumps() map[uint64]uint64 { return im.jumps }

// Sealed returns what the word at an address holds once the loader has relocated the image and lets
// nobody write it any more (RELRO). relative: the load base is to be added. ok is false where the
// file does not say it, and of images whose code may run before.
func (im *Image) Sealed(addr uint64) (word uint64, relative, ok bool) {
	if addr%8 != 0 || len(im.Needed) == 0 || len(im.resolvers) > 0 || !im.isSealed(addr) {
		return 0, false, false
	}
	if _, isOther := slices.BinarySearch(im.patched, addr); isOther {
		return 0, false, false
	}
	if word, relative = im.relocations.At(addr); relative {
		return word, true, true
	}
	s := im.SectionAt(addr) // the loader has words of its own in others
	if s == nil || !strings.HasPrefix(s.Name, ".data.rel.ro") || len(im.relocations) == 0 {
		return 0, false, false
	}
	b := im.Bytes(addr, addr+8)
	if b == nil {
		return 0, false, false
	}
	return binary.LittleEndian.Uint64(b), false, true
}

// SealedRange is where nobody writes any more once the loader has (RELRO); nothing is, lo is hi, if
// the file has no such part.
func (im *Image) SealedRange() (lo, hi uint64) {
	for _, p := range im.file.parsed.Progs {
		if end := (p.Vaddr + p.Memsz) &^ (relroPage - 1); p.Type == elf.PT_GNU_RELRO &&
			p.Vaddr < end {
			return p.Vaddr, end
		}
	}
	return 0, 0
}

// Foreign returns the names of the functions and variables of other images whose addresses data
// holds.
func (im *Image) Foreign() []string { return im.foreign }

// readRelocations fills in relocations, resolvers and foreign names and returns the imported
// functions by slot.
func (im *Image) readRelocations(dynamic symbolTable) map[uint64]string {
	slots := map[uint64]string{}
	im.relocations = make(Relocations, 0, im.countRelocations())
	for _, s := range im.file.parsed.Sections {
		if s.Flags&elf.SHF_ALLOC == 0 || s.Addr == 0 {
			continue
		}
		data := im.Bytes(s.Addr, s.Addr+s.FileSize)
		switch s.Type {
		case elf.SHT_RELA:
			im.readRela(data, dynamic, slots)
		case shtRELR:
			im.readRelr(data)
		}
	}
	im.relocations = lastOfEach(im.relocations)
	slices.Sort(im.resolvers)
	im.resolvers = slices.Compact(im.resolvers)
	slices.Sort(im.patched)
	im.patched = slices.Compact(im.patched)
	slices.Sort(im.foreign)
	im.foreign = slices.Compact(im.foreign)
	return slots
}

// countRelocations is how many relocations tables have at most: a guess for hostile ones.
func (im *Image) countRelocations() (n uint64) {
	const most = 1 << 22
	for _, s := range im.file.parsed.Sections {
		switch {
		case s.Flags&elf.SHF_ALLOC == 0 || s.Addr == 0:
		case s.Type == elf.SHT_RELA:
			n += uint64(len(im.Bytes(s.Addr, s.Addr+s.FileSize)) / relaLen)
		case s.Type == shtRELR:
			data := im.Bytes(s.Addr, s.Addr+s.FileSize)
			for ; len(data) >= 8; data = data[8:] {
				if entry := binary.LittleEndian.Uint64(data); entry&1 == 0 {
					n++
				} else {
					n += uint64(bits.OnesCount64(entry >> 1))
				}
			}
		}
	}
	return min(n, most)
}

// lastOfEach sorts relocations, and keeps the last one of each word.
func lastOfEach(list Relocations) Relocations {
	byAddr := func(a, b Relocation) int { return cmp.Compare(a.Addr, b.Addr) }
	if !slices.IsSortedFunc(list, byAddr) {
		slices.SortStableFunc(list, byAddr)
	}
	kept := list[:0]
	for i, r := range list {
		if i+1 == len(list) || list[i+1].Addr != r.Addr {
			kept = append(kept, r)
		}
	}
	return kept
}

const relaLen = 24 // bytes of an entry

// readRela reads a table of relocations with addends; dynamic lacks the symbol table's empty first
// entry.
func (im *Image) readRela(data []byte, dynamic symbolTable, slots map[uint64]string) {
	relocate := func(addr, to uint64) {
		im.relocations = append(im.relocations, Relocation{addr, to})
	}
	for ; len(data) >= relaLen; data = data[relaLen:] {
		addr := binary.LittleEndian.Uint64(data)
		info := binary.LittleEndian.Uint64(data[8:])
		addend := binary.LittleEndian.Uint64(data[16:])
		var symbol symbolEntry
		if index := info >> 32; index > 0 && index <= uint64(dynamic.len()) {
			symbol = dynamic.at(int(index - 1))
		}
		kind := elf.R_X86_64(uint32(info))
		if kind != elf.R_X86_64_RELATIVE {
			im.patched = append(im.patched, addr&^7, (addr+7)&^7)
		}
		switch kind {
		case elf.R_X86_64_RELATIVE:
			relocate(addr, addend)
		case elf.R_X86_64_IRELATIVE:
			im.resolvers = append(im.resolvers, addend)
		case elf.R_X86_64_64:
			if symbol.defined {
				relocate(addr, symbol.value+addend)
			} else if symbol.name != "" {
				im.foreign = append(im.foreign, symbol.name)
			}
		case elf.R_X86_64_GLOB_DAT, elf.R_X86_64_JMP_SLOT:
			if symbol.name != "" {
				slots[addr] = symbol.name
			}
		}
	}
}

const shtRELR elf.SectionType = 19

// readRelr reads the packed form of relative relocations: an even word is the address of one, an
// odd word says by its bits which of the next 63 words are. The words themselves hold the values.
func (im *Image) readRelr(data []byte) {
	const word = 8
	var next uint64
	for ; len(data) >= word; data = data[word:] {
		entry := binary.LittleEndian.Uint64(data)
		if entry&1 == 0 {
			im.relocateInPlace(entry)
			next = entry + word
			continue
		}
		for bitmap := entry >> 1; bitmap != 0; bitmap &= bitmap - 1 {
			im.relocateInPlace(next + uint64(bits.TrailingZeros64(bitmap))*word)
		}
		next += 63 * word
	}
}

func (im *Image) relocateInPlace(addr uint64) {
	if b := im.Bytes(addr, addr+8); b != nil {
		im.relocations = append(im.relocations,
			Relocation{addr, binary.LittleEndian.Uint64(b)})
	}
}

// readStubs adds to the imported slots the stubs that jump through them.
func (im *Image) readStubs(slots map[uint64]string) map[uint64]string {
	imports := make(map[uint64]string, 2*len(slots))
	im.jumps = make(map[uint64]uint64, len(slots))
	for _, s := range im.Sections {
		if !s.Exec || !isStubs(s.Name) {
			continue
		}
		readStubs(s, slots, imports, im.jumps)
	}
	maps.DeleteFunc(im.jumps, func(_, slot uint64) bool { return !im.isSealed(slot) })
	for slot, name := range slots {
		imports[slot] = name
	}
	return imports
}

// isSealed reports whether the loader has the word at an address be read-only, once it has written
// it.
func (im *Image) isSealed(addr uint64) bool {
	lo, hi := im.SealedRange()
	return addr >= lo && addr < hi && hi-addr >= 8
}

// relroPage is what the loader protects at a time.
const relroPage = 4096

func isStubs(section string) bool { return strings.HasPrefix(section, ".plt") }

// readStubs finds the stubs of a section: a jump through a slot, or a load of it into r11, from
// where retpolines jump (lld), behind an endbr64 or the symbol's number in r11 (mold), or both.
// Those that leave registers as they are come into jumps, with their slots.
func readStubs(s Section, slots, imports map[uint64]string, jumps map[uint64]uint64) {
	begin, writes := 0, false
	for at := 0; at < len(s.Data); {
		code := s.Data[at:]
		in, ok := x86.Decode(code)
		if !ok {
			at++
			begin = at
			continue
		}
		start, next := at, at+int(in.Len)
		at = next
		e := in.Effects(code, s.Addr+uint64(next))
		setsR11 := e.Operation == x86.Mov && e.Dst.Reg == x86.R11
		isLoad, isNumber := setsR11 && e.Src.Mem, setsR11 && e.HasImm
		switch {
		case in.Kind == x86.JmpInd || isLoad:
			if name := slots[uint64(e.Src.Disp)]; e.Src.RIP && name != "" {
				imports[s.Addr+uint64(start)] = name
				imports[s.Addr+uint64(begin)] = name
				if !isLoad && !writes {
					jumps[s.Addr+uint64(begin)] = uint64(e.Src.Disp)
				}
			}
			begin, writes = next, false
		case isNumber:
			writes = true
		case !in.IsEndbr64():
			begin, writes = next, false
		}
	}
}
