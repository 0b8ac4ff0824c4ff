package target_test

import (
	"os/exec"
	"testing"
	"time"

	"wpptrace/loader/target"
)

// TestForkTimes: what a shell has forked is in the list with its CPU time, also what that has
// forked, and not what has called exec.
func TestForkTimes(t *testing.T) {
	const script = `
( (while :; do :; done) & while :; do :; done ) &
/bin/sleep 100 &
read x
kill 0`
	cmd := exec.Command("setsid", "-w", "sh", "-c", script)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); _ = cmd.Wait() }()
	p, err := target.Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	const want, enough = 2, 10 * time.Millisecond
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		times, busy := p.ForkTimes(), 0
		for _, used := range times {
			if used > enough {
				busy++
			}
		}
		if len(times) == want && busy == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%v: not %d processes that work", times, want)
		}
	}
}
