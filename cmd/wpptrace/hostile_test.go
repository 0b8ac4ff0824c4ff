package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"wpptrace/internal/interrupts"
	"wpptrace/internal/planreport"
	"wpptrace/internal/testenv"
	"wpptrace/internal/traced"
	"wpptrace/loader/target"
)

// A container that means harm: its program has a name, a build id, a link to debug information and
// source files that lead elsewhere, and lies in a root in which everything that somebody may look
// for is a trap. It is recorded, and of all that is in its root, and of what its names lead to, its
// program alone is opened.
func TestHostileRoot(t *testing.T) {
	const name = "a\nb\x1b[31m"
	root := t.TempDir()
	must(t, unix.Mount("tmpfs", root, "tmpfs", 0, "mode=755,size=64m"))
	defer unix.Unmount(root, unix.MNT_DETACH)
	program := filepath.Join(root, "bin", name)
	setTraps(t, root)
	must(t, os.Rename(hostileProgram(t, root), program))
	must(t, os.Truncate(program, 10<<30)) // at no cost
	container := exec.Command(program)
	container.Args = []string{name, "\x1b]0;owned\a\n"}
	container.Path = "/bin/" + name
	container.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET |
			unix.CLONE_NEWIPC,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 100_000, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 100_000, Size: 1}},
		Credential:  &syscall.Credential{NoSetGroups: true},
		Chroot:      root,
	}
	opened := watchOpened(t, root, "/etc/shadow", "/etc/passwd")
	s := testenv.StartSubject(t, container)
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "--max-slowdown", "0", "-v")
	w.expect("recording process")
	s.Ask(1000)
	w.signal(os.Interrupt)
	w.wait(0)
	s.IsClean()
	s.End()
	snapshot := fmt.Sprintf(`a\nb\x1b[31m-%d.wpp`, s.PID())
	checkRecording(t, w, snapshot, 500)
	printed := []string{w.stdout.String(), w.errs.String()}
	for _, args := range [][]string{{"stat"}, {"stat", "--routines"}, {"hot"}, {"path", "work#0"},
		{"dump", "--as", "paths"}, {"dump", "--as", "insns"}} {
		out, errs, status := wpptrace(append(args, w.path(snapshot))...)
		if status != 0 {
			t.Errorf("%q: %s", args, errs)
		}
		printed = append(printed, out)
	}
	for _, text := range printed {
		if strings.ContainsFunc(text,
			func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }) {
			t.Errorf("it steers the terminal: %q", text)
		}
	}
	if !strings.Contains(printed[0], "work") {
		t.Errorf("its routine is not in the report: %s", printed[0])
	}
	by := map[int32]bool{int32(w.cmd.Process.Pid): true, int32(os.Getpid()): true}
	if got := opened.by(by); len(got) == 0 || slices.ContainsFunc(got,
		func(path string) bool { return !strings.HasSuffix(path, "/bin/"+name) }) {
		t.Errorf("opened were %q, not %q alone", got, program)
	}
	if _, err := os.ReadFile("/etc/shadow"); err != nil || !slices.Equal(opened.by(by),
		[]string{"/etc/shadow"}) {
		t.Errorf("that /etc/shadow is opened goes unnoticed: %v", err)
	}
}

// setTraps makes what somebody may look for in a root.
func setTraps(t *testing.T, root string) {
	t.Helper()
	ids := filepath.Join(root, "usr/lib/debug/.build-id", hostileID[:2])
	for _, dir := range []string{"bin/.debug", "usr/lib/debug/bin", "etc", "tmp"} {
		must(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	must(t, os.MkdirAll(ids, 0o755))
	for _, pipe := range []string{filepath.Join(ids, hostileID[2:]+".debug"),
		filepath.Join(root, "source.c"), filepath.Join(root, "bin/.debug/shadow")} {
		must(t, unix.Mkfifo(pipe, 0o666))
	}
	// as /dev/zero
	must(t, unix.Mknod(filepath.Join(root, "bin/shadow"), unix.S_IFCHR|0o666,
		int(unix.Mkdev(1, 5))))
	for link, to := range map[string]string{"etc/shadow": "/etc/shadow",
		"usr/lib/debug/bin/shadow": "/etc/shadow", "lib": "/proc/1/root/lib", "proc": "/proc"} {
		must(t, os.Symlink(to, filepath.Join(root, link)))
	}
}

// hostileID is ../../etc/shadow, as a build id.
const hostileID = "2e2e2f2e2e2f6574632f736861646f77"

// hostileProgram makes answering, with lines of /etc/shadow and of a pipe, and a link to debug
// information that leads to the former.
func hostileProgram(t *testing.T, dir string) (program string) {
	t.Helper()
	source := "#line 1 \"/etc/shadow\"\n" + strings.Replace(answering, "int main",
		"#line 1 \"/source.c\"\nint main", 1)
	program = testenv.CompileC(t, source, "-O1", "-g", "-static", "-Wl,--build-id=0x"+hostileID)
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.WriteFile(link,
		[]byte("../../../../../../etc/shadow\x00\x00\x00\x00\x12\x34\x56\x78"), 0o600))
	moved := filepath.Join(dir, "program")
	if out, err := exec.Command("objcopy", "--add-section", ".gnu_debuglink="+link, program,
		moved).CombinedOutput(); err != nil {
		t.Fatalf("objcopy: %v\n%s", err, out)
	}
	return moved
}

// A watch reports who opens what (fanotify(7)).
type watch struct {
	t  *testing.T
	fd int
}

// watchOpened watches a file system, and files elsewhere.
func watchOpened(t *testing.T, filesystem string, files ...string) watch {
	t.Helper()
	const flags = unix.FAN_CLASS_NOTIF | unix.FAN_CLOEXEC | unix.FAN_NONBLOCK |
		unix.FAN_UNLIMITED_QUEUE
	fd, err := unix.FanotifyInit(flags, unix.O_RDONLY|unix.O_LARGEFILE|unix.O_NONBLOCK)
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	must(t, unix.FanotifyMark(fd, unix.FAN_MARK_ADD|unix.FAN_MARK_FILESYSTEM,
		unix.FAN_OPEN|unix.FAN_ACCESS|unix.FAN_ONDIR, unix.AT_FDCWD, filesystem))
	for _, file := range files {
		must(t, unix.FanotifyMark(fd, unix.FAN_MARK_ADD, unix.FAN_OPEN|unix.FAN_ACCESS,
			unix.AT_FDCWD, file))
	}
	return watch{t, fd}
}

// by lists what some processes have opened, each once.
func (w watch) by(pids map[int32]bool) (paths []string) {
	w.t.Helper()
	buf := make([]byte, 1<<16)
	for {
		n, err := unix.Read(w.fd, buf)
		if errors.Is(err, unix.EAGAIN) {
			slices.Sort(paths)
			return slices.Compact(paths)
		}
		must(w.t, err)
		for events := buf[:n]; len(events) > 0; {
			var e unix.FanotifyEventMetadata
			_, err := binary.Decode(events, binary.NativeEndian, &e)
			must(w.t, err)
			path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", e.Fd))
			must(w.t, err)
			unix.Close(int(e.Fd))
			if pids[e.Pid] {
				paths = append(paths, path)
			}
			events = events[e.Event_len:]
		}
	}
}

// FuzzProgram: the plan of a program is printed, whatever bytes the program has, or there is an
// error, of which FuzzProgram of internal/record says what it is.
func FuzzProgram(f *testing.F) {
	testenv.FuzzProgram(f, func(t *testing.T, program *os.File) {
		if p, err := traced.Load(program, "fuzzed", traced.Selection{}); err == nil {
			r := planreport.New(p, "fuzzed", traced.Selection{}, nil)
			must(t, r.WriteText(io.Discard, true))
		}
	})
}

// notAnswering has a page of its code answer nobody who reads it: it serves no fault there
// (userfaultfd(2)).
const notAnswering = `
#define _GNU_SOURCE
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((aligned(4096))) int away(int n) { int s = 0;
	for (int i = 0; i < n; i++) s = s * 31 + i; return s; }
__attribute__((aligned(4096))) int main(int argc, char **argv)
{
	if (argc > 1)
		return away(argc);
	int fd = syscall(SYS_userfaultfd, 0);
	struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_MINOR_SHMEM};
	struct uffdio_register page = {.range = {(uintptr_t)away, 4096},
		.mode = UFFDIO_REGISTER_MODE_MINOR};
	if (ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &page) || madvise(away, 4096, MADV_DONTNEED))
		return 1;
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}`

// A process that keeps its code from being read keeps nobody from quitting.
func TestCodeThatNeverAnswers(t *testing.T) {
	dir := t.TempDir() // of a file system whose pages userfaultfd answers for
	must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, ""))
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	content, err := os.ReadFile(testenv.CompileC(t, notAnswering, "-O1"))
	must(t, err)
	program := filepath.Join(dir, "prog")
	must(t, os.WriteFile(program, content, 0o755))
	cmd := exec.Command(program)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if n, err := out.Read(make([]byte, 16)); n == 0 {
		t.Fatal(err)
	}
	w := startTracer(t, "-p", strconv.Itoa(cmd.Process.Pid), "--max-slowdown", "0")
	waitUntilStuck(t, w.cmd.Process.Pid)
	ended := make(chan bool)
	go func() {
		for {
			// which of them comes late enough to be a second one depends on when the first is taken
			w.cmd.Process.Signal(os.Interrupt)
			select {
			case <-ended:
				return
			case <-time.After(2 * interrupts.SameWish):
			}
		}
	}()
	w.wait(1)
	close(ended)
	w.hasRecordedNothing()
}

// waitUntilStuck waits until a thread of a process waits for what userfaultfd is to answer.
func waitUntilStuck(t *testing.T, pid int) {
	t.Helper()
	testenv.Eventually(t, func() bool {
		stacks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stack", pid))
		return slices.ContainsFunc(stacks, func(path string) bool {
			stack, err := os.ReadFile(path)
			return err == nil && strings.Contains(string(stack), "handle_userfault")
		})
	}, "wpptrace waits for code that never answers")
}

// What is given for a program and is none is neither waited for nor reported on more than a line.
func TestNoPrograms(t *testing.T) {
	dir := t.TempDir()
	pipe, secret := filepath.Join(dir, "a\npipe\x1b[31m"), filepath.Join(dir, "secret")
	must(t, unix.Mkfifo(pipe, 0o600))
	must(t, os.Symlink("/etc/shadow", secret))
	const remedy = ": name a program's file by its path, or a running process with -p"
	for path, want := range map[string]string{
		pipe: filepath.Join(dir,
			"a?pipe?[31m") + " is no regular file" + remedy,
		"/dev/zero":                      "/dev/zero is no regular file" + remedy,
		dir:                              dir + " is no regular file" + remedy,
		secret:                           "secret is not an ELF program: name the file of one",
		filepath.Join(dir, "none\nnone"): "none?none: no such file or directory" + remedy,
	} {
		if out, errs, status := wpptrace("plan", path); status != 1 || out != "" ||
			strings.Count(errs, "\n") != 1 || !strings.HasSuffix(errs, want+"\n") {
			t.Errorf("%q: status %d, %q, want %q", path, status, errs, want)
		}
	}
}

// A library that coverage and residual leave out may have any name.
func TestNameOfLibraryThatIsNotObserved(t *testing.T) {
	s := interrupts.Watch()
	defer s.Stop()
	p, err := target.Open(os.Getpid())
	must(t, err)
	defer p.Close()
	var out strings.Builder
	o := newRecordFlags()
	by := o.observing(s, p, nil, &out)
	defer by.printer.Prepared()
	by.options.LibraryLeftOut("/tmp/a\nb\x1b[31m.so", errors.New("it has no name"))
	if want := "wpptrace: /tmp/a?b?[31m.so is not traced: it has no name\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}
