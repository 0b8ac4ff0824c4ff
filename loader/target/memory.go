package target

import (
	"bufio"
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// MemoryLeft is how much more memory, bytes, the control groups of some processes let each of them
// take, if all take as much, before the kernel holds up or kills whoever is in them; the page
// cache, which the kernel gives up first, counts as left. It is math.MaxUint64 where nothing limits
// it, or it is not known. Cost: about a millisecond, more with many mounts.
func MemoryLeft(pids ...int) uint64 {
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil {
		return math.MaxUint64
	}
	var groups []string
	for _, pid := range pids {
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid)); err == nil {
			groups = append(groups, string(b))
		}
	}
	return memoryLeft(groups, mounts)
}

// RunningFrom lists the processes that run the program of a file, by what is mounted here. Cost:
// some 10 us for each that there is.
func RunningFrom(exe *os.File) (pids []int) {
	of, err := exe.Stat()
	if err != nil {
		return nil
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if its, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && os.SameFile(its,
			of) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// A memoryController is how a version of control groups calls its files
// (Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst of the kernel).
type memoryController struct {
	fsType string
	limits []struct{ limit, usage string }
	cache  []string // fields of memory.stat, of all groups that are in one too
}

var (
	memoryOfV1 = memoryController{
		"cgroup",
		[]struct{ limit, usage string }{{"memory.limit_in_bytes", "memory.usage_in_bytes"},
			{"memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes"}},
		[]string{"total_inactive_file", "total_active_file"},
	}
	memoryOfV2 = memoryController{
		"cgroup2",
		[]struct{ limit, usage string }{{"memory.max", "memory.current"},
			{"memory.high", "memory.current"}},
		[]string{"inactive_file", "active_file"},
	}
)

// memoryLeft is MemoryLeft by what /proc/PID/cgroup says of each process, and what is mounted.
func memoryLeft(processes []string, mounts []*mountinfo.Info) uint64 {
	crowds := map[controlGroup]uint64{}
	for _, groups := range processes {
		for line := range strings.Lines(groups) {
			f := strings.SplitN(strings.TrimSpace(line), ":", 3) // hierarchy, controllers, path
			switch {
			case len(f) < 3:
			case f[0] == "0":
				memoryOfV2.join(crowds, mounts, f[2])
			case slices.Contains(strings.Split(f[1], ","), "memory"):
				memoryOfV1.join(crowds, mounts, f[2])
			}
		}
	}
	least := uint64(math.MaxUint64)
	for g, crowd := range crowds {
		least = min(least, g.left()/crowd)
	}
	return least
}

// A controlGroup is one that limits memory, as far as it is mounted.
type controlGroup struct {
	*memoryController
	dir string
}

// join counts one more process in a group, and in those that it is in, as far as any is mounted.
func (c *memoryController) join(crowds map[controlGroup]uint64, mounts []*mountinfo.Info,
	group string) {
	for _, m := range mounts {
		if m.FSType != c.fsType {
			continue
		}
		path, within := strings.CutPrefix(group, strings.TrimSuffix(m.Root, "/"))
		within = within && (path == "" || path[0] == '/')
		path = cmp.Or(strings.TrimPrefix(path, "/"), ".")
		for within && path != ".." && !strings.HasPrefix(path, "../") {
			// else it is outside of our own namespace of groups
			crowds[controlGroup{c, filepath.Join(m.Mountpoint, path)}]++
			if path == "." {
				break
			}
			path = filepath.Dir(path)
		}
	}
}

// left is what the group leaves to all that are in it.
func (g controlGroup) left() uint64 {
	left, cache := uint64(math.MaxUint64), g.pageCache()
	for _, f := range g.limits {
		limit, limited := readNumber(filepath.Join(g.dir, f.limit))
		used, known := readNumber(filepath.Join(g.dir, f.usage))
		if limited && known {
			left = min(left, limit-min(limit, used-min(used, cache)))
		}
	}
	return left
}

// pageCache is how much of it a group has.
func (g controlGroup) pageCache() (cache uint64) {
	f, err := os.Open(filepath.Join(g.dir, "memory.stat"))
	if err != nil {
		return 0
	}
	defer f.Close()
	for scan := bufio.NewScanner(f); scan.Scan(); {
		field, value, _ := strings.Cut(scan.Text(), " ")
		if n, err := strconv.ParseUint(value, 10, 64); err == nil && slices.Contains(g.cache,
			field) {
			cache += n
		}
	}
	return cache
}

// readNumber reads the number of which a file of a control group consists: it is none where there
// is no limit.
func readNumber(path string) (n uint64, ok bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil
}
