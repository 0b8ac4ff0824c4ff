package target

import (
	"bufio"
	"cmp"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// MemoryLeft is how much more memory, bytes, the control groups that the process is in let it take
// before the kernel holds up or kills whoever is in them; the page cache, which the kernel gives up
// first, counts as left. It is math.MaxUint64 where nothing limits it, or nothing tells. Cost: about a
// millisecond, more with many mounts.
func (p *Process) MemoryLeft() uint64 {
	groups, err := os.ReadFile(p.proc("cgroup"))
	if err != nil {
		return math.MaxUint64
	}
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil {
		return math.MaxUint64
	}
	return memoryLeft(string(groups), mounts)
}

// A memoryController is how a version of control groups calls its files
// (Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst of the kernel).
type memoryController struct {
	fsType, usage string
	limits, cache []string // cache: fields of memory.stat, of all groups that are in one too
}

var (
	memoryOfV1 = memoryController{"cgroup", "memory.usage_in_bytes", []string{"memory.limit_in_bytes"}, []string{"total_inactive_file", "total_active_file"}}
	memoryOfV2 = memoryController{"cgroup2", "memory.current", []string{"memory.max", "memory.high"}, []string{"inactive_file", "active_file"}}
)

// memoryLeft is MemoryLeft by what /proc/PID/cgroup says, and what is mounted.
func memoryLeft(groups string, mounts []*mountinfo.Info) uint64 {
	left := uint64(math.MaxUint64)
	for line := range strings.Lines(groups) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3) // hierarchy, controllers, path
		switch {
		case len(f) < 3:
		case f[0] == "0":
			left = min(left, memoryOfV2.left(mounts, f[2]))
		case slices.Contains(strings.Split(f[1], ","), "memory"):
			left = min(left, memoryOfV1.left(mounts, f[2]))
		}
	}
	return left
}

// left is what a group, and those that it is in, leave, as far as any is mounted.
func (c *memoryController) left(mounts []*mountinfo.Info, group string) uint64 {
	left := uint64(math.MaxUint64)
	for _, m := range mounts {
		if m.FSType != c.fsType {
			continue
		}
		path, within := strings.CutPrefix(group, strings.TrimSuffix(m.Root, "/"))
		within = within && (path == "" || path[0] == '/')
		path = cmp.Or(strings.TrimPrefix(path, "/"), ".")
		for within && path != ".." && !strings.HasPrefix(path, "../") { // else it is outside of our own namespace of groups
			left = min(left, c.leftOf(filepath.Join(m.Mountpoint, path)))
			if path == "." {
				break
			}
			path = filepath.Dir(path)
		}
	}
	return left
}

// leftOf is what one group leaves.
func (c *memoryController) leftOf(dir string) uint64 {
	limit := uint64(math.MaxUint64)
	for _, name := range c.limits {
		if n, ok := readNumber(filepath.Join(dir, name)); ok {
			limit = min(limit, n)
		}
	}
	used, ok := readNumber(filepath.Join(dir, c.usage))
	if limit == math.MaxUint64 || !ok {
		return math.MaxUint64
	}
	cache := c.cacheOf(dir)
	return limit - min(limit, used-min(used, cache))
}

// cacheOf is how much page cache a group has.
func (c *memoryController) cacheOf(dir string) (cache uint64) {
	f, err := os.Open(filepath.Join(dir, "memory.stat"))
	if err != nil {
		return 0
	}
	defer f.Close()
	for scan := bufio.NewScanner(f); scan.Scan(); {
		field, value, _ := strings.Cut(scan.Text(), " ")
		if n, err := strconv.ParseUint(value, 10, 64); err == nil && slices.Contains(c.cache, field) {
			cache += n
		}
	}
	return cache
}

// readNumber reads the number of which a file of a control group consists: it is none where there is
// no limit.
func readNumber(path string) (n uint64, ok bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil
}
