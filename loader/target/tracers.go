package target

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Tracers lists who traces the process: its debugger, and those processes of the program that this
// one is of that hold it, without this one and without those that one of them has started, its
// guard. One that this process may not look at is missing. Cost: some milliseconds.
func (p *Process) Tracers() (list []int) {
	if debugger := statusOf(p.PID, "TracerPid:"); debugger != 0 {
		list = append(list, debugger)
	}
	own := programOf("self")
	if own == "" {
		return list
	}
	parents := map[int]int{os.Getpid(): 0}
	dirs, _ := filepath.Glob("/proc/[0-9]*") // fails for a bad pattern alone
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err == nil && pid != os.Getpid() && programOf(strconv.Itoa(pid)) == own &&
			holds(pid, p.PID) {
			parents[pid] = statusOf(pid, "PPid:")
		}
	}
	for pid, parent := range parents {
		if _, is := parents[parent]; !is && pid != os.Getpid() {
			list = append(list, pid)
		}
	}
	slices.Sort(list)
	return list
}

// programOf is the base name of what a process runs; "": that is not known.
func programOf(pid string) string {
	exe, err := os.Readlink("/proc/" + pid + "/exe")
	if err != nil {
		return ""
	}
	return filepath.Base(strings.TrimSuffix(exe, " (deleted)"))
}

// holds reports whether a process has a descriptor of another one.
func holds(pid, other int) bool {
	infos, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	of := fmt.Appendf(nil, "\nPid:\t%d\n", other)
	return slices.ContainsFunc(infos, func(info string) bool {
		text, err := os.ReadFile(info)
		return err == nil && bytes.Contains(text, of)
	})
}

// statusOf is a number of a process's status; 0: it is not known.
func statusOf(pid int, field string) (n int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, field); found {
			n, _ = strconv.Atoi(strings.TrimSpace(value))
		}
	}
	return n
}
