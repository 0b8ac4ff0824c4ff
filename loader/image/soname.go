package image

import (
	"debug/elf"
	"io"
)

// Soname is what a shared library calls itself (DT_SONAME): the name under which those need it that
// are linked with it. It is "" where it has none, and where r is no such file. Cost: some 50 us.
func Soname(r io.ReaderAt) (name string) {
	defer func() { // debug/elf panics on some hostile files
		if recover() != nil {
			name = ""
		}
	}()
	if checkSections(r) != nil {
		return ""
	}
	f, err := elf.NewFile(r)
	if err != nil {
		return ""
	}
	if list, err := f.DynString(elf.DT_SONAME); err == nil && len(list) > 0 {
		return list[0]
	}
	return ""
}
