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
		want    Way
	}{
		{linux(6, 1), missing, Events},
		{linux(6, 5), missing, Events},
		{linux(6, 6), nil, Link},
		{linux(6, 9), nil, Link},
		{linux(6, 10), nil, ProcessLink},
		{linux(6, 18), nil, ProcessLink},
		{linux(7, 0), nil, ProcessLink},
		{linux(6, 18), missing, Events},             // one without a part of it
		{linux(6, 18), unix.EPERM, ProcessLink},     // it cannot be known: loading will tell what is wrong
		{linux(6, 8), errors.New("whatever"), Link}, // the same
	} {
		if got := wayOf(c.version, c.links); got != c.want {
			t.Errorf("%x, %v: way %d, want %d", c.version, c.links, got, c.want)
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
	if got := Here(); got != want {
		t.Errorf("Linux %x goes way %d, not %d", version, got, want)
	}
}

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		way       Way
		most      int
		longest   time.Duration // to take out as many
		byProcess bool
	}{
		{Events, 300, time.Minute, false},
		{Link, 1 << 20, 3 * time.Second, false},
		{ProcessLink, 1 << 20, 3 * time.Second, true},
	} {
		if got := c.way.Most(); got != c.most || c.way.Removal(got) > c.longest || c.way.ByProcess() != c.byProcess {
			t.Errorf("way %d: %d probes, out in %v, by process %v", c.way, got, c.way.Removal(got), c.way.ByProcess())
		}
		if _, err := c.way.Put(os.Stdin, nil, make([]uint64, c.most+1), nil, 0); err == nil || !strings.Contains(err.Error(), "more than") {
			t.Errorf("way %d: more than it may be: %v", c.way, err)
		}
	}
}
