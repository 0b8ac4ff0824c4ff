package memory

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
	"unsafe"
)

func TestCollectorsPart(t *testing.T) {
	for allowed, want := range map[Size]int64{0: math.MaxInt64, 64 << 20: 32 << 20,
		63 << 20: 63 << 19} {
		if got := collectorsPart(allowed); got != want {
			t.Errorf("of %v: %d, want %d", allowed, got, want)
		}
	}
}

func TestSize(t *testing.T) {
	for _, c := range []struct {
		text string
		want Size // -1: an error
		back string
	}{
		{"4096", 4096, "4K"}, {"4K", 4096, "4K"}, {"64m", 64 << 20, "64M"}, {"1G", 1 << 30, "1G"},
		{"5000", 5000, "5000"}, {"0", 0, "0"},
		{"", -1, ""}, {"K", -1, ""}, {"-1", -1, ""}, {"4KB", -1, ""}, {"1e3", -1, ""},
		{"9999999999", -1, ""},
	} {
		var s Size
		err := s.Set(c.text)
		switch {
		case c.want < 0:
			if err == nil {
				t.Errorf("%q: no error, but %v", c.text, s)
			}
		case err != nil || s != c.want || s.String() != c.back:
			t.Errorf("%q: %d %v %v, want %d %v", c.text, s, s, err, c.want, c.back)
		}
	}
}

// What a size prints, it reads back.
func FuzzSize(f *testing.F) {
	for _, text := range []string{"4096", "64M", "1G", "K", "-1", "99999999999999999999G"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var s, back Size
		if s.Set(text) != nil {
			return
		}
		if err := back.Set(s.String()); s < 0 || (err != nil || back != s) && s < 1<<31 {
			t.Errorf("%q: %d, printed %v, read back %d, %v", text, int64(s), s, int64(back), err)
		}
	})
}

// A process has room ahead, in large pages where the kernel has such, and its collector leaves less
// once it has run. Where the heap begins is drawn by lot, at times so that the room is in two
// parts.
func TestAhead(t *testing.T) {
	const asked = "WPPTRACE_TEST_AHEAD"
	if os.Getenv(asked) == "" { // the room is what a heap has that has just begun
		for range 24 {
			c := exec.Command(os.Args[0], "-test.run=^TestAhead$", "-test.v")
			c.Env = append(os.Environ(), asked+"=1")
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			} else if bytes.Contains(out, []byte("SKIP")) {
				t.Skip("the kernel has no large pages")
			}
		}
		return
	}
	var before, m runtime.MemStats
	runtime.ReadMemStats(&before)
	Ahead()
	if got := debug.SetGCPercent(800); got != 800 {
		t.Errorf("the collector leaves %d %%, want 800", got)
	}
	runtime.ReadMemStats(&m)
	const rounding = growth / 64
	if room := m.HeapIdle - before.HeapIdle; room < 2*growth-rounding {
		t.Errorf("the heap has room for %d bytes more, want some %d", room, 2*growth)
	}
	room := make([]byte, growth-rounding)
	for began := time.Now(); debug.SetGCPercent(800) != 400; runtime.GC() {
		if time.Since(began) > 10*time.Second {
			t.Fatal("the collector has run, and does not leave 400 %")
		}
	}
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		t.Skip("the kernel has no large pages")
	}
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	last := uint64(uintptr(unsafe.Pointer(&room[len(room)-1])))
	isIn, flags := false, ""
	for line := range strings.Lines(string(maps)) {
		var lo, hi uint64
		if n, _ := fmt.Sscanf(line, "%x-%x ", &lo, &hi); n == 2 {
			isIn = lo <= last && last < hi
		}
		if isIn && strings.HasPrefix(line, "VmFlags:") {
			flags = line
		}
	}
	if !strings.Contains(flags, " hg") {
		t.Errorf("the room up to %x has %q, want hg among them:\n%s", last, flags, maps)
	}
}

// While something is done the collector keeps to less, and then to what it kept to before, unless
// much is alive.
func TestDuring(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 30))
	restore := During(256 << 20)
	if got := debug.SetMemoryLimit(-1); got != 256<<20 {
		t.Errorf("it keeps to %d, want 256 MB", got)
	}
	restore()
	if got := debug.SetMemoryLimit(-1); got != 1<<30 {
		t.Errorf("it keeps to %d then, want what it did before", got)
	}
	for _, before := range []int64{64 << 20, 1 << 30} {
		debug.SetMemoryLimit(before)
		restore = During(32 << 20)
		alive := make([]byte, 64<<20)
		restore()
		if got := debug.SetMemoryLimit(-1); got < 80<<20 || got > 160<<20 {
			t.Errorf("it keeps to %d where 64 MB are alive", got)
		}
		runtime.KeepAlive(alive)
	}
}

func TestFitBuffer(t *testing.T) {
	for allowed, want := range map[Size]Size{0: 64 << 20, 1 << 30: 64 << 20, 1<<30 - 1: 32 << 20,
		64 << 20: 4 << 20} {
		if got := FitBuffer(64<<20, allowed); got != want {
			t.Errorf("of %v: %v, want %v", allowed, got, want)
		}
	}
}

// What is held counts as alive, and what is not held any more does not.
func TestAlive(t *testing.T) {
	const size = 32 << 20
	held := make([]byte, size)
	runtime.GC()
	with := Alive()
	runtime.KeepAlive(held)
	held = nil
	runtime.GC()
	if without := Alive(); with < size || without > with-size/2 {
		t.Errorf("%d bytes with %d held, %d without", with, size, without)
	}
}
