package target

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// A Region is a piece of the memory of a process.
type Region struct {
	Mapping
	OfFile bool // that was asked about; else the mapping is of another one, or of none
}

// Regions lists the memory of the process from lo to hi, in the order of its addresses, and which
// of it is a file's. What is not mapped is in none.
func (p *Process) Regions(of *os.File, lo, hi uint64) ([]Region, error) {
	id, err := inMaps(of)
	if err != nil {
		return nil, fmt.Errorf("look at %s of process %d: %w", of.Name(), p.PID, err)
	}
	var list []Region
	err = readMaps(p.proc("maps"), func(m Mapping, f FileID, _ string) {
		if m.Lo < hi && lo < m.Hi {
			list = append(list, Region{m, f == id})
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list the memory of process %d: %w", p.PID, err)
	}
	return list, nil
}

// CopiedUp reports whether the process has in a region of a file what was the file before overlayfs
// copied it to its upper layer, as it does when the file is first written to, or its owner or mode
// changed. By all names the two are one file, but the kernel, and probes, take them for two. It is
// found out by whether a page of the region is one of the file as it is now: for that
// CAP_SYS_ADMIN is needed. Without, and where no page can be compared, it answers false.
func (p *Process) CopiedUp(of *os.File, r Region) (bool, error) {
	if !OnOverlay(of) {
		return false, nil
	}
	const enough, most = 3, 64 // pages that are others; pages that are looked at
	others := 0
	for n := uint64(0); n < most && r.Lo+n*pageSize < r.Hi && others < enough; n++ {
		same, known, err := p.samePage(of, r.Offset+n*pageSize, r.Lo+n*pageSize)
		switch {
		case errors.Is(err, fs.ErrPermission):
			return false, nil
		case err != nil:
			return false, err
		case known && same:
			return false, nil
		case known:
			others++
		}
	}
	return others > 0, nil
}

// OnOverlay reports whether a file is on overlayfs, as the files of containers are.
func OnOverlay(f *os.File) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(int(f.Fd()), &st) == nil && st.Type == unix.OVERLAYFS_SUPER_MAGIC
}

const pageSize = 4096

// samePage reports whether a page of the process is that of a file at an offset. It is not known
// where the kernel does not say, or is moving the page, or the process has a copy of its own.
func (p *Process) samePage(of *os.File, offset, at uint64) (same, known bool, err error) {
	var touched [1]byte
	if err := p.ReadMemory(touched[:], at); err != nil {
		return false, false, err
	}
	const flags = unix.MAP_PRIVATE | unix.MAP_POPULATE
	own, err := unix.Mmap(int(of.Fd()), int64(offset), pageSize, unix.PROT_READ, flags)
	if err != nil {
		return false, false, fmt.Errorf("map %s: %w", of.Name(), err)
	}
	defer unix.Munmap(own)
	const tries = 3
	for range tries {
		before, err := frameOf(p.proc("pagemap"), at)
		if err != nil {
			return false, false, err
		}
		ours, err := frameOf("/proc/self/pagemap", addressOf(own))
		if err != nil {
			return false, false, err
		}
		after, err := frameOf(p.proc("pagemap"), at)
		if err != nil {
			return false, false, err
		}
		if before == after && before != 0 && ours != 0 {
			return before == ours, true, nil
		}
	}
	return false, false, nil
}

// frameOf is the page frame that is mapped at an address, by what a process's pagemap says
// (Documentation/admin-guide/mm/pagemap.rst); 0: there is none, or it is no file's, or the kernel
// does not say.
func frameOf(pagemap string, at uint64) (uint64, error) {
	const (
		entry   = 8 // bytes
		present = 1 << 63
		ofFile  = 1 << 61
		frame   = 1<<55 - 1
	)
	f, err := os.Open(pagemap)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var b [entry]byte
	if _, err := f.ReadAt(b[:], int64(at/pageSize*entry)); err != nil {
		return 0, fmt.Errorf("read %s: %w", pagemap, err)
	}
	v := binary.NativeEndian.Uint64(b[:])
	if v&present == 0 || v&ofFile == 0 {
		return 0, nil
	}
	return v & frame, nil
}
