package main

import (
	"wpptrace/internal/record"

	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"wpptrace/internal/testenv"
)

// TestGuardKilled: a recording whose guard is killed ends, and says so; what was recorded is kept.
// What ran while the kernel took the probes out, for which it takes its time, was recorded in part.
func TestGuardKilled(t *testing.T) {
	for _, c := range []struct {
		flags   []string
		work    int
		mayLook bool
	}{
		{[]string{"-F", "^execute_"}, 1000, false}, // with no capability left
		{[]string{"-F", "^execute_", "--overhead", "50"}, 1000, true},
		{[]string{"--lib", "libc.*", "--overhead", "0"}, 50, true},
	} {
		flags, work := c.flags, c.work
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			want := answers(t, work, work)
			s := testenv.StartServer(t)
			w := startTracer(t,
				append([]string{"-p", strconv.Itoa(s.PID()), "-o", "x.wpp", "--max-slowdown", "0"},
					flags...)...)
			w.expect("recording process")
			first := s.Ask(work)
			s.Put(work)
			if err := unix.Kill(guardOf(t, w.cmd.Process.Pid), unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			w.expect("its guard has been killed")
			w.wait(0)
			if got, want := w.errs.String(), probesReported(t, s.PID(),
				c.mayLook); !strings.Contains(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
			if n := statOf(t, w, "x.wpp").Anomalies; n > 0 {
				t.Errorf("%d anomalies", n)
			}
			if second := s.Answer(); first != want[0] || second != want[1] {
				t.Errorf("the server answers %q and %q, untraced %q", first, second, want)
			}
			s.End()
			if out, errs, status := wpptrace("hot", "--top", "1", w.path("x.wpp")); status != 0 ||
				!strings.Contains(out, "%") {
				t.Errorf("hot: %s%s", out, errs)
			}
			endedOn(t, w, "x.wpp", record.GuardLost)
		})
	}
}

// TestGuardStopped: a recording ends when it is to, and takes its probes out, though somebody stops
// its guard, again and again, and it has become the user who called sudo. It waited for ever.
func TestGuardStopped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		env  []string
		uid  int // that it has gone on with
	}{
		{"root", nil, 0},
		{"the caller of sudo", []string{"SUDO_UID=65534", "SUDO_GID=65534"}, 65534},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := testenv.StartServer(t)
			cmd := exec.Command("wpptrace", "-p", strconv.Itoa(s.PID()), "-o", "x.wpp",
				"--max-slowdown", "0")
			cmd.Dir, cmd.Env = anybodysDir(t), append(os.Environ(), c.env...)
			w := runTracer(t, cmd)
			w.expect("recording process")
			if now := userOf(t, cmd.Process.Pid); now != c.uid {
				t.Errorf("wpptrace goes on as user %d, not %d", now, c.uid)
			}
			guard := guardOf(t, cmd.Process.Pid)
			must(t, unix.Kill(guard, unix.SIGSTOP))
			w.signal(unix.SIGINT)
			for range 3 {
				testenv.Eventually(t, func() bool { return !isStopped(guard) },
					"the guard is let go on")
				_ = unix.Kill(guard, unix.SIGSTOP) // it may have come to its end
			}
			w.wait(0)
			s.IsClean()
			s.End()
		})
	}
}

// isStopped reports whether a process that may have ended is stopped.
func isStopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && stat[bytes.LastIndexByte(stat, ')')+2] == 'T'
}

// userOf is the effective user of a process.
func userOf(t *testing.T, pid int) (uid int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, ids, _ := strings.Cut(string(status), "\nUid:")
	if _, err := fmt.Sscan(ids, new(int), &uid); err != nil {
		t.Fatalf("read its user: %v:\n%s", err, status)
	}
	return uid
}

// probesReported is what is to be printed of the probes of a guard that has been killed as it put
// them in, say: the kernel leaves some in then.
func probesReported(t *testing.T, pid int, mayLook bool) string {
	t.Helper()
	if !mayLook {
		return "could not verify that its probes were removed: "
	}
	if n := leftProbes(t, pid); n > 0 {
		return fmt.Sprintf("the kernel has left %d of its probes in", n)
	}
	return "its probes are out"
}

// leftProbes counts the breakpoints in the text of a process that its files do not have.
func leftProbes(t *testing.T, pid int) (n int) {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	for line := range strings.Lines(string(maps)) {
		var lo, hi, offset, inode uint64
		var access, device, path string
		fmt.Sscanf(line, "%x-%x %s %x %s %d %s", &lo, &hi, &access, &offset, &device, &inode, &path)
		if access != "r-xp" || inode == 0 {
			continue
		}
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := make([]byte, hi-lo)
		if _, err := memory.ReadAt(text, int64(lo)); err != nil {
			t.Fatal(err)
		}
		const breakpoint = 0xcc
		for i, b := range text {
			if at := offset + uint64(i); b == breakpoint && at < uint64(len(file)) &&
				file[at] != b {
				n++
			}
		}
	}
	return n
}
