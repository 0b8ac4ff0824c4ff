package truth

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// librarySpace is what lies between the addresses of one library and those of the next in a trace.
const librarySpace = 1 << 44

// Placed is an address of a library in a trace: libraries[i] is the one with that name; any other
// name is the executable's.
func Placed(libraries []string, name string, addr uint64) uint64 {
	return addr + uint64(slices.Index(libraries, name)+1)*librarySpace
}

// An atlas knows which image is where in a process. Libraries come and go: it looks again whenever
// control passes from one mapping to another.
type atlas struct {
	pid       int
	exe       *image
	libraries []string          // base names
	within    Routines          // what of them is recorded; nil: all
	images    map[string]*image // by path
	present   []*image          // of them, those that are mapped
	here      area
}

// An area is a mapping.
type area struct {
	lo, hi uint64
	img    *image // nil: none of those that are recorded
}

// all lists the images that are mapped.
func (a *atlas) all() []*image { return append([]*image{a.exe}, a.present...) }

// at returns the image whose text holds a run-time address, or nil.
func (a *atlas) at(pc uint64) (*image, error) {
	if a.exe.contains(pc) {
		return a.exe, nil
	}
	if len(a.libraries) == 0 {
		return nil, nil
	}
	if pc < a.here.lo || pc >= a.here.hi {
		if err := a.look(pc); err != nil {
			return nil, err
		}
	}
	if img := a.here.img; img != nil && img.contains(pc) {
		return img, nil
	}
	return nil, nil
}

// look finds out what is mapped, and where pc is.
func (a *atlas) look(pc uint64) error {
	if len(a.libraries) == 0 {
		return nil
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", a.pid))
	if err != nil {
		return fmt.Errorf("look for libraries: %w", err)
	}
	defer f.Close()
	a.here, a.present = area{}, nil
	for scan := bufio.NewScanner(f); scan.Scan(); {
		fields := strings.Fields(scan.Text()) // addresses, mode, offset, device, inode, path
		if len(fields) < 5 || fields[1][2] != 'x' {
			continue
		}
		var m area
		var offset uint64
		if _, err := fmt.Sscanf(fields[0]+" "+fields[2], "%x-%x %x", &m.lo, &m.hi,
			&offset); err != nil {
			return fmt.Errorf("look for libraries: mapping %q: %w", scan.Text(), err)
		}
		path := ""
		if len(fields) > 5 {
			path = fields[5]
		}
		if slices.Contains(a.libraries, filepath.Base(path)) {
			if m.img, err = a.library(path, m.lo, offset); err != nil {
				return err
			}
			a.present = append(a.present, m.img)
		}
		if m.lo <= pc && pc < m.hi {
			a.here = m
		}
	}
	return nil
}

// library opens a library, and notes where it is mapped now.
func (a *atlas) library(path string, lo, offset uint64) (img *image, err error) {
	if img = a.images[path]; img == nil {
		if img, err = openImage(path); err != nil {
			return nil, err
		}
		img.space = Placed(a.libraries, filepath.Base(path), 0)
		img.mapped = img.segments
		img.restrict(a.within)
		if a.images == nil {
			a.images = map[string]*image{}
		}
		a.images[path] = img
	}
	const page = 4096
	for _, s := range img.mapped {
		if s.offset&^(page-1) == offset {
			img.bias = lo - s.lo&^(page-1)
			return img, nil
		}
	}
	return nil, fmt.Errorf("%s is mapped at %x from %x on, where it has no code", path, lo, offset)
}
