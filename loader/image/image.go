package image

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"wpptrace/internal/parallel"
	"wpptrace/loader/arch"
)

// An Image is an ELF file for x86-64, an executable or a shared object. All addresses are link-time
// addresses. What its fields and methods return is shared and must not be changed; with that, it is
// safe for concurrent use.
type Image struct {
	Name     string // base name of the file
	BuildID  string // in hex, "" if the file has none
	Machine  elf.Machine
	PIE      bool      // loaded at a base that the kernel chooses
	Entry    uint64    // 0 if there is none
	Needed   []string  // the shared libraries that it asks for, by name
	Segments []Segment // executable ones, sorted by address
	Sections []Section // sorted by address
	// code that .eh_frame describes, sorted by Lo, without overlap; stubs (.plt*) are left out
	Ranges []Range

	// Personalities are the personality routines that .eh_frame names itself, as in a file at a
	// fixed address: the unwinder calls them, and nothing else need name them.
	Personalities []uint64

	symbols     []Symbol
	relocations Relocations
	resolvers   []uint64
	patched     []uint64 // words with relocations that are not relative, sorted
	imports     map[uint64]string
	jumps       map[uint64]uint64
	foreign     []string

	file       elfFile
	passedOver error
	closer     io.Closer
	lines      func() (*Lines, error)
}

// OpenFile opens the file at path. The caller closes the image; until then it keeps a descriptor
// open for Lines.
func OpenFile(path string) (*Image, error) {
	f, size, err := OpenRegular(path)
	if err != nil {
		return nil, fmt.Errorf("open image: %w", err)
	}
	im, err := Open(f, size, path)
	if err != nil {
		f.Close()
		return nil, err
	}
	im.closer = f
	return im, nil
}

// Open reads an ELF file of size bytes; name is what errors call it. It reads the mapped parts and
// the symbol tables once, several at a time, about 15 ms for 7 MB. r must stay readable while
// Lines, or what it returns, is asked.
func Open(r io.ReaderAt, size int64, name string) (im *Image, err error) {
	defer func() { // debug/elf panics on some hostile files
		if p := recover(); p != nil {
			if elsewhere, ok := p.(*parallel.Panic); ok {
				p = elsewhere.Cause
			}
			im, err = nil, fmt.Errorf("read %s: malformed elf file: %v", name, p)
		}
	}()
	f, err := parse(r, size, name)
	if err != nil {
		return nil, err
	}
	if f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
		return nil, fmt.Errorf("%s is neither an executable nor a shared object", name)
	}
	if len(f.Sections) == 0 {
		return nil, fmt.Errorf("%s has no section headers: nothing distinguishes its code from "+
			"its data", name)
	}
	im = &Image{Name: filepath.Base(name), Machine: f.Machine, PIE: f.Type == elf.ET_DYN,
		Entry: f.Entry,
		file:  elfFile{parsed: f, size: size}}
	im.lines = sync.OnceValues(im.readLines)
	for _, read := range []func() error{im.readSegments, im.readSections, im.readBuildID,
		im.readNamesAndFrames} {
		if err := read(); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
	}
	return im, nil
}

// parse reads the headers of an ELF file for a machine that is known. It may panic on a hostile
// one.
func parse(r io.ReaderAt, size int64, name string) (*elf.File, error) {
	r = io.NewSectionReader(r, 0, size)
	if err := checkMachine(r, name); err != nil {
		return nil, err
	}
	if err := checkSections(r); err != nil {
		return nil, fmt.Errorf("read %s: malformed elf file: %w", name, err)
	}
	f, err := elf.NewFile(r)
	if err != nil {
		return nil, fmt.Errorf("read %s: malformed elf file: %w", name, err)
	}
	return f, nil
}

func (im *Image) readNamesAndFrames() error {
	var names, frames error
	parallel.Both(func() { names = im.readNames() }, func() { frames = im.readFrames() })
	return cmp.Or(names, frames)
}

// Close closes the file that OpenFile opened. What was read stays valid.
func (im *Image) Close() error {
	if im.closer == nil {
		return nil
	}
	return im.closer.Close()
}

// checkMachine says what a file is that is no ELF file for x86-64, from its first bytes.
func checkMachine(r io.ReaderAt, name string) error {
	var header [20]byte
	n, err := r.ReadAt(header[:], 0)
	switch {
	case err != nil && err != io.EOF:
		return fmt.Errorf("read %s: %w", name, err)
	case bytes.HasPrefix(header[:n], []byte("#!")):
		return fmt.Errorf("%s is a script, not an ELF program: trace its interpreter", name)
	case string(header[:4]) != elf.ELFMAG:
		return fmt.Errorf("%s is not an ELF program: name the file of one", name)
	case n < len(header):
		return fmt.Errorf("read %s: malformed elf file: it has %d bytes", name, n)
	}
	var order binary.ByteOrder = binary.LittleEndian
	if elf.Data(header[elf.EI_DATA]) == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	machine := elf.Machine(order.Uint16(header[18:]))
	_, err = arch.Of(machine)
	switch {
	case elf.Class(header[elf.EI_CLASS]) == elf.ELFCLASS32:
		return fmt.Errorf("%s is a 32-bit program: wpptrace traces x86-64 only", name)
	case err != nil || order != binary.LittleEndian:
		architecture := strings.ToLower(strings.TrimPrefix(machine.String(), "EM_"))
		return fmt.Errorf("%s is a program for %s: wpptrace traces x86-64 only", name, architecture)
	}
	return nil
}

func (im *Image) readSegments() error {
	for _, p := range im.file.parsed.Progs {
		if p.Type != elf.PT_LOAD || p.Flags&elf.PF_X == 0 {
			continue
		}
		if p.Off+p.Filesz < p.Off || p.Off+p.Filesz > uint64(im.file.size) || p.Memsz < p.Filesz ||
			p.Vaddr+p.Memsz < p.Vaddr {
			return fmt.Errorf("segment at %#x runs past the end of the file or of memory", p.Vaddr)
		}
		im.Segments = append(im.Segments,
			Segment{Addr: p.Vaddr, Offset: p.Off, FileLen: p.Filesz, MemLen: p.Memsz})
	}
	slices.SortFunc(im.Segments, func(a, b Segment) int { return cmp.Compare(a.Addr, b.Addr) })
	for i, s := range im.Segments[min(1, len(im.Segments)):] {
		if before := im.Segments[i]; s.Addr < before.Addr+before.MemLen {
			return fmt.Errorf("segments at %#x and %#x overlap", before.Addr, s.Addr)
		}
	}
	return nil
}

// readSections reads what is mapped and has bytes. Sections that share bytes of the file are
// refused, so that memory is bounded by the file's size, and what a file with holes claims is.
func (im *Image) readSections() error {
	budget, room := uint64(im.file.size), uint64(maxMapped)
	var readers []io.ReaderAt
	for _, s := range im.file.parsed.Sections {
		if both := elf.SHF_ALLOC | elf.SHF_COMPRESSED; s.Flags&both == both {
			return fmt.Errorf("section %s is mapped, and compressed: no program has such", s.Name)
		}
		if s.Flags&elf.SHF_ALLOC == 0 || s.Type == elf.SHT_NOBITS || s.Size == 0 {
			continue
		}
		if s.FileSize > budget || s.Offset > uint64(im.file.size)-s.FileSize {
			return fmt.Errorf("section %s overlaps another or runs past the end of the file",
				s.Name)
		}
		if s.Addr+s.FileSize < s.Addr {
			return fmt.Errorf("section %s runs past the end of memory", s.Name)
		}
		if s.FileSize > room {
			return fmt.Errorf("section %s: more than %d MB are mapped: no program is that large",
				s.Name, maxMapped>>20)
		}
		budget, room = budget-s.FileSize, room-s.FileSize
		exec := s.Flags&elf.SHF_EXECINSTR != 0
		if offset, ok := im.FileOffset(s.Addr); exec && (!ok || offset != s.Offset) {
			return fmt.Errorf("section %s is not where its segment is mapped", s.Name)
		}
		im.Sections = append(im.Sections,
			Section{Name: s.Name, Addr: s.Addr, Data: make([]byte, s.FileSize), Exec: exec,
				Writable: s.Flags&elf.SHF_WRITE != 0})
		readers = append(readers, s.ReaderAt)
	}
	if err := im.fill(readers); err != nil {
		return err
	}
	slices.SortFunc(im.Sections, func(a, b Section) int { return cmp.Compare(a.Addr, b.Addr) })
	for i, s := range im.Sections[min(1, len(im.Sections)):] {
		if before := im.Sections[i]; s.Addr < before.Addr+uint64(len(before.Data)) {
			return fmt.Errorf("sections %s and %s overlap", before.Name, s.Name)
		}
	}
	return nil
}

// fill reads what is in the sections, several at a time.
func (im *Image) fill(readers []io.ReaderAt) error {
	errs := make([]error, len(readers))
	parallel.Each(len(readers), func(i int) {
		if _, err := readers[i].ReadAt(im.Sections[i].Data, 0); err != nil {
			errs[i] = fmt.Errorf("section %s: %w", im.Sections[i].Name, err)
		}
	})
	return cmp.Or(errs...)
}

// Section returns the section with that name, or nil.
func (im *Image) Section(name string) *Section {
	for i := range im.Sections {
		if im.Sections[i].Name == name {
			return &im.Sections[i]
		}
	}
	return nil
}

// SectionAt returns the section that addr lies in, or nil.
func (im *Image) SectionAt(addr uint64) *Section {
	from, to := 0, len(im.Sections)
	for from < to { // by hand: a function that compares gets copies of sections
		if middle := (from + to) / 2; im.Sections[middle].Addr <= addr {
			from = middle + 1
		} else {
			to = middle
		}
	}
	if from == 0 || addr-im.Sections[from-1].Addr >= uint64(len(im.Sections[from-1].Data)) {
		return nil
	}
	return &im.Sections[from-1]
}

// Bytes returns the bytes from lo to hi (exclusive), shared, or nil when they do not lie in one
// section.
func (im *Image) Bytes(lo, hi uint64) []byte {
	s := im.SectionAt(lo)
	if s == nil || hi < lo || hi-s.Addr > uint64(len(s.Data)) {
		return nil
	}
	return s.Data[lo-s.Addr : hi-s.Addr : hi-s.Addr]
}

// FileOffset returns where in the file the code at addr is; it answers false outside of the
// executable segments.
func (im *Image) FileOffset(addr uint64) (uint64, bool) {
	for _, s := range im.Segments {
		if addr >= s.Addr && addr-s.Addr < s.FileLen {
			return addr - s.Addr + s.Offset, true
		}
	}
	return 0, false
}

// Address is the link-time address of the code at an offset in the file, the reverse of FileOffset.
func (im *Image) Address(offset uint64) (uint64, bool) {
	for _, s := range im.Segments {
		if offset >= s.Offset && offset-s.Offset < s.FileLen {
			return offset - s.Offset + s.Addr, true
		}
	}
	return 0, false
}

func (im *Image) readBuildID() error {
	if s := im.Section(".note.gnu.build-id"); s != nil {
		im.BuildID = buildID(s.Data)
	}
	return nil
}

// buildID reads the note that the linker leaves, 16 or 20 bytes as a rule: in hex, or "" if it is
// none.
func buildID(note []byte) string {
	const maxIDLen = 64
	if len(note) < 16 || string(note[12:16]) != "GNU\x00" {
		return ""
	}
	id := note[16:]
	n := binary.LittleEndian.Uint32(note[4:])
	if n > maxIDLen || int(n) > len(id) {
		return ""
	}
	return hex.EncodeToString(id[:n])
}

// readNames reads symbols, relocations and imports.
func (im *Image) readNames() error {
	static, err := im.staticSymbols()
	if err != nil {
		return err
	}
	dynamic, err := im.file.symbolTable(elf.SHT_DYNSYM)
	if err != nil {
		return err
	}
	// none, where the table is broken: nothing else depends on them
	im.Needed, _ = im.file.parsed.ImportedLibraries()
	im.symbols = functionSymbols(static, dynamic)
	slots := im.readRelocations(dynamic)
	im.imports = im.readStubs(slots)
	return nil
}

// IsGo reports whether the image is a program of Go, which has tables of its own in place of unwind
// information.
func (im *Image) IsGo() bool {
	return im.Section(".gopclntab") != nil || im.Section(".data.rel.ro.gopclntab") != nil
}
