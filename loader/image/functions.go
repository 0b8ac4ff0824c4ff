package image

import (
	"debug/elf"
	"fmt"
	"io"
	"slices"
)

// Functions are what an ELF file calls its code: its symbols, and where they are in the file.
type Functions struct {
	image   Image // its segments alone
	symbols []Symbol
}

// ReadFunctions reads the symbol tables of an ELF file of size bytes, and nothing else; name is
// what errors call it. Cost: some milliseconds for 10,000 symbols, and 100 bytes of memory for
// each.
func ReadFunctions(r io.ReaderAt, size int64, name string) (f *Functions, err error) {
	defer func() { // debug/elf panics on some hostile files
		if p := recover(); p != nil {
			f, err = nil, fmt.Errorf("read %s: malformed elf file: %v", name, p)
		}
	}()
	parsed, err := parse(r, size, name)
	if err != nil {
		return nil, err
	}
	f = &Functions{image: Image{file: elfFile{parsed: parsed, size: size}}}
	if err := f.image.readSegments(); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	static, err := f.image.file.symbolTable(elf.SHT_SYMTAB)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	dynamic, err := f.image.file.symbolTable(elf.SHT_DYNSYM)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	f.symbols = functionSymbols(static, dynamic)
	return f, nil
}

// At is the name, demangled, of the function that has the code at an offset in the file; "": none
// has. Of several names one is chosen, the same for all offsets.
func (f *Functions) At(offset uint64) string {
	const most = 64 // symbols that begin before one that has the code, and do not
	at, ok := f.image.Address(offset)
	if !ok {
		return ""
	}
	i, _ := slices.BinarySearchFunc(f.symbols, at, func(s Symbol, at uint64) int {
		if s.Addr <= at {
			return -1
		}
		return 1
	})
	for j := i - 1; j >= max(0, i-most); j-- {
		if s := &f.symbols[j]; at-s.Addr < s.Size {
			first := j
			for first > 0 && f.symbols[first-1].Addr == s.Addr &&
				f.symbols[first-1].Size > at-s.Addr {
				first--
			}
			return Demangle(f.symbols[first].Name)
		}
	}
	return ""
}
