package main

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"wpptrace/loader/target"
)

// What waits for a CPU that others have is no more at rest than what has one: without them, a slow-down
// is all it would notice. What sleeps is.
func TestLoadOfWhatWaits(t *testing.T) {
	var one unix.CPUSet
	one.Set(0)
	measure := func(script string) load {
		cmd := exec.Command("sh", "-c", script)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		if err := unix.SchedSetaffinity(cmd.Process.Pid, &one); err != nil {
			t.Fatal(err)
		}
		p, err := target.Open(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		_, now, err := measureLoad(p)
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	if now := measure("exec sleep 1000"); now.uses > 0.2 || now.wants > 0.5 {
		t.Errorf("one that sleeps: %+v", now)
	}
	const busy = "while :; do :; done"
	for range 3 {
		measure(busy)
	}
	if now := measure(busy); now.uses > 0.6 || now.wants < 0.9 {
		t.Errorf("one of four that share a CPU: %+v", now)
	}
}
