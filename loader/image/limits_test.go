package image

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// A sparseFile is a file of 10 GB of which nearly nothing is on the disk.
type sparseFile []byte

const sparseSize = 10 << 30

func (f sparseFile) ReadAt(p []byte, at int64) (n int, err error) {
	n = int(min(int64(len(p)), max(sparseSize-at, 0)))
	clear(p[:n])
	if at < int64(len(f)) {
		copy(p[:n], f[at:])
	}
	if n < len(p) {
		err = io.EOF
	}
	return n, err
}

// claiming is smallELF with a section that claims a size, besides.
func claiming(name string, kind elf.SectionType, flags elf.SectionFlag, size uint64) sparseFile {
	var b elfBuilder
	b.add(".text", elf.SHT_PROGBITS, elf.SHF_ALLOC|elf.SHF_EXECINSTR, smallCode, 0,
		make([]byte, 64))
	b.add(".strtab", elf.SHT_STRTAB, 0, smallTable, 0, []byte("\x00f\x00"))
	b.add(name, kind, flags, smallTable+0x40, 2, make([]byte, 64))
	b.sections[len(b.sections)-1].Size = size
	return b.finish()
}

// A file may claim any size at no cost: what is refused for it is refused before it takes memory.
func TestSparseFiles(t *testing.T) {
	manyNames := claiming(".data", elf.SHT_PROGBITS, 0, 0)
	shoff := binary.LittleEndian.Uint64(manyNames[40:])
	names := shoff + 64*uint64(binary.LittleEndian.Uint16(manyNames[62:]))
	binary.LittleEndian.PutUint64(manyNames[names+32:], 9<<30)
	manySections := claiming(".data", elf.SHT_PROGBITS, 0, 0)
	binary.LittleEndian.PutUint16(manySections[60:], 0)
	binary.LittleEndian.PutUint64(manySections[shoff+32:], 1<<27)
	for _, c := range []struct {
		name string
		file sparseFile
		want string
	}{
		{"code", claiming(".init", elf.SHT_PROGBITS, elf.SHF_ALLOC|elf.SHF_EXECINSTR, 9<<30),
			"read it: section .init: more than 1024 MB are mapped: no program is that large"},
		{"data", claiming(".data", elf.SHT_PROGBITS, elf.SHF_ALLOC, 9<<30),
			"read it: section .data: more than 1024 MB are mapped: no program is that large"},
		{"compressed", claiming(".data", elf.SHT_PROGBITS, elf.SHF_ALLOC|elf.SHF_COMPRESSED, 64),
			"read it: section .data is mapped, and compressed: no program has such"},
		{"symbols", claiming(".symtab", elf.SHT_SYMTAB, 0, 9<<30),
			"read it: symbol table .symtab: it has more than 512 MB: no program has so many " +
				"symbols"},
		{"lines", claiming(".debug_line", elf.SHT_PROGBITS, 0, 9<<30),
			"read lines of it: section .debug_line: more than 2048 MB of debug information"},
		{"names of sections", manyNames, "read it: malformed elf file: 9663676416 bytes of names " +
			"for 5 sections: no program has so many"},
		{"sections", manySections, "read it: malformed elf file: 134217728 sections: no program " +
			"has so many"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		im, err := Open(c.file, sparseSize, "it")
		if err == nil {
			_, err = im.Lines()
		}
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
			t.Errorf("%s: it took %d bytes", c.name, took)
		}
	}
}

// namesOverlap makes a file with symbols of one name.
func namesOverlap(symbols, long int) []byte {
	entry := append(binary.LittleEndian.AppendUint32(nil, 1), 0x12, 0, 1, 0)
	entry = append(entry, make([]byte, 16)...)
	table := make([]byte, 24)
	for range symbols {
		table = append(table, entry...)
	}
	var b elfBuilder
	b.add(".text", elf.SHT_PROGBITS, elf.SHF_ALLOC|elf.SHF_EXECINSTR, smallCode, 0,
		make([]byte, 64))
	b.add(".strtab", elf.SHT_STRTAB, 0, smallTable, 0,
		[]byte("\x00"+strings.Repeat("f", long)+"\x00"))
	b.add(".symtab", elf.SHT_SYMTAB, 0, smallTable+2*uint64(long), 2, table)
	return b.finish()
}

// Names that overlap are many times what they take in the file.
func TestSymbolNamesOverlap(t *testing.T) {
	const symbols, long = 1000, 20_000
	if im, err := Open(sparseFile(namesOverlap(10, long)), sparseSize, "it"); err != nil ||
		len(im.Symbols()) != 10 {
		t.Errorf("names that are shared: %v", err)
	}
	if _, err := Open(sparseFile(namesOverlap(symbols, long)), sparseSize, "it"); err == nil ||
		err.Error() != "read it: names of symbol table .symtab overlap" {
		t.Errorf("%d names of %d bytes in a table of %d: %v", symbols, long, long, err)
	}
}

// What is no regular file is neither read nor waited for.
func TestOpenRegular(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, dir, "/dev/zero"} {
		if f, _, err := OpenRegular(path); err == nil || f != nil ||
			err.Error() != path+" is no regular file" {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, _, err := OpenRegular(filepath.Join(dir, "none")); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("what is not there: %v", err)
	}
}

// A program for another machine's order of bytes is refused, whatever machine it names.
func TestBigEndian(t *testing.T) {
	file := patched(patched(smallELF(), elf.EI_DATA, byte(elf.ELFDATA2MSB)), 18, 0,
		byte(elf.EM_X86_64))
	if _, err := Open(sparseFile(file), sparseSize, "it"); err == nil ||
		!strings.HasSuffix(err.Error(), "wpptrace traces x86-64 only") {
		t.Error(err)
	}
}
