package memory

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
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

// The heap has room ahead, in large pages where the kernel has such.
func TestAhead(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	Ahead()
	if got := debug.SetGCPercent(100); got != 400 {
		t.Errorf("the collector leaves %d %%, want 400", got)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapSys < aheadBytes {
		t.Errorf("the heap has %d bytes, want %d and more", m.HeapSys, aheadBytes)
	}
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		t.Skip("the kernel has no large pages")
	}
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	at, flags := fmt.Sprintf("%x-", uintptr(unsafe.Pointer(new([64]byte)))&^(arena-1)), ""
	for line := range strings.Lines(string(maps)) {
		if flags == "" && strings.HasPrefix(line, at) || flags == at {
			flags = at
			if strings.HasPrefix(line, "VmFlags:") {
				flags = line
			}
		}
	}
	if !strings.Contains(flags, " hg") {
		t.Errorf("the heap at %s has %q, want hg among them", at, flags)
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
