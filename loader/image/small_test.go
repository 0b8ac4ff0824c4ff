package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// The layout of smallELF: its code is at smallCode, its tables follow.
const (
	smallCode   = 0x1000
	smallFrames = 0x1100
	smallTable  = 0x1200
)

// smallELF makes a shared object of a few kilobytes with everything in it that Open reads: one
// function of 16 bytes with unwind rows and a landing pad, a stub, relocations of each form, and
// symbols.
func smallELF() []byte {
	le := binary.LittleEndian
	code := append(bytes.Repeat([]byte{0x90}, 15), 0xc3)
	stub := []byte{0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25}
	stub = le.AppendUint32(stub, smallTable+0x188-(smallCode+0x40+10))
	names := []byte("\x00f\x00puts\x00")
	symbols := make([]byte, 24)
	symbols = append(le.AppendUint32(symbols, 1), 0x12, 0, 1, 0)
	symbols = le.AppendUint64(le.AppendUint64(symbols, smallCode), 16)
	symbols = append(le.AppendUint32(symbols, 3), 0x12, 0, 0, 0)
	symbols = le.AppendUint64(le.AppendUint64(symbols, 0), 0)
	var rela []byte
	for _, r := range [][3]uint64{{smallTable + 0x180, 8, smallCode},
		{smallTable + 0x188, 2<<32 | 7, 0}, {smallTable + 0x190, 37, smallCode + 8},
		{smallTable + 0x198, 1<<32 | 1, 4}} {
		rela = le.AppendUint64(le.AppendUint64(le.AppendUint64(rela, r[0]), r[1]), r[2])
	}
	relr := le.AppendUint64(le.AppendUint64(nil, smallTable+0x180), 0b111)
	note := append(le.AppendUint32(le.AppendUint32(le.AppendUint32(nil, 4), 4), 3),
		"GNU\x00\xc0\xff\xee\x00"...)

	var b elfBuilder
	b.add(".text", elf.SHT_PROGBITS, elf.SHF_ALLOC|elf.SHF_EXECINSTR, smallCode, 0, code)
	b.add(".plt.sec", elf.SHT_PROGBITS, elf.SHF_ALLOC|elf.SHF_EXECINSTR, smallCode+0x40, 0, stub)
	b.add(".eh_frame", elf.SHT_PROGBITS, elf.SHF_ALLOC, smallFrames, 0, smallFrameData())
	b.add(".gcc_except_table", elf.SHT_PROGBITS, elf.SHF_ALLOC, smallTable, 0, smallCallSites())
	b.add(".dynsym", elf.SHT_DYNSYM, elf.SHF_ALLOC, smallTable+0x40, 6, symbols)
	b.add(".dynstr", elf.SHT_STRTAB, elf.SHF_ALLOC, smallTable+0xa0, 0, names)
	b.add(".rela.dyn", elf.SHT_RELA, elf.SHF_ALLOC, smallTable+0xc0, 5, rela)
	b.add(".relr.dyn", shtRELR, elf.SHF_ALLOC, smallTable+0x140, 0, relr)
	b.add(".note.gnu.build-id", elf.SHT_NOTE, elf.SHF_ALLOC, smallTable+0x160, 0, note)
	b.add(".data", elf.SHT_PROGBITS, elf.SHF_ALLOC|elf.SHF_WRITE, smallTable+0x180, 0,
		bytes.Repeat([]byte{0x11}, 0x20))
	return b.finish()
}

// smallFrameData describes code of 16 bytes at smallCode that pushes a register, with a call-site
// table at smallTable.
func smallFrameData() []byte {
	le := binary.LittleEndian
	common := append([]byte{0, 0, 0, 0, 1}, "zLR\x00"...)
	common = append(common, 1, 0x78, 16, 2, 0x1b, 0x1b, defCFA, 7, 8, offset<<6|16, 1)
	common = append(common, make([]byte, (4-len(common)%4)%4)...)
	data := append(le.AppendUint32(nil, uint32(len(common))), common...)

	entryAt := len(data)
	entry := le.AppendUint32(nil, uint32(entryAt+4))
	entry = le.AppendUint32(entry, smallCode-(smallFrames+uint32(entryAt)+8))
	entry = le.AppendUint32(entry, 16)
	entry = append(entry, 4)
	entry = le.AppendUint32(entry, smallTable-(smallFrames+uint32(entryAt)+17))
	entry = append(entry, advanceLoc<<6|1, defCFAOffset, 16, advanceLoc<<6|14, defCFAOffset, 8)
	entry = append(entry, make([]byte, (4-len(entry)%4)%4)...)
	data = append(le.AppendUint32(data, uint32(len(entry))), entry...)
	return append(data, 0, 0, 0, 0)
}

// smallCallSites says that what is thrown in bytes 2 to 6 lands at byte 10, and what is thrown in 8
// to 9 nowhere.
func smallCallSites() []byte {
	return []byte{0xff, 0xff, formatULEB, 8, 2, 4, 10, 1, 8, 1, 0, 0}
}

// An elfBuilder lays sections out at file offsets equal to their addresses, in one executable
// segment.
type elfBuilder struct {
	file     []byte
	names    []byte
	sections []elf.Section64
}

func (b *elfBuilder) add(name string, kind elf.SectionType, flags elf.SectionFlag, addr uint64,
	link uint32, data []byte) {
	if len(b.sections) == 0 {
		b.file, b.names = make([]byte, addr), []byte{0}
		b.sections = append(b.sections, elf.Section64{})
	}
	b.file = append(b.file, make([]byte, int(addr)-len(b.file))...)
	b.file = append(b.file, data...)
	b.sections = append(b.sections, elf.Section64{
		Name: uint32(len(b.names)), Type: uint32(kind), Flags: uint64(flags), Addr: addr, Off: addr,
		Size: uint64(len(data)), Link: link,
	})
	b.names = append(append(b.names, name...), 0)
}

func (b *elfBuilder) finish() []byte {
	const headerLen, programLen = 64, 56
	mapped := uint64(len(b.file))
	b.add(".shstrtab", elf.SHT_STRTAB, 0, mapped, 0, nil)
	last := &b.sections[len(b.sections)-1]
	last.Addr, last.Size = 0, uint64(len(b.names))
	b.file = append(b.file, b.names...)

	header := elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, Type: uint16(elf.ET_DYN),
		Machine: uint16(elf.EM_X86_64), Version: 1,
		Entry: smallCode, Phoff: headerLen, Shoff: uint64(len(b.file)), Ehsize: headerLen,
		Phentsize: programLen, Phnum: 1,
		Shentsize: 64, Shnum: uint16(len(b.sections)), Shstrndx: uint16(len(b.sections) - 1),
	}
	program := elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X),
		Filesz: mapped, Memsz: mapped}
	var head, table bytes.Buffer
	binary.Write(&head, binary.LittleEndian, header)
	binary.Write(&head, binary.LittleEndian, program)
	binary.Write(&table, binary.LittleEndian, b.sections)
	copy(b.file, head.Bytes())
	return append(b.file, table.Bytes()...)
}
