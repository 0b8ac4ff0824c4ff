package sample

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/loader/target"
)

// A placed is samples at an address of code that no file has.
type placed struct {
	hit
	mapping string
	name    string // of the routine, "" if it is not known
}

// A nameMap reads names of code of no file in /tmp/perf-PID.map, which just-in-time compilers write
// when they are asked to (node --perf-basic-prof, java -XX:+DumpPerfMapAtExit and others). The file
// is the process's, which may have anything there: it is looked up inside the process's root,
// opened if it is a regular file of the process's user, and read up to a size, for a time.
type nameMap struct {
	root int // of the process's mount namespace; -1: there are no names
	pid  int // as the process itself has it
	uids []uint32
}

// Bounds of the file, and of the time that its file system may take: it may be a process's.
const (
	maxNameFile  = 32 << 20
	maxName      = 256
	mostFound    = 4 << 20 // times that an address is given a name
	namePatience = 500 * time.Millisecond
)

var errTooMuch = errors.New("its lines overlap too much")

func newNameMap(p *target.Process) *nameMap {
	none := &nameMap{root: -1}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID))
	if err != nil {
		return none
	}
	m := &nameMap{root: -1, pid: p.PID}
	for line := range strings.Lines(string(status)) {
		key, values, _ := strings.Cut(line, ":")
		fields := strings.Fields(values)
		switch {
		case key == "NSpid" && len(fields) > 0:
			m.pid, err = strconv.Atoi(fields[len(fields)-1])
			if err != nil {
				return none
			}
		case key == "Uid":
			for _, f := range fields {
				if uid, err := strconv.ParseUint(f, 10, 32); err == nil {
					m.uids = append(m.uids, uint32(uid))
				}
			}
		}
	}
	root := fmt.Sprintf("/proc/%d/root", p.PID)
	if m.root, err = unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return none
	}
	return m
}

func (m *nameMap) close() {
	if m.root >= 0 {
		unix.Close(m.root)
		m.root = -1
	}
}

// resolve sets the names of those whose names are in the file. A file system that takes too long is
// not asked again.
func (m *nameMap) resolve(list []placed) {
	if m.root < 0 || len(list) == 0 {
		return
	}
	slices.SortFunc(list, func(a, b placed) int { return cmp.Compare(a.at, b.at) })
	addresses := make([]uint64, len(list))
	for i := range list {
		addresses[i] = list[i].at
	}
	root, err := unix.FcntlInt(uintptr(m.root), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return
	}
	done := make(chan []string, 1)
	go func() {
		defer unix.Close(root)
		names := make([]string, len(addresses))
		if f, err := m.open(root); err == nil {
			defer f.Close()
			_ = findNames(f, addresses, names) // those that were found are as good
		}
		done <- names
	}()
	select {
	case names := <-done:
		for i := range list {
			list[i].name = names[i]
		}
	case <-time.After(namePatience):
		m.close()
	}
}

// open opens the file, at the last maxNameFile bytes of it: what is written last holds.
func (m *nameMap) open(root int) (*os.File, error) {
	name := fmt.Sprintf("tmp/perf-%d.map", m.pid)
	fd, err := unix.Openat2(root, name, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	var st unix.Stat_t
	switch err := unix.Fstat(fd, &st); {
	case err != nil:
		f.Close()
		return nil, err
	case st.Mode&unix.S_IFMT != unix.S_IFREG || !slices.Contains(m.uids, st.Uid):
		f.Close()
		return nil, fmt.Errorf("%s is no regular file of the process's user", name)
	case st.Size > maxNameFile:
		if _, err := f.Seek(st.Size-maxNameFile, io.SeekStart); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

// findNames sets the names of addresses, which are sorted, by lines "START SIZE name", both numbers
// in hex. The last line that covers an address holds. Lines that are something else are passed
// over. Names are made printable.
func findNames(r io.Reader, addresses []uint64, names []string) error {
	const chunk = 64 << 10
	found, left := make([][]byte, len(addresses)), mostFound
	buffer, kept := make([]byte, chunk), 0
	defer func() {
		for i, name := range found {
			names[i] = printable(name)
		}
	}()
	tooLong := false // the line that has begun
	for read := 0; read < maxNameFile; {
		n, err := r.Read(buffer[kept:])
		read += n
		rest := buffer[:kept+n]
		for {
			line, after, whole := bytes.Cut(rest, []byte{'\n'})
			if !whole {
				break
			}
			if !tooLong {
				left -= findName(line, addresses, found)
			}
			if left <= 0 {
				return errTooMuch
			}
			tooLong, rest = false, after
		}
		if err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		if kept = copy(buffer, rest); kept == len(buffer) {
			tooLong, kept = true, 0
		}
	}
	return nil
}

// findName notes the name of a line for the addresses that it covers, and returns how many.
func findName(line []byte, addresses []uint64, found [][]byte) (n int) {
	start, rest, ok := bytes.Cut(line, []byte{' '})
	if !ok {
		return 0
	}
	size, name, ok := bytes.Cut(rest, []byte{' '})
	lo, okLo := parseHex(start)
	length, okSize := parseHex(size)
	if !ok || !okLo || !okSize || lo+length < lo {
		return 0
	}
	i, _ := slices.BinarySearch(addresses, lo)
	for ; i < len(addresses) && addresses[i] < lo+length; i++ {
		found[i] = append(found[i][:0], name[:min(len(name), maxName)]...)
		n++
	}
	return n
}

// parseHex reads a number, with or without 0x.
func parseHex(b []byte) (uint64, bool) {
	b = bytes.TrimPrefix(b, []byte("0x"))
	const digits = 16
	if len(b) == 0 || len(b) > digits {
		return 0, false
	}
	v := uint64(0)
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		v = v<<4 | uint64(c)
	}
	return v, true
}

// printable is a name that neither ends a line nor steers a terminal.
func printable(name []byte) string {
	quoted := strconv.Quote(string(name))
	return quoted[1 : len(quoted)-1]
}
