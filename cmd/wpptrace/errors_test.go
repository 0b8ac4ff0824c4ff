package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
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

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/store"
	"wpptrace/internal/testenv"
	"wpptrace/loader/target"
)

// copyProgram makes a copy of this program, under a name, where everybody may run it.
func copyProgram(t *testing.T, name string) (path string) {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && len(d) > 1; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, self, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// anybodysDir makes a directory in which everybody may make files.
func anybodysDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// fails runs a command that must exit with status 1 and say one line with this text.
func fails(t *testing.T, cmd *exec.Cmd, text string) {
	t.Helper()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	cmd.Run()
	got := errs.String()
	if cmd.ProcessState.ExitCode() != 1 || strings.Count(got, "\n") != 1 ||
		!strings.HasPrefix(got, "wpptrace: ") || !strings.Contains(got, text) {
		t.Errorf("%v: %v: %q, want one line with %q", cmd.Args, cmd.ProcessState, got, text)
	}
}

func TestNotRoot(t *testing.T) {
	const nobody = 65534
	program := copyProgram(t, "wpptrace")
	work := anybodysDir(t)
	asNobody := func(args ...string) *exec.Cmd {
		cmd := exec.Command(program, args...)
		cmd.Dir = work
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody,
			Gid: nobody}}
		return cmd
	}
	s := testenv.StartServer(t)
	const want = "no CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE: run wpptrace as root (sudo wpptrace " +
		"...); a container must be a privileged one\n"
	fails(t, asNobody("-p", strconv.Itoa(s.PID())), "wpptrace: trace a process: "+want)
	fails(t, asNobody("--", "/bin/true"), "wpptrace: trace a process: "+want)
	out, err := asNobody("check").Output()
	if text := string(out); err == nil || !strings.Contains(text,
		"missing  privileges       "+want) || !strings.Contains(text, "\nunknown  bpf ") ||
		strings.Count(text, "missing") != 1 {
		t.Errorf("check: %v\n%s", err, out)
	}
	if out, err := asNobody("plan", "/bin/true").CombinedOutput(); err != nil {
		t.Errorf("plan needs privileges: %v\n%s", err, out)
	}
	snapshot := filepath.Join(filepath.Dir(program), "x.wpp")
	if err := os.WriteFile(snapshot, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fails(t, asNobody("hot", snapshot), "x.wpp: permission denied: only its owner may read it: "+
		"use sudo, or give it away with chown\n")
	if left, _ := os.ReadDir(work); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	s.IsClean()
	s.End()
}

// awaitUse returns when a process has used so much CPU time.
func awaitUse(t *testing.T, pid int, more time.Duration) {
	t.Helper()
	p, err := target.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	before, err := p.Times()
	testenv.Eventually(t, func() bool {
		var used target.Times
		used, err = p.Times()
		return err != nil || used.CPU-before.CPU >= more
	}, "process %d uses %v of CPU time", pid, more)
	if err != nil {
		t.Fatal(err)
	}
}

// Three capabilities do for anybody's process, and a recording that has begun has none, or what its
// windows take.
func TestFewCapabilities(t *testing.T) {
	t.Parallel()
	const nobody = 65534
	program := copyProgram(t, "wpptrace")
	pid := testenv.Start(t, exec.Command(testenv.CompileC(t, seldom))).PID()
	work := anybodysDir(t)
	with := func(more ...uintptr) *syscall.SysProcAttr {
		return &syscall.SysProcAttr{
			Credential: &syscall.Credential{Uid: nobody, Gid: nobody},
			AmbientCaps: append([]uintptr{unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_SYS_PTRACE},
				more...),
		}
	}
	few := with()
	for _, c := range []struct {
		who   *syscall.SysProcAttr
		flags []string
		want  string
		guard string
	}{
		{few, nil, "0000000000000000", "0000000000000000"},
		{nil, nil, "0000000000000000", "0000000000000000"},
		{few, []string{"--overhead", "20"}, "0000000000080000", "000000c000000000"},
		{nil, []string{"--overhead", "20"}, "0000000000880000", "000000c000800000"},
		{nil, []string{"--on-overflow", "stop"}, "0000000000000020", "0000000000000020"},
		{with(unix.CAP_KILL), []string{"--on-overflow", "stop"}, "0000000000000020",
			"0000000000000020"},
		{with(unix.CAP_KILL, unix.CAP_CHECKPOINT_RESTORE, unix.CAP_DAC_READ_SEARCH),
			[]string{"--lib", "none"}, "0000010000080024", "000000c000000020"},
		{nil, []string{"--lib", "none"}, "0000010000080024", "000000c000800020"},
		{nil, []string{"--lib", "none", "--overhead", "20"}, "0000010000880024",
			"000000c000800020"},
		{with(unix.CAP_KILL, unix.CAP_DAC_READ_SEARCH), []string{"--follow-fork"},
			"000000c000080024", "000000c000000020"},
		{nil, []string{"--follow-fork"}, "000000c000080024", "000000c000800020"},
	} {
		cmd := exec.Command(program,
			append([]string{"-v", "-p", strconv.Itoa(pid), "-o", "x.wpp", "--max-slowdown", "0"},
				c.flags...)...)
		cmd.Dir, cmd.SysProcAttr = work, c.who
		if c.who == nil {
			cmd.Dir = t.TempDir()
		}
		w := runTracer(t, cmd)
		w.expect("recording process")
		hasCapabilities(t, cmd.Process.Pid, c.want)
		hasCapabilities(t, guardOf(t, cmd.Process.Pid), c.guard)
		least := uint64(1)
		if slices.Contains(c.flags, "--overhead") {
			for range 3 {
				w.expect("a window has ended")
			}
			least = 0 // where others are at work, the process may not run in any
		} else {
			awaitUse(t, pid, 50*time.Millisecond)
		}
		w.signal(os.Interrupt)
		w.wait(0)
		if stat := checkRecording(t, w, "x.wpp", least); slices.Contains(c.flags,
			"--overhead") != (stat.Windows > 2) {
			t.Errorf("%q: %d windows:\n%s", c.flags, stat.Windows, w.errs.String())
		}
	}
}

func hasCapabilities(t *testing.T, pid int, want string) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{"CapPrm", "CapEff"} {
		if !strings.Contains(string(status), set+":\t"+want+"\n") {
			t.Errorf("%s is not %s:\n%s", set, want, status)
		}
	}
}

// guardOf is the one child of a wpptrace that attaches.
func guardOf(t *testing.T, pid int) (child int) {
	t.Helper()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if len(children) > 0 {
			if _, err := fmt.Sscan(string(children), &child); err != nil {
				t.Fatal(err)
			}
		}
	}
	return child
}

// What libraries and stopping take besides is missed before the process is touched.
func TestTooFewCapabilities(t *testing.T) {
	t.Parallel()
	const nobody = 65534
	program := copyProgram(t, "wpptrace")
	s := testenv.StartServer(t)
	for _, c := range []struct {
		flag, value string
		more        []uintptr
		want        string
	}{
		{"--lib", "none", nil, "permission denied: run wpptrace as root, with " +
			"CAP_CHECKPOINT_RESTORE"},
		{"--lib", "none", []uintptr{unix.CAP_CHECKPOINT_RESTORE, unix.CAP_DAC_READ_SEARCH},
			"not let go on: no CAP_KILL"},
		{"--on-overflow", "stop", nil, "not let go on: no CAP_KILL"},
	} {
		cmd := exec.Command(program, "-q", "-p", strconv.Itoa(s.PID()), "-o", "x.wpp", c.flag,
			c.value)
		cmd.Dir = anybodysDir(t)
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Credential: &syscall.Credential{Uid: nobody, Gid: nobody},
			AmbientCaps: append([]uintptr{unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_SYS_PTRACE},
				c.more...),
		}
		fails(t, cmd, c.want)
	}
	s.IsClean()
	s.End()
}

func TestNoBPF(t *testing.T) {
	work := t.TempDir()
	s := testenv.StartServer(t)
	for _, args := range [][]string{{"-p", strconv.Itoa(s.PID())}, {"--", "/bin/true"}} {
		cmd := exec.Command("wpptrace-nobpf", args...)
		cmd.Dir = work
		fails(t, cmd, "function not implemented: this kernel, or a sandbox, has no bpf system call")
	}
	out, err := exec.Command("wpptrace-nobpf", "check").Output()
	if err == nil || !strings.Contains(string(out), "\nmissing  bpf ") {
		t.Errorf("check: %v\n%s", err, out)
	}
	if left, _ := os.ReadDir(work); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	s.IsClean()
	s.End()
}

// TestFullDiskLeavesWhatWasRecorded: where a disk is full at the end, the message names the file.
func TestFullDiskLeavesWhatWasRecorded(t *testing.T) {
	kept := store.WriteError("x.wpp",
		fmt.Errorf("write snapshot x.wpp: %w",
			&store.KeptError{Err: unix.ENOSPC, File: ".x.wpp.1"}))
	if want := "write snapshot x.wpp: no space left on device: free some space there, or name " +
		"another file with -o; what was recorded before is in .x.wpp.1"; errorText(kept) != want {
		t.Errorf("%q, want %q", errorText(kept), want)
	}
}

// TestFullDisk: a disk that gets full is said at the first write that fails; what is there stays.
// No recording begins on one that is full.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=131072"); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(dir, 0)
	before := &wpp.Snapshot{Figures: wpp.Figures{PID: 4711}}
	must(t, store.WriteFile(filepath.Join(dir, "x.wpp"), before))
	s := testenv.StartServer(t)
	trace := func() *tracer {
		return startTracer(t, "-p", strconv.Itoa(s.PID()), "--max-slowdown", "0", "-o",
			filepath.Join(dir, "x.wpp"))
	}
	w := trace()
	w.expect("recording process")
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 1<<18),
		0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	s.Ask(10)
	w.signal(unix.SIGUSR2)
	w.expect("no space left on device")
	w.signal(unix.SIGINT)
	w.wait(1)
	want := "wpptrace: write snapshot " + filepath.Join(dir,
		"x.wpp") + ": no space left on device: free some space there, or name another file with " +
		"-o\n"
	if got := w.errs.String(); strings.Count(got, want) != 2 {
		t.Errorf("the snapshot in the middle and the one at the end: %q, want %q", got, want)
	}
	if out, errs := w.stdout.String(), w.errs.String(); !strings.Contains(out,
		"minimal hot subpaths") || !strings.Contains(errs, "lost: 0 events\n") {
		t.Errorf("what was recorded is not reported:\n%s\n%s", out, errs)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	if old, err := store.ReadFile(filepath.Join(dir, "x.wpp")); err != nil ||
		old.Figures.PID != before.Figures.PID {
		t.Errorf("the old snapshot: %v", err)
	}
	w = trace()
	w.wait(1)
	if got := w.errs.String(); got != want {
		t.Errorf("a recording on a full disk: %q, want %q", got, want)
	}
	s.IsClean()
	s.End()
}

func TestBadSnapshots(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good.wpp")
	if _, errs, status := wpptrace("-q", "-o", good, "--", "/bin/true"); status != 0 {
		t.Fatal(errs)
	}
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	future := bytes.Clone(whole)
	future[8] = 99
	binary.LittleEndian.PutUint32(future[12:],
		crc32.Checksum(future[:12], crc32.MakeTable(crc32.Castagnoli)))
	const again, other = "copy it again from where it was recorded, or record anew",
		"name a file that wpptrace has recorded"
	for name, c := range map[string]struct {
		content []byte
		remedy  string
	}{
		"empty":     {nil, other},
		"text":      {[]byte("no snapshot at all, but long enough"), other},
		"truncated": {whole[:len(whole)/2], again},
		"future":    {future, "use a newer wpptrace"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range [][]string{{"stat"}, {"hot"}, {"path", "main#0"}, {"dump"}} {
			out, errs, status := wpptrace(append(command, path)...)
			if status != 1 || out != "" || strings.Count(errs, "\n") != 1 ||
				!strings.Contains(errs, path) || !strings.HasSuffix(errs, ": "+c.remedy+"\n") {
				t.Errorf("%s %s: status %d, %q, %q", command, name, status, out, errs)
			}
		}
	}
}

// Of a snapshot that is cut off commands print what is whole, and fail all the same: they ended
// with status 0.
func TestSnapshotsThatAreCutOff(t *testing.T) {
	dir := t.TempDir()
	good, cut := filepath.Join(dir, "good.wpp"), filepath.Join(dir, "cut.wpp")
	if _, errs, status := wpptrace("-q", "-o", good, "--", "/bin/true"); status != 0 {
		t.Fatal(errs)
	}
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	salvaged := 0
	for n := 0; n < len(whole); n += 1 + len(whole)/50 {
		if err := os.WriteFile(cut, whole[:len(whole)-1-n], 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"stat", cut}, {"hot", cut}, {"dump", cut},
			{"diff", good, cut}, {"diff", cut, good}} {
			out, errs, status := wpptrace(args...)
			if status != 1 || strings.Count(errs, "\n") != 1 || !strings.HasPrefix(errs,
				"wpptrace: snapshot "+cut+" ") {
				t.Fatalf("%s without its last %d bytes: status %d, %q", args[0], 1+n, status, errs)
			}
			if out != "" {
				salvaged++
			}
		}
	}
	if salvaged == 0 {
		t.Error("of no file anything was read")
	}
}
