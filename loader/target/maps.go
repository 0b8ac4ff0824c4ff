package target

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	Write  bool
	Shared bool // with others, also in what is written
}

// ExecutableMappings lists where the executable is mapped.
func (p *Process) ExecutableMappings() ([]Mapping, error) {
	exe, err := p.Executable()
	if err != nil {
		return nil, err
	}
	defer exe.Close()
	return p.Mappings(exe)
}

// Mappings lists where a file is mapped.
func (p *Process) Mappings(of *os.File) ([]Mapping, error) {
	id, err := inMaps(of)
	if err != nil {
		return nil, fmt.Errorf("look at %s of process %d: %w", of.Name(), p.PID, err)
	}
	var list []Mapping
	err = readMaps(p.proc("maps"), func(m Mapping, f FileID, _ string) {
		if f == id {
			list = append(list, m)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list the mappings of process %d: %w", p.PID, err)
	}
	return list, nil
}

// A Mapped is a mapping, and the file that it is of: the zero value where it is of none.
type Mapped struct {
	Mapping
	File FileID
	Name string // what /proc/PID/maps calls it
}

// AllMappings lists all mappings of the process.
func (p *Process) AllMappings() (list []Mapped, err error) {
	err = readMaps(p.proc("maps"), func(m Mapping, f FileID, name string) {
		if f.inode == 0 {
			f = FileID{}
		}
		list = append(list, Mapped{m, f, name})
	})
	if err != nil {
		return nil, fmt.Errorf("list all mappings of process %d: %w", p.PID, err)
	}
	return list, nil
}

// A Library is a file besides the executable that a process has mapped to run code of it.
type Library struct {
	Path string // in the process's own mount namespace: a name, and nothing to open
	code Mapping
	id   FileID
}

// Same reports whether two libraries are the same file.
func (l Library) Same(other Library) bool { return l.id == other.id }

// Libraries lists the libraries of the process, in the order of their addresses.
func (p *Process) Libraries() ([]Library, error) {
	exe, err := p.Executable()
	if err != nil {
		return nil, err
	}
	defer exe.Close()
	executable, err := inMaps(exe)
	if err != nil {
		return nil, fmt.Errorf("look at the executable of process %d: %w", p.PID, err)
	}
	seen := map[FileID]bool{executable: true}
	var list []Library
	err = readMaps(p.proc("maps"), func(m Mapping, f FileID, path string) {
		if m.Exec && f.inode != 0 && strings.HasPrefix(path, "/") && !seen[f] {
			seen[f] = true
			list = append(list, Library{p.libraryPath(m, path), m, f})
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list the libraries of process %d: %w", p.PID, err)
	}
	return list, nil
}

// libraryPath is the path of a mapped file, by what /proc/PID/maps calls it: there a newline in the
// name is \012, as those four characters are too.
func (p *Process) libraryPath(m Mapping, text string) string {
	link := p.mapFile(m)
	if strings.Contains(text, `\012`) {
		if path, err := os.Readlink(link); err == nil {
			text = path
		} else {
			text = strings.ReplaceAll(text, `\012`, "\n")
		}
	}
	return p.pathOf(link, text)
}

// CheckLibraries fails where the files of libraries cannot be opened for the lack of privileges:
// that is tried with the executable's.
func (p *Process) CheckLibraries() error {
	mappings, err := p.ExecutableMappings()
	if err != nil || len(mappings) == 0 {
		return err
	}
	f, err := os.Open(p.mapFile(mappings[0]))
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("open the libraries of process %d: %w: run wpptrace as root, with "+
			"CAP_CHECKPOINT_RESTORE, and CAP_DAC_READ_SEARCH where it is another user's", p.PID,
			err)
	}
	f.Close()
	return nil
}

// mapFile is by what name a mapping's file is opened.
func (p *Process) mapFile(m Mapping) string {
	return p.proc(fmt.Sprintf("map_files/%x-%x", m.Lo, m.Hi))
}

// openRegular opens what a name leads to unless it is a device or the like, which may do anything
// when it is opened.
func openRegular(name string) (*os.File, error) {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	place := os.NewFile(uintptr(fd), name)
	defer place.Close()
	info, err := place.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err != nil {
		return nil, err
	}
	return os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
}

// OpenLibrary opens a library by way of its mapping: it may have been deleted, or be out of our
// reach by its path.
func (p *Process) OpenLibrary(l Library) (*os.File, error) {
	return p.openMapped(l.code, l.id, l.Path)
}

// OpenCode opens the file that code is of, as OpenLibrary does.
func (p *Process) OpenCode(
	c Code,
) (*os.File, error) {
	return p.openMapped(c.Mapping, c.File, c.Name)
}

// openMapped opens the file of a mapping, which is to be one.
func (p *Process) openMapped(m Mapping, file FileID, name string) (*os.File, error) {
	f, err := openRegular(p.mapFile(m))
	if err != nil {
		return nil, fmt.Errorf("open %s of process %d: %w", name, p.PID,
			explainFUSE(p.mapFile(m), err))
	}
	id, err := inMaps(f)
	if err == nil && id != file {
		err = errors.New("another file has been mapped there meanwhile")
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open %s of process %d: %w", name, p.PID, err)
	}
	return f, nil
}

// A FileID is what /proc/PID/maps calls a file, the same in all processes and for all mappings of
// it; the zero value is none. It need not be what stat says: on btrfs a subvolume
// has a device of its own there, on overlayfs a file has a device and an inode of the layer that it
// is in.
type FileID struct {
	device string
	inode  uint64
}

// Numbers are the file's device, of which major and minor are numbers, and its inode.
func (f FileID) Numbers() (major, minor, inode uint64) {
	high, low, _ := strings.Cut(f.device, ":")
	major, _ = strconv.ParseUint(high, 16, 32)
	minor, _ = strconv.ParseUint(low, 16, 32)
	return major, minor, f.inode
}

// IDOf finds out what a file is called in /proc/PID/maps: it is mapped here, and looked up among
// our own mappings.
func IDOf(f *os.File) (FileID, error) {
	id, err := inMaps(f)
	if err != nil {
		return FileID{}, fmt.Errorf("look at %s: %w", f.Name(), err)
	}
	return id, nil
}

// inMaps is IDOf, whose caller says in its error which file it is.
func inMaps(file *os.File) (id FileID, err error) {
	data, err := unix.Mmap(int(file.Fd()), 0, 1, unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return FileID{}, fmt.Errorf("map it: %w", err)
	}
	defer unix.Munmap(data)
	at := addressOf(data)
	err = readMaps("/proc/self/maps", func(m Mapping, f FileID, _ string) {
		if m.Lo <= at && at < m.Hi {
			id = f
		}
	})
	return id, err
}

// addressOf is where memory of our own is.
func addressOf(data []byte) uint64 {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(data))))
}

// readMaps hands over the lines of a /proc/PID/maps.
func readMaps(path string, each func(m Mapping, f FileID, path string)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return scanMaps(f, each)
}

// scanMaps is readMaps of what is open.
func scanMaps(maps io.Reader, each func(m Mapping, f FileID, path string)) error {
	scan := bufio.NewScanner(maps)
	for scan.Scan() {
		if m, id, ok := parseMapping(scan.Text()); ok {
			each(m, id, mappedPath(scan.Text()))
		}
	}
	return scan.Err()
}

// mappedPath is what a line of /proc/PID/maps calls the file: what is left behind five fields. See
// Process.libraryPath.
func mappedPath(line string) string {
	const fields = 5
	for range fields {
		_, line, _ = strings.Cut(line, " ")
		line = strings.TrimLeft(line, " ")
	}
	return line
}

// parseMapping reads a line of /proc/PID/maps.
func parseMapping(line string) (m Mapping, id FileID, ok bool) {
	f := strings.Fields(line)
	if len(f) < 5 || len(f[1]) < 4 {
		return Mapping{}, FileID{}, false
	}
	lo, hi, found := strings.Cut(f[0], "-")
	if !found {
		return Mapping{}, FileID{}, false
	}
	var errs [4]error
	m.Lo, errs[0] = strconv.ParseUint(lo, 16, 64)
	m.Hi, errs[1] = strconv.ParseUint(hi, 16, 64)
	m.Offset, errs[2] = strconv.ParseUint(f[2], 16, 64)
	id.device = f[3]
	id.inode, errs[3] = strconv.ParseUint(f[4], 10, 64)
	m.Write, m.Exec, m.Shared = f[1][1] == 'w', f[1][2] == 'x', f[1][3] == 's'
	for _, err := range errs {
		if err != nil {
			return Mapping{}, FileID{}, false
		}
	}
	return m, id, true
}
