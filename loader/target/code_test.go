package target

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCode: the code of this process is its executable's, the kernel's and what it has mapped of no
// file, each with its name.
func TestCode(t *testing.T) {
	p, err := Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	run, err := p.Run()
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	const rwx = unix.PROT_READ | unix.PROT_EXEC
	anonymous, err := unix.Mmap(-1, 0, pageSize, rwx, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(anonymous)
	fd, err := unix.MemfdCreate("jit", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, pageSize); err != nil {
		t.Fatal(err)
	}
	memfd, err := unix.Mmap(fd, 0, pageSize, rwx, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(memfd)
	path := filepath.Join(t.TempDir(), "a\nlibrary")
	if err := os.WriteFile(path, make([]byte, pageSize), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	library, err := unix.Mmap(int(f.Fd()), 0, pageSize, rwx, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(library)
	id, err := IDOf(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	list, err := run.Code()
	if err != nil {
		t.Fatal(err)
	}
	at := func(address uint64) (found Code) {
		for _, c := range list {
			if c.Lo <= address && address < c.Hi {
				found = c
			}
		}
		return found
	}
	if c := at(
		addressOf(library),
	); c.File != id || !c.OfFile ||
		!strings.HasSuffix(c.Name, "library") ||
		strings.Contains(c.Name, "\n") {
		t.Errorf("a library: %+v", c)
	}
	if c := at(addressOf(memfd)); c.OfFile || c.Name != "/memfd:jit" {
		t.Errorf("a memfd: %+v", c)
	}
	if c := at(addressOf(anonymous)); c.OfFile || c.Name != "" || c.File != (FileID{}) &&
		c.File.inode != 0 {
		t.Errorf("memory: %+v", c)
	}
	vdso := false
	for _, c := range list {
		vdso = vdso || c.Name == "[vdso]" && !c.OfFile
	}
	if !vdso {
		t.Errorf("no vdso: %+v", list)
	}
}

// TestCodeOfAProcessThatIsGone: there is none, and that is no error.
func TestCodeOfAProcessThatIsGone(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	run, err := p.Run()
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	cmd.Process.Kill()
	cmd.Wait()
	if list, err := run.Code(); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
}
