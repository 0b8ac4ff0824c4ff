package rawtrace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"wpptrace/compress/raw"
	"wpptrace/compress/wpp/store"
	"wpptrace/loader/plan"
)

// A raw trace goes to a file of its own, to one that it replaces, or to a pipe, also by way of a
// link; never through a link to a file.
func TestTraceFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(precious, link); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for _, c := range []struct {
		path string
		err  error
	}{
		{filepath.Join(dir, "new"), nil},
		{filepath.Join(dir, "new"), nil},
		{fmt.Sprintf("/proc/self/fd/%d", w.Fd()), nil},
		{link, errLinked},
		{filepath.Join(dir, "no", "such"), unix.ENOENT},
	} {
		trace, err := open(c.path)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.path, err, c.err)
		}
		if err == nil {
			must(t, trace.Place())
			must(t, trace.Abandon())
		}
	}
	if left, err := os.ReadFile(precious); string(left) != "old" {
		t.Errorf("what a link leads to is now %q, %v", left, err)
	}
}

// A raw trace that replaces a file is nobody else's to read, and is not written to what is another
// name of that file.
func TestTraceReplacesAFile(t *testing.T) {
	dir := t.TempDir()
	precious, path := filepath.Join(dir, "precious"), filepath.Join(dir, "x.raw")
	must(t, os.WriteFile(precious, []byte("old"), 0o666))
	must(t, os.Chown(precious, 65534, 65534))
	must(t, os.Link(precious, path))
	trace, err := open(path)
	must(t, err)
	must(t, trace.Place())
	must(t, trace.Abandon())
	info, err := os.Stat(path)
	must(t, err)
	if stat := info.Sys().(*syscall.Stat_t); info.Mode() != 0o600 || int(stat.Uid) != os.Geteuid() {
		t.Errorf("mode %v, user %d", info.Mode(), stat.Uid)
	}
	for _, name := range []string{precious, store.Old(path)} {
		if left, err := os.ReadFile(name); string(left) != "old" {
			t.Errorf("%s is now %q, %v", name, left, err)
		}
	}
}

// TestTraceFails: that a raw trace cannot be written any more is said once, when it is known.
func TestTraceFails(t *testing.T) {
	trace, err := Create("/dev/full", &plan.Plan{}, nil)
	must(t, err)
	if err := trace.Failure(); err != nil {
		t.Errorf("%v before anything is written", err)
	}
	for i := range 1 << 15 { // more than is kept in memory
		trace.writer.DefineRoutine(i, raw.Routine{Name: "routine"})
	}
	if err := trace.Failure(); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("%v on a full disk", err)
	}
	if err := trace.Failure(); err != nil {
		t.Errorf("%v is said again", err)
	}
	if err := trace.End(); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("%v at the end", err)
	}
	if err := (*Trace)(nil).Failure(); err != nil {
		t.Errorf("%v of no trace", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
