package record

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"wpptrace/internal/traced"
)

// TestFailedBeginLeavesNoFile: a recording that fails to begin leaves no file open, those of
// libraries among them, and none in its directory, whatever it fails at.
func TestFailedBeginLeavesNoFile(t *testing.T) {
	for _, c := range []struct {
		name, raw string
		endsAt    func(Event) bool // the process is killed then; it lives where that never is so
		libraries int              // that were added before
	}{
		{"a raw trace that cannot be", "no/such/dir", func(Event) bool { return false }, 0},
		{"a process that ends before its probes stand", "x.raw", func(e Event) bool {
			_, ok := e.(Planned)
			return ok
		}, 1},
		{"a process that ends when it stands", "x.raw", func(e Event) bool {
			_, ok := e.(Attached)
			return ok
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, added := t.TempDir(), 0
			s := startServer(t)
			o := Options{Process: openSubject(t, s), Output: filepath.Join(dir, "x.wpp"),
				Raw:       filepath.Join(dir, c.raw),
				Selection: traced.Selection{Libraries: []string{"libc.so*"}}}
			before := openFiles(t)
			r, err := start(t.Context(), o, func(e Event) {
				if _, ok := e.(LibraryAdded); ok {
					added++
				}
				if c.endsAt(e) {
					must(t, s.Cmd.Process.Signal(unix.SIGKILL))
					s.Cmd.Wait()
				}
			})
			if err == nil {
				r.Close()
				t.Fatal("it begins")
			}
			if added != c.libraries {
				t.Errorf("%d libraries were added, want %d", added, c.libraries)
			}
			for _, path := range openFiles(t) {
				// what other tests have left may be closed meanwhile
				if !slices.Contains(before, path) {
					t.Errorf("%v: %s is open still", err, path)
				}
			}
			if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
				t.Errorf("%v is left, %v", left, err)
			}
		})
	}
}

// openFiles lists the regular files that this process has open.
func openFiles(t *testing.T) (paths []string) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	must(t, err)
	for _, link := range links {
		path, err := os.Readlink(link) // fails of the one that the links were listed with
		if err != nil || !strings.HasPrefix(path, "/") {
			continue
		}
		if info, err := os.Stat(link); err == nil && info.Mode().IsRegular() {
			paths = append(paths, path)
		}
	}
	return paths
}
