package record

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
	"wpptrace/loader/target"
)

// A raw trace goes to a file of its own, to one that it replaces, or to a pipe, also by way of a
// link; never through a link to a file.
func TestRawTraceFollowsNoLink(t *testing.T) {
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
		trace, err := openRawTrace(c.path)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.path, err, c.err)
		}
		if err == nil {
			must(t, trace.place())
			must(t, trace.abandon())
		}
	}
	if left, err := os.ReadFile(precious); string(left) != "old" {
		t.Errorf("what a link leads to is now %q, %v", left, err)
	}
}

// A raw trace that replaces a file is nobody else's to read, and is not written to what is another
// name of that file.
func TestRawTraceReplacesAFile(t *testing.T) {
	dir := t.TempDir()
	precious, path := filepath.Join(dir, "precious"), filepath.Join(dir, "x.raw")
	must(t, os.WriteFile(precious, []byte("old"), 0o666))
	must(t, os.Chown(precious, 65534, 65534))
	must(t, os.Link(precious, path))
	trace, err := openRawTrace(path)
	must(t, err)
	must(t, trace.place())
	must(t, trace.abandon())
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

// TestRawTraceOfNothing: two recordings that were interrupted before they began left empty files in
// the place of a trace, and of the one before.
func TestRawTraceOfNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.raw")
	for name, content := range map[string]string{path: "new", store.Old(path): "old"} {
		must(t, os.WriteFile(name, []byte(content), 0o600))
	}
	trace, err := openRawTrace(path)
	must(t, err)
	r := offline(t)
	r.raw, r.usage.used = trace, func() (target.Times,
		error) {
		return target.Times{}, target.ErrGone
	}
	if err := r.Begin(true); err == nil {
		t.Error("a recording begins of a process that is gone")
	}
	must(t, trace.abandon())
	for name, content := range map[string]string{path: "new", store.Old(path): "old"} {
		if left, err := os.ReadFile(name); string(left) != content {
			t.Errorf("%s is now %q, %v", name, left, err)
		}
	}
	if left, err := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestRawTraceFails: that a raw trace cannot be written any more is said once, when it is known.
func TestRawTraceFails(t *testing.T) {
	trace, err := createRawTrace("/dev/full", &plan.Plan{}, nil)
	must(t, err)
	if err := trace.failure(); err != nil {
		t.Errorf("%v before anything is written", err)
	}
	for i := range 1 << 15 { // more than is kept in memory
		trace.writer.DefineRoutine(i, raw.Routine{Name: "routine"})
	}
	if err := trace.failure(); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("%v on a full disk", err)
	}
	if err := trace.failure(); err != nil {
		t.Errorf("%v is said again", err)
	}
	if err := trace.end(); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("%v at the end", err)
	}
	if err := (*rawTrace)(nil).failure(); err != nil {
		t.Errorf("%v of no trace", err)
	}
}
