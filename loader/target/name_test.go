package target

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNames: a process is called by its command, and its file by its own name, whatever that is. A
// process that ran by a link was called by what the link leads to, and one whose file's name ends
// in " (deleted)" by a name without.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	file := install(t, "/bin/sleep", at("check-rdb"))
	if err := os.Symlink(file, at("server")); err != nil {
		t.Fatal(err)
	}
	const long = "a-name-of-more-than-fifteen-bytes"
	for name, c := range map[string]struct {
		path       string
		gone       bool
		comm, file string
		want       string
	}{
		"a link": {at("server"), false, "server", "check-rdb",
			"server, file check-rdb"},
		"no link":     {file, false, "check-rdb", "check-rdb", "check-rdb"},
		"a long name": {install(t, file, at(long)), false, long, long, long},
		"deleted":     {install(t, file, at("gone")), true, "gone", "gone", "gone"},
		"deleted by its name": {install(t, file, at("x (deleted)")), false, "x (deleted)",
			"x (deleted)", "x (deleted)"},
		"both": {install(t, file, at("y (deleted)")), true, "y (deleted)",
			"y (deleted)", "y (deleted)"},
		"a newline": {install(t, file, at("a\nb")), false, `a\nb`, `a\nb`, `a\nb`},
		"an escape of /proc's": {install(t, file, at(`a\012b`)), false, `a\\012b`, `a\\012b`,
			`a\\012b`},
	} {
		cmd := exec.Command(c.path, "60")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if c.gone {
			if err := os.Remove(c.path); err != nil {
				t.Fatal(err)
			}
		}
		p, err := Open(cmd.Process.Pid)
		cmd.Process.Kill()
		cmd.Wait()
		if err != nil {
			t.Fatal(err)
		}
		p.Close()
		if p.Comm != c.comm || p.File != c.file || p.Name != c.want {
			t.Errorf("%s: command %s, file %s, in all %s; want %s, %s, %s", name, p.Comm, p.File,
				p.Name, c.comm, c.file, c.want)
		}
	}
}

// TestLibrariesOfOddNames: the path of a library is kept, be it that it ends in " (deleted)" or has
// a newline, which /proc/PID/maps escapes. Such names were printed otherwise, and --lib did not
// match them.
func TestLibrariesOfOddNames(t *testing.T) {
	p, err := Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for name, gone := range map[string]bool{"x (deleted)": false, "y": true, "z (deleted)": true,
		"a\nb": false, `a\012b`: false} {
		path := install(t, "/bin/sleep", filepath.Join(t.TempDir(), name))
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		memory, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_EXEC,
			unix.MAP_PRIVATE)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Munmap(memory)
		if gone {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		list, err := p.Libraries()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(list, func(l Library) bool { return l.Path == path }) {
			var have []string
			for _, l := range list {
				have = append(have, l.Path)
			}
			t.Errorf("%q is not among %q", path, strings.Join(have, ", "))
		}
	}
}
