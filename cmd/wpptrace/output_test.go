package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"

	"wpptrace/compress/wpp/store"
	"wpptrace/internal/testenv"
)

// TestOutputThatStays: a file that nothing can take the place of was found out when the recording
// had ended, which was lost.
func TestOutputThatStays(t *testing.T) {
	const nobody = 65534
	program := copyProgram(t, "wpptrace")
	dir := anybodysDir(t)
	must(t, os.Chmod(dir, 0o777|os.ModeSticky))
	file := filepath.Join(dir, "x.wpp")
	must(t, os.WriteFile(file, []byte("another's"), 0o644))
	record := func(who *syscall.SysProcAttr) *exec.Cmd {
		cmd := exec.Command(program, "-o", "x.wpp", "--", "/bin/echo", "it has run")
		cmd.Dir, cmd.SysProcAttr = dir, who
		return cmd
	}
	fails(t, record(&syscall.SysProcAttr{
		Credential:  &syscall.Credential{Uid: nobody, Gid: nobody},
		AmbientCaps: []uintptr{unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_SYS_PTRACE},
	}), "write snapshot x.wpp: what is there is another user's, who alone may replace it: name "+
		"another file with -o")

	f, err := os.Open(file)
	must(t, err)
	defer f.Close()
	const immutable = 0x10 // FS_IMMUTABLE_FL
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	must(t, err)
	must(t, setFlags(f, flags|immutable))
	defer setFlags(f, flags)
	fails(t, record(nil), "write snapshot x.wpp: what is there is marked never to be replaced: "+
		"see chattr: name another file with -o")
}

// TestOutputIsMountPoint: that was found out when the recording had ended, too.
func TestOutputIsMountPoint(t *testing.T) {
	dir := t.TempDir()
	from, file := filepath.Join(dir, "from"), filepath.Join(dir, "x.wpp")
	must(t, os.WriteFile(from, nil, 0o600))
	must(t, os.WriteFile(file, nil, 0o600))
	must(t, unix.Mount(from, file, "", unix.MS_BIND, ""))
	defer unix.Unmount(file, 0)
	fails(t, exec.Command("wpptrace", "-o", file, "--", "/bin/echo", "it has run"),
		"what is there is a mount point: name another file with -o")
}

// setFlags sets those that chattr does.
func setFlags(f *os.File, flags int) error {
	return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags)
}

// TestPipeWithoutReader: it was waited for without end, whatever signal came.
func TestPipeWithoutReader(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, unix.Mkfifo(pipe, 0o600))
	cmd := exec.Command("wpptrace", "--raw", pipe, "-o", "x.wpp", "--", "/bin/true")
	cmd.Dir = t.TempDir()
	fails(t, cmd, "write raw trace "+pipe+": nobody has opened the pipe to read it for 5s: start "+
		"what reads it first")
}

// TestPipeWithLateReader: a reader may be started at the same time.
func TestPipeWithLateReader(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, unix.Mkfifo(pipe, 0o600))
	w := startTracer(t, "--raw", pipe, "-o", "x.wpp", "--", "/bin/true")
	time.Sleep(300 * time.Millisecond) // the reader is to be late
	trace, err := os.ReadFile(pipe)
	must(t, err)
	w.wait(0)
	must(t, os.WriteFile(w.path("x.raw"), trace, 0o600))
	sameOperations(t, w, "x.wpp", "x.raw")
}

// TestFileCapabilities: a program that has its capabilities by its file could not look at itself,
// and said that the kernel was too old. Whoever looks at it may not, once it has given them up.
func TestFileCapabilities(t *testing.T) {
	const nobody = 65534
	program := copyProgram(t, "wpptrace")
	few := cap.NewSet()
	must(t, few.SetFlag(cap.Permitted, true, cap.BPF, cap.PERFMON, cap.SYS_PTRACE))
	must(t, few.SetFlag(cap.Effective, true, cap.BPF, cap.PERFMON, cap.SYS_PTRACE))
	must(t, few.SetFile(program))
	pid := testenv.Start(t, exec.Command(testenv.CompileC(t, seldom))).PID()
	cmd := exec.Command(program, "-p", strconv.Itoa(pid), "--overhead", "0", "--max-slowdown", "0",
		"-o", "x.wpp")
	cmd.Dir = anybodysDir(t)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody,
		Gid: nobody}}
	w := runTracer(t, cmd)
	w.expect("recording process")
	hasCapabilities(t, cmd.Process.Pid, "0000000000000000")
	for _, p := range []int{cmd.Process.Pid, guardOf(t, cmd.Process.Pid)} {
		if info, err := os.Stat(fmt.Sprintf("/proc/%d/mem", p)); err != nil ||
			info.Sys().(*syscall.Stat_t).Uid != 0 {
			// its owner is who may look
			t.Errorf("process %d, which has no capabilities, can be taken over: %v, %v", p, info,
				err)
		}
	}
	awaitUse(t, pid, 50*time.Millisecond)
	w.signal(os.Interrupt)
	w.wait(0)
	checkRecording(t, w, "x.wpp", 1)
}

// writesToStdout reports whether a thread of a process is in write(1, ...).
func writesToStdout(t *testing.T, pid int) bool {
	calls, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
	must(t, err)
	return slices.ContainsFunc(calls, func(path string) bool {
		call, err := os.ReadFile(path) // fails of a thread that has ended
		return err == nil && strings.HasPrefix(string(call), fmt.Sprintf("%d 0x1 ", unix.SYS_WRITE))
	})
}

// TestReportIsCutShort: a report that took minutes, or that nobody read, went on whatever signal
// came.
func TestReportIsCutShort(t *testing.T) {
	s := testenv.StartServer(t)
	reader, full, err := os.Pipe()
	must(t, err)
	defer reader.Close()
	defer full.Close()
	size, err := unix.FcntlInt(full.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize())
	must(t, err)
	if _, err := full.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd := exec.Command("wpptrace", "-p", strconv.Itoa(s.PID()), "-d", "100ms", "-o", "x.wpp")
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), full, &errs
	must(t, cmd.Start())
	over := time.AfterFunc(testenv.Patience, func() { cmd.Process.Kill() })
	defer over.Stop()
	testenv.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(cmd.Dir, "x.wpp"))
		return err == nil && writesToStdout(t, cmd.Process.Pid)
	}, "there is a snapshot, and the report waits for a reader")
	must(t, cmd.Process.Signal(unix.SIGINT))
	cmd.Wait()
	if got := errs.String(); cmd.ProcessState.ExitCode() != exitError || !strings.HasSuffix(got,
		"wpptrace: interrupted while it reported: the snapshot is whole: wpptrace hot x.wpp\n") {
		t.Errorf("%v: %s", cmd.ProcessState, got)
	}
	if _, err := store.ReadFile(filepath.Join(cmd.Dir, "x.wpp")); err != nil {
		t.Error(err)
	}
	s.IsClean()
	s.End()
}
