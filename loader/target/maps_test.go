package target

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// mount mounts a file system until the test's end.
func mount(t *testing.T, kind, options string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := unix.Mount(kind, dir, kind, 0, options); err != nil {
		t.Fatalf("mount %s: %v", kind, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// install copies a file.
func install(t *testing.T, from, to string) string {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o755); err != nil {
		t.Fatal(err)
	}
	return to
}

// mapped runs a cat, with a library loaded first, and compares ExecutableMappings with the lines of
// maps that bear its path.
func mapped(t *testing.T, program, library string) {
	t.Helper()
	cmd := exec.Command(program)
	cmd.Env = []string{"LD_PRELOAD=" + library}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	for _, step := range []func() (int, error){func() (int, error) { return in.Write([]byte("x")) },
		func() (int, error) { return out.Read(make([]byte, 1)) }} {
		if _, err := step(); err != nil { // what it answers to, it has loaded its libraries
			t.Fatal(err)
		}
	}
	p, err := Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	maps, err := os.ReadFile(p.proc("maps"))
	if err != nil {
		t.Fatal(err)
	}
	var want []Mapping
	for line := range strings.Lines(string(maps)) {
		if m, _, ok := parseMapping(line); ok && strings.HasSuffix(line, " "+program+"\n") {
			want = append(want, m)
		}
	}
	if got, err := p.ExecutableMappings(); err != nil || fmt.Sprint(got) != fmt.Sprint(want) ||
		len(want) == 0 {
		t.Errorf("%v, %v\nwant %v\n%s", got, err, want, maps)
	}
	if library == "" {
		return
	}
	if !strings.Contains(string(maps), library) {
		t.Errorf("%s is not loaded: the test does not test", library)
	}
	isAmong(t, p, library)
}

// isAmong fails the test unless a library is one of the process's, once, and can be opened.
func isAmong(t *testing.T, p *Process, library string) {
	t.Helper()
	list, err := p.Libraries()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, l := range list {
		f, err := p.OpenLibrary(l)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		ours, err := os.Stat(library)
		theirs, theirErr := f.Stat()
		if err != nil || theirErr != nil {
			t.Fatal(err, theirErr)
		}
		if os.SameFile(ours, theirs) {
			found++
		}
	}
	if found != 1 {
		t.Errorf("%s is %d times among %v", library, found, list)
	}
}

const library = "/lib/x86_64-linux-gnu/libm.so.6"

// TestMappingsOfTwoDevices: a library on another file system, with the same inode number, is not
// the program.
func TestMappingsOfTwoDevices(t *testing.T) {
	program := install(t, "/bin/cat", filepath.Join(mount(t, "tmpfs", ""), "program"))
	library := install(t, library, filepath.Join(mount(t, "tmpfs", ""), "library"))
	var a, b unix.Stat_t
	if unix.Stat(program, &a) != nil || unix.Stat(library, &b) != nil || a.Ino != b.Ino {
		t.Skipf("inodes %d and %d: this kernel counts them for all file systems together", a.Ino,
			b.Ino)
	}
	mapped(t, program, library)
}

// TestMappingsOnOverlay: on overlayfs, where containers have their files, maps and stat may call a
// file by different numbers.
func TestMappingsOnOverlay(t *testing.T) {
	lower, upper := mount(t, "tmpfs", ""), mount(t, "tmpfs", "")
	install(t, "/bin/cat", filepath.Join(lower, "lower"))
	for _, dir := range []string{"upper", "work"} {
		if err := os.Mkdir(filepath.Join(upper, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, xino := range []string{"off", "on"} {
		merged := mount(t, "overlay",
			fmt.Sprintf("lowerdir=%s,upperdir=%s/upper,workdir=%s/work,xino=%s", lower, upper,
				upper, xino))
		mapped(t, filepath.Join(merged, "lower"), "")
		mapped(t, install(t, "/bin/cat", filepath.Join(merged, "upper-"+xino)), "")
	}
}
