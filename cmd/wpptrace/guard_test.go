package main

import (
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestGuardKilled: a recording whose guard is killed ends, and says so; what was recorded is kept.
func TestGuardKilled(t *testing.T) {
	const work = 3_000
	want := answers(t, work, work)
	for _, flags := range [][]string{nil, {"--overhead", "50"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			s := startServer(t)
			w := startTracer(t, append([]string{"-p", strconv.Itoa(s.pid()), "-o", "x.wpp", "--max-slowdown", "0", "-F", "^execute_"}, flags...)...)
			w.expect("recording process")
			first := s.ask(work)
			if err := unix.Kill(guardOf(t, w.cmd.Process.Pid), unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			w.expect("has been killed")
			w.wait(0)
			if second := s.ask(work); first != want[0] || second != want[1] {
				t.Errorf("the server answers %q and %q, untraced %q", first, second, want)
			}
			s.end()
			if out, errs, status := wpptrace("hot", "--top", "1", w.path("x.wpp")); status != 0 || !strings.Contains(out, "%") {
				t.Errorf("hot: %s%s", out, errs)
			}
		})
	}
}

// TestGuardStopped: a recording ends when it is to, and takes its probes out, though somebody has
// stopped its guard. It waited for ever.
func TestGuardStopped(t *testing.T) {
	s := startServer(t)
	w := startTracer(t, "-p", strconv.Itoa(s.pid()), "-o", "x.wpp", "--max-slowdown", "0")
	w.expect("recording process")
	if err := unix.Kill(guardOf(t, w.cmd.Process.Pid), unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	w.signal(unix.SIGINT)
	w.wait(0)
	s.isClean()
	s.end()
}
