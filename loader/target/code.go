package target

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"golang.org/x/sys/unix"
)

// A Code is a piece of the memory of a process that it may run.
type Code struct {
	Mapping
	File FileID
	// Name is the path of the file in the process's own mount namespace, or what the kernel calls
	// memory of no file, "" if it has no name: a name, and nothing to open. It has \n and the like
	// for what cannot be printed.
	Name string
	// OfFile: the file is in a file system, or was before it was deleted. Else it is memory, as
	// that of code made at run time. A memfd is a file, and is none in a file system.
	OfFile bool
}

// Code lists what code the process has, in the order of its addresses; none, where the run is over.
// It takes no privilege beyond those that Process.Run took. Cost: some microseconds a mapping,
// during which the process maps nothing.
func (r *Run) Code() ([]Code, error) {
	var list []Code
	maps := io.NewSectionReader(r.maps, 0, math.MaxInt64)
	err := scanMaps(maps, func(m Mapping, f FileID, path string) {
		if !m.Exec {
			return
		}
		name := printable(strings.TrimSuffix(path, " (deleted)"))
		list = append(list, Code{m, f, name, f.isPlaced(path)})
	})
	if errors.Is(err, unix.ESRCH) { // it has exited, and that has been waited for
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the code of a process: %w", err)
	}
	return list, nil
}

// isPlaced reports whether a file that is mapped is in a file system, by its path in maps. The
// kernel has files that are in none for memory that is shared.
func (f FileID) isPlaced(path string) bool {
	if f.inode == 0 || !strings.HasPrefix(path, "/") {
		return false
	}
	for _, memory := range []string{"/dev/zero", "/SYSV", "/anon_hugepage", "/memfd:"} {
		if strings.HasPrefix(path, memory) {
			return false
		}
	}
	return true
}
