package cfg

import (
	"maps"
	"slices"

	"wpptrace/loader/image"
)

// A file is what an image says of its code, and its code of itself, before control is followed:
// what mentions what, and by which names. What is indexed by instruction covers the whole file.
type file struct {
	code           *code
	im             *image.Image
	imports        map[uint64]string
	importsLibc    bool // the C library is another image
	references     *references
	insnReferences *references // those by instructions that are no indirect jumps
	// those by anything but instructions of routines and dynamic symbols
	dataReferences *references
	local          map[uint64]bool           // by entry: its name is static
	parts          map[uint64][]image.Symbol // by address: those that name parts of routines
	pointedParts   []int                     // pieces: see findPointedParts
}

func readFile(im *image.Image, c *code) *file {
	f := &file{code: c, im: im, imports: im.Imports(), local: map[uint64]bool{},
		parts: map[uint64][]image.Symbol{}}
	f.importsLibc = slices.Contains(slices.Collect(maps.Values(f.imports)), "__libc_start_main")
	f.references, f.insnReferences, f.dataReferences = collectReferences(im, c)
	return f
}
