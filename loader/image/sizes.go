package image

import (
	"debug/elf"
	"fmt"
	"io"
)

// Sizes are those of what an ELF file has, before any of it is read.
type Sizes struct {
	Mapped uint64 // bytes of the sections that Open reads
	Code   uint64 // bytes of those that are executable
	Frames uint64 // frame description entries, about
}

// ReadSizes reads the headers of an ELF file of size bytes, and nothing else; name is what errors
// call it. What they claim is not checked: Open does that.
func ReadSizes(r io.ReaderAt, size int64, name string) (s Sizes, err error) {
	defer func() { // debug/elf panics on some hostile files
		if p := recover(); p != nil {
			err = fmt.Errorf("read %s: malformed elf file: %v", name, p)
		}
	}()
	f, err := parse(r, size, name)
	if err != nil {
		return Sizes{}, err
	}
	const headerEntry, frameEntry = 8, 36 // bytes for each frame: of the index, of themselves
	for _, section := range f.Sections {
		if section.Flags&elf.SHF_ALLOC == 0 || section.Type == elf.SHT_NOBITS {
			continue
		}
		s.Mapped += min(section.FileSize, uint64(size)-min(uint64(size), s.Mapped))
		if section.Flags&elf.SHF_EXECINSTR != 0 {
			s.Code += min(section.FileSize, uint64(size))
		}
		switch section.Name {
		case ".eh_frame":
			s.Frames = max(s.Frames, section.FileSize/frameEntry)
		case ".eh_frame_hdr":
			s.Frames = max(s.Frames, section.FileSize/headerEntry)
		}
	}
	return s, nil
}
