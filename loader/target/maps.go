package target

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Mapping is a part of a file in the memory of a process.
type Mapping struct {
	Lo, Hi uint64
	Offset uint64 // in the file
	Exec   bool
}

// ExecutableMappings lists where the executable is mapped.
func (p *Process) ExecutableMappings() ([]Mapping, error) {
	executable, err := p.executableInMaps()
	if err != nil {
		return nil, fmt.Errorf("look at the executable of process %d: %w", p.PID, err)
	}
	var list []Mapping
	err = readMaps(p.proc("maps"), func(m Mapping, f fileID) {
		if f == executable {
			list = append(list, m)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list the mappings of process %d: %w", p.PID, err)
	}
	return list, nil
}

// A fileID is what /proc/PID/maps calls a file. It need not be what stat says: on btrfs a subvolume has a device of its own there, on overlayfs a
// file has a device and an inode of the layer that it is in.
type fileID struct {
	device string
	inode  uint64
}

// executableInMaps finds out what the executable is called in maps: it is mapped here, and looked up among our own mappings.
func (p *Process) executableInMaps() (id fileID, err error) {
	exe, err := p.Executable()
	if err != nil {
		return fileID{}, err
	}
	defer exe.Close()
	data, err := unix.Mmap(int(exe.Fd()), 0, 1, unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return fileID{}, fmt.Errorf("map it: %w", err)
	}
	defer unix.Munmap(data)
	at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(data))))
	err = readMaps("/proc/self/maps", func(m Mapping, f fileID) {
		if m.Lo <= at && at < m.Hi {
			id = f
		}
	})
	return id, err
}

// readMaps hands over the lines of a /proc/PID/maps.
func readMaps(path string, each func(Mapping, fileID)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	scan := bufio.NewScanner(f)
	for scan.Scan() {
		if m, id, ok := parseMapping(scan.Text()); ok {
			each(m, id)
		}
	}
	return scan.Err()
}

// parseMapping reads a line of /proc/PID/maps.
func parseMapping(line string) (m Mapping, id fileID, ok bool) {
	f := strings.Fields(line)
	if len(f) < 5 || len(f[1]) < 4 {
		return Mapping{}, fileID{}, false
	}
	lo, hi, found := strings.Cut(f[0], "-")
	if !found {
		return Mapping{}, fileID{}, false
	}
	var errs [4]error
	m.Lo, errs[0] = strconv.ParseUint(lo, 16, 64)
	m.Hi, errs[1] = strconv.ParseUint(hi, 16, 64)
	m.Offset, errs[2] = strconv.ParseUint(f[2], 16, 64)
	id.device = f[3]
	id.inode, errs[3] = strconv.ParseUint(f[4], 10, 64)
	m.Exec = f[1][2] == 'x'
	for _, err := range errs {
		if err != nil {
			return Mapping{}, fileID{}, false
		}
	}
	return m, id, true
}
