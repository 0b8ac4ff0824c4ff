package target

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A Mapping is a part of a file in the memory of a process.
type Mapping struct {
	Lo, Hi uint64
	Offset uint64 // in the file
	Exec   bool
}

// ExecutableMappings lists where the executable is mapped, by its device and inode.
func (p *Process) ExecutableMappings() ([]Mapping, error) {
	var st unix.Stat_t
	if err := unix.Stat(p.proc("exe"), &st); err != nil {
		return nil, fmt.Errorf("look at the executable of process %d: %w", p.PID, err)
	}
	f, err := os.Open(p.proc("maps"))
	if err != nil {
		return nil, fmt.Errorf("list the mappings of process %d: %w", p.PID, err)
	}
	defer f.Close()
	var list []Mapping
	scan := bufio.NewScanner(f)
	for scan.Scan() {
		if m, inode, ok := parseMapping(scan.Text()); ok && inode == st.Ino {
			list = append(list, m)
		}
	}
	if err := scan.Err(); err != nil {
		return nil, fmt.Errorf("list the mappings of process %d: %w", p.PID, err)
	}
	return list, nil
}

// parseMapping reads a line of /proc/PID/maps.
func parseMapping(line string) (m Mapping, inode uint64, ok bool) {
	f := strings.Fields(line)
	if len(f) < 5 || len(f[1]) < 4 {
		return Mapping{}, 0, false
	}
	lo, hi, found := strings.Cut(f[0], "-")
	if !found {
		return Mapping{}, 0, false
	}
	var errs [4]error
	m.Lo, errs[0] = strconv.ParseUint(lo, 16, 64)
	m.Hi, errs[1] = strconv.ParseUint(hi, 16, 64)
	m.Offset, errs[2] = strconv.ParseUint(f[2], 16, 64)
	inode, errs[3] = strconv.ParseUint(f[4], 10, 64)
	m.Exec = f[1][2] == 'x'
	for _, err := range errs {
		if err != nil {
			return Mapping{}, 0, false
		}
	}
	return m, inode, true
}
