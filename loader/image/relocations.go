package image

import (
	"debug/elf"
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"

	"wpptrace/loader/x86"
)

// Relocations returns what the loader writes before the program runs: for each address of a word,
// the link-time address that it will hold (less the load base). They are the relative relocations
// (RELR's too) and those against functions that the file defines itself.
func (im *Image) Relocations() map[uint64]uint64 { return im.relocations }

// Resolvers returns the addresses of the functions that the loader calls to choose an
// implementation (IRELATIVE), sorted.
func (im *Image) Resolvers() []uint64 { return im.resolvers }

// Imports returns the name of the function that each procedure linkage stub jumps to, by the stub's
// address, and by the address of the slot of the global offset table that holds its address.
func (im *Image) Imports() map[uint64]string { return im.imports }

// Foreign returns the names of the functions and variables of other images whose addresses data
// holds.
func (im *Image) Foreign() []string { return im.foreign }

// readRelocations fills in relocations, resolvers and foreign names and returns the imported
// functions by slot.
func (im *Image) readRelocations(dynamic []symbolEntry) map[uint64]string {
	im.relocations = map[uint64]uint64{}
	slots := map[uint64]string{}
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
	slices.Sort(im.resolvers)
	im.resolvers = slices.Compact(im.resolvers)
	slices.Sort(im.foreign)
	im.foreign = slices.Compact(im.foreign)
	return slots
}

// readRela reads a table of relocations with addends; dynamic lacks the symbol table's empty first
// entry.
func (im *Image) readRela(data []byte, dynamic []symbolEntry, slots map[uint64]string) {
	const entryLen = 24
	for ; len(data) >= entryLen; data = data[entryLen:] {
		addr := binary.LittleEndian.Uint64(data)
		info := binary.LittleEndian.Uint64(data[8:])
		addend := binary.LittleEndian.Uint64(data[16:])
		var symbol symbolEntry
		if index := info >> 32; index > 0 && index <= uint64(len(dynamic)) {
			symbol = dynamic[index-1]
		}
		switch elf.R_X86_64(uint32(info)) {
		case elf.R_X86_64_RELATIVE:
			im.relocations[addr] = addend
		case elf.R_X86_64_IRELATIVE:
			im.resolvers = append(im.resolvers, addend)
		case elf.R_X86_64_64:
			if symbol.defined {
				im.relocations[addr] = symbol.value + addend
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
		im.relocations[addr] = binary.LittleEndian.Uint64(b)
	}
}

// readStubs adds to the imported slots the stubs that jump through them.
func (im *Image) readStubs(slots map[uint64]string) map[uint64]string {
	imports := make(map[uint64]string, 2*len(slots))
	for _, s := range im.Sections {
		if !s.Exec || !isStubs(s.Name) {
			continue
		}
		readStubs(s, slots, imports)
	}
	for slot, name := range slots {
		imports[slot] = name
	}
	return imports
}

func isStubs(section string) bool { return strings.HasPrefix(section, ".plt") }

// readStubs finds the stubs of a section: a jump through a slot, or a load of it into r11, from
// where retpolines jump (lld), behind an endbr64 or the symbol's number in r11 (mold), or both.
func readStubs(s Section, slots, imports map[uint64]string) {
	begin := 0
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
			}
			begin = next
		case !in.IsEndbr64() && !isNumber:
			begin = next
		}
	}
}
