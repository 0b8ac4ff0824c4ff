package record

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"wpptrace/internal/testenv"
	"wpptrace/loader/target"
)

// What waits for a CPU that others have is no more at rest than what has one: without them, a
// slow-down is all it would notice. What sleeps is.
func TestLoadOfWhatWaits(t *testing.T) {
	var allowed, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Fatal(err)
	}
	cpu := 0
	for !allowed.IsSet(cpu) {
		cpu++
	}
	one.Set(cpu)
	start := func(name string, args ...string) *target.Process {
		cmd := exec.Command(name, args...)
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
		t.Cleanup(p.Close)
		return p
	}
	measure := func(p *target.Process) load {
		_, now, err := measureLoad(p)
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	asleep := start("sleep", "1000")
	testenv.Eventually(t, asleep.Sleeping, "sleep sleeps")
	if now := measure(asleep); now.uses > 0.2 || now.wants > 0.2 {
		t.Errorf("one that sleeps: %+v", now)
	}
	var busy *target.Process
	for range 4 {
		busy = start("sh", "-c", "while :; do :; done")
	}
	if now := measure(busy); now.uses > 0.6 || now.wants < 0.9 {
		t.Errorf("one of four that share a CPU: %+v", now)
	}
}
