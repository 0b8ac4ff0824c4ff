package image

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// What a file may claim. One with holes claims terabytes at no cost; the largest programs there are
// stay below these by a factor of two.
const (
	maxMapped = 1 << 30   // bytes of sections that are mapped
	maxTable  = 512 << 20 // bytes of a symbol table, and of its names
	maxDebug  = 2 << 30   // bytes of debug information, unpacked
	maxRows   = 1 << 26   // of line tables
	maxLine   = 1 << 30
	maxName   = 1 << 16 // bytes

	maxDebugNames = 8 << 30   // bytes of names that are read in all
	maxRangeLists = 256 << 20 // bytes
	maxRanges     = 1 << 26   // that are read in all
	maxCalls      = 1 << 22   // that are inlined, in units that are looked at
	maxCallDepth  = 250
	maxScopes     = 1 << 22 // of names, that are read in all
	maxScopeDepth = 32

	maxSections     = 1 << 16
	maxSectionNames = 64 << 20 // bytes, where each section's name were all that there are
)

// nameBudget is how many bytes the names of a symbol table may have that share those of its table
// of names: linkers let some share, a hostile file all.
func nameBudget(symbols, bytes int) int {
	const average, shares = 256, 16
	return average*symbols + shares*bytes
}

// OpenRegular opens a file, and waits for nobody meanwhile, as the opening of a named pipe does.
// The caller closes it.
func OpenRegular(path string) (f *os.File, size int64, err error) {
	f, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	return regular(f)
}

// regular returns a file and its size if it is a regular one, and closes any other.
func regular(f *os.File) (*os.File, int64, error) {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", f.Name())
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// checkSections fails where the headers of sections claim more than there can be: debug/elf makes a
// copy of the name of each. What else is wrong with them it says itself.
func checkSections(r io.ReaderAt) error {
	var h elf.Header64
	if binary.Read(io.NewSectionReader(r, 0, 1<<16), binary.LittleEndian, &h) != nil ||
		h.Shoff == 0 {
		return nil
	}
	header := func(i uint64) (s elf.Section64) {
		// of a file that is cut off, none
		binary.Read(io.NewSectionReader(r, int64(h.Shoff+i*uint64(h.Shentsize)), 1<<16),
			binary.LittleEndian, &s)
		return s
	}
	sections, names := uint64(h.Shnum), uint64(h.Shstrndx)
	if sections == 0 { // there are more than the header has room for
		sections = header(0).Size
	}
	if names == uint64(elf.SHN_XINDEX) {
		names = uint64(header(0).Link)
	}
	if sections > maxSections {
		return fmt.Errorf("%d sections: no program has so many", sections)
	}
	if size := header(names).Size; size > maxSectionNames/max(sections, 1) {
		return fmt.Errorf("%d bytes of names for %d sections: no program has so many", size,
			sections)
	}
	return nil
}
