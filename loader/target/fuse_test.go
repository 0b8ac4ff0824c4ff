package target

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"golang.org/x/sys/unix"

	"wpptrace/internal/testenv"
)

// nobody is the user who has mounted a file system in the test.
const nobody = 65534

// mountFUSE serves a directory as a FUSE file system of nobody's, without allow_other, until the
// test ends. It skips the test where that cannot be.
func mountFUSE(t *testing.T, dir string) (at string) {
	t.Helper()
	root, err := fusefs.NewLoopbackRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		testenv.Missing(t, err)
	}
	at = t.TempDir()
	if err := os.Chmod(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d", fd, nobody, nobody)
	if err := unix.Mount("test", at, "fuse", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		unix.Close(fd)
		testenv.Missing(t, err)
	}
	server, err := fusefs.Mount(fmt.Sprintf("/dev/fd/%d", fd), root, &fusefs.Options{})
	if err != nil {
		unix.Unmount(at, unix.MNT_DETACH)
		t.Fatal(err)
	}
	t.Cleanup(func() {
		unix.Unmount(at, unix.MNT_DETACH)
		server.Wait()
	})
	return at
}

// TestClosedFileSystem: the executable is in a FUSE file system of another user's, who has not let
// others in: root may not open it. The error named no cause.
func TestClosedFileSystem(t *testing.T) {
	dir := t.TempDir()
	install(t, "/bin/sleep", filepath.Join(dir, "program"))
	cmd := exec.Command(filepath.Join(mountFUSE(t, dir), "program"), "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody,
		Gid: nobody}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	p, err := Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Executable(); err == nil || !strings.Contains(err.Error(), "-o allow_other") {
		t.Errorf("%v", err)
	}
}

// TestOtherProc: in a pid namespace with the host's /proc, numbers mean the host's processes: of
// one it was said that it is a kernel thread.
func TestOtherProc(t *testing.T) {
	if os.Getenv("OTHER_PROC") != "" {
		_, err := Open(1)
		fmt.Print(err)
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run", "^TestOtherProc$")
	cmd.Env = append(os.Environ(), "OTHER_PROC=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}
	out, err := cmd.Output()
	if err != nil {
		testenv.Missing(t, err)
	}
	if !strings.Contains(string(out), ErrOtherProc.Error()) {
		t.Errorf("%s", out)
	}
}
