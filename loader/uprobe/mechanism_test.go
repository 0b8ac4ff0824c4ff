package uprobe

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"
)

func TestWayOf(t *testing.T) {
	missing := fmt.Errorf("link: %w", ebpf.ErrNotSupported)
	for _, c := range []struct {
		version uint32
		links   error
		want    Mechanism
	}{
		{linux(6, 1), missing, Events},
		{linux(6, 5), missing, Events},
		{linux(6, 6), nil, Link},
		{linux(6, 9), nil, Link},
		{linux(6, 10), nil, ProcessLink},
		{linux(6, 18), nil, ProcessLink},
		{linux(7, 0), nil, ProcessLink},
		{linux(6, 18), missing, Events}, // one without a part of it
		// it cannot be known: loading will show what is wrong
		{linux(6, 18), unix.EPERM, ProcessLink},
		{linux(6, 8), errors.New("whatever"), Link}, // the same
	} {
		if got := mechanismOf(c.version, c.links); got != c.want {
			t.Errorf("%x, %v: %v, want %v", c.version, c.links, got, c.want)
		}
	}
}

// What a kernel should have by its version it has: tests on it would go another way unnoticed.
func TestHere(t *testing.T) {
	version, err := features.LinuxVersionCode()
	if err != nil {
		t.Fatal(err)
	}
	want := Events
	switch {
	case version >= linux(6, 10):
		want = ProcessLink
	case version >= linux(6, 6):
		want = Link
	}
	if got := Detect(); got != want {
		t.Errorf("Linux %x: %v, not %v", version, got, want)
	}
}

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		mechanism          Mechanism
		most               int
		longest            time.Duration // to take out as many
		files              int           // that they take
		windows, libraries bool
		text               string
	}{
		{Events, 300, time.Minute, 600, false, false, "a perf event each: 300 at most"},
		{Link, 1 << 20, 3 * time.Second, 1, true, false, "in all processes"},
		{ProcessLink, 1 << 20, 3 * time.Second, 1, true, true, "in one process alone"},
	} {
		if got := c.mechanism.Most(); got != c.most || c.mechanism.Removal(got) > c.longest ||
			c.mechanism.Files(got) != c.files {
			t.Errorf("mechanism %d: %d probes, out in %v, with %d descriptors", c.mechanism, got,
				c.mechanism.Removal(got), c.mechanism.Files(got))
		}
		if windows, libraries := c.mechanism.SupportsWindows(),
			c.mechanism.SupportsLibraries(); (windows == nil) != c.windows ||
			(libraries == nil) != c.libraries {
			t.Errorf("mechanism %d: windows: %v, libraries: %v", c.mechanism, windows, libraries)
		}
		if got := c.mechanism.String(); !strings.Contains(got, c.text) {
			t.Errorf("mechanism %d is said to be %q, without %q", c.mechanism, got, c.text)
		}
		if _, err := c.mechanism.Put(os.Stdin, nil, make([]uint64, c.most+1), nil, 0); err == nil ||
			!strings.Contains(err.Error(), "more than") {
			t.Errorf("mechanism %d takes more than it may: %v", c.mechanism, err)
		}
	}
}
