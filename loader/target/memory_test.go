package target

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moby/sys/mountinfo"
)

// TestRunningFrom: those that run the same file are found, and no others.
func TestRunningFrom(t *testing.T) {
	c, _ := startCopy(t, "one")
	startCopy(t, "other")
	exe, err := c.Process.Executable()
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	if got := RunningFrom(exe); !slices.Equal(got, []int{c.Process.PID}) {
		t.Errorf("%v, want %d", got, c.Process.PID)
	}
}

// What is left is the least of what any group leaves that the process is in; page cache is left,
// too.
func TestMemoryLeft(t *testing.T) {
	const none = math.MaxUint64
	v1, v2 := t.TempDir(), t.TempDir()
	for file, text := range map[string]string{
		"memory.limit_in_bytes":   "9223372036854771712\n",
		"memory.usage_in_bytes":   "5000\n",
		"a/memory.limit_in_bytes": "1000\n",
		"a/memory.usage_in_bytes": "900\n",
		"a/memory.stat": "cache 500\ninactive_file 9\ntotal_inactive_file 20\n" +
			"total_active_file 30\n",
		"a/b/memory.limit_in_bytes":        "700\n",
		"a/b/memory.usage_in_bytes":        "100\n",
		"swap/memory.limit_in_bytes":       "1000\n",
		"swap/memory.usage_in_bytes":       "500\n",
		"swap/memory.memsw.limit_in_bytes": "2000\n",
		"swap/memory.memsw.usage_in_bytes": "1940\n",
		"swap/memory.stat":                 "total_inactive_file 20\n",
		"over/memory.limit_in_bytes":       "100\n",
		"over/memory.usage_in_bytes":       "200\n",
	} {
		write(t, filepath.Join(v1, file), text)
	}
	for file, text := range map[string]string{
		"memory.stat":        "inactive_file 100\n",
		"c/memory.max":       "max\n",
		"c/memory.high":      "max\n",
		"c/memory.current":   "100\n",
		"c/d/memory.max":     "900\n",
		"c/d/memory.high":    "600\n",
		"c/d/memory.current": "100\n",
		"c/d/memory.stat":    "file 90\ninactive_file 20\nactive_file 3\n",
		"cache/memory.max":   "900\n",
		"cache/memory.stat":  "inactive_file 20\nactive_file 300\n",
	} {
		write(t, filepath.Join(v2, file), text)
	}
	mounts := []*mountinfo.Info{
		{FSType: "cgroup", Root: "/", Mountpoint: t.TempDir(), VFSOptions: "rw,cpu"},
		{FSType: "cgroup", Root: "/", Mountpoint: v1, VFSOptions: "rw,memory"},
		{FSType: "cgroup2", Root: "/in", Mountpoint: v2, VFSOptions: "rw"},
	}
	for groups, want := range map[string]uint64{
		"":                              none,
		"no line of such a file":        none,
		"4:memory:/":                    9223372036854771712 - 5000,
		"4:memory:/a":                   150,
		"4:cpu,memory:/a/b":             150,
		"4:memory:/over":                0,
		"4:memory:/swap":                80,
		"4:memory:/gone":                9223372036854771712 - 5000,
		"4:cpu:/a":                      none,
		"1:name=memory:/a":              none,
		"0::/in/c":                      none,
		"0::/in/c/d":                    523,
		"0::/in/cache":                  none, // what it uses cannot be read
		"0::/elsewhere/c/d":             none,
		"0::/inc/d":                     none,
		"0::/":                          none,
		"0::/../c/d":                    none,
		"4:memory:/../a":                none, // of another namespace: a is not ours
		"0::/in/c/d\n4:memory:/a\n":     150,
		"4:memory:/\n0::/in/c/d\n1:x:/": 523,
	} {
		if got := memoryLeft([]string{groups}, mounts); got != want {
			t.Errorf("%q: %d, want %d", groups, got, want)
		}
	}
}

// TestMemoryLeftToEach: what a group leaves is shared by those that are in it, or in groups of it.
func TestMemoryLeftToEach(t *testing.T) {
	root := t.TempDir()
	for file, text := range map[string]string{
		"memory.max": "1000", "memory.current": "100",
		"a/memory.max": "800", "a/memory.current": "200",
		"b/memory.max": "max", "b/memory.current": "50",
	} {
		write(t, filepath.Join(root, file), text)
	}
	mounts := []*mountinfo.Info{{FSType: "cgroup2", Root: "/", Mountpoint: root}}
	for _, c := range []struct {
		groups []string
		want   uint64
	}{
		{[]string{"0::/a"}, 600},
		{[]string{"0::/a", "0::/a"}, 300},
		{[]string{"0::/a", "0::/b"}, 450},
		{[]string{"0::/a", "0::/b", "0::/b", "0::/b"}, 225},
		{nil, math.MaxUint64},
	} {
		if got := memoryLeft(c.groups, mounts); got != c.want {
			t.Errorf("%q: %d, want %d", c.groups, got, c.want)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
