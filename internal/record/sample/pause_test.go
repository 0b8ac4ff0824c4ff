package sample

import (
	"os/exec"
	"testing"
	"time"

	"wpptrace/loader/target"
)

// TestIdleIsNobodys: of a process that sleeps nothing is counted, in a pause either: the idle CPUs'
// time is nobody's.
func TestIdleIsNobodys(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	time.Sleep(100 * time.Millisecond) // it has begun
	p, err := target.Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s := sampler(t, p, Options{})
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	c, err := s.Take()
	if err != nil {
		t.Fatal(err)
	}
	if c.Total() > 0 {
		t.Errorf("%d samples, %d of them in the kernel", c.Total(), c.Kernel)
	}
}
