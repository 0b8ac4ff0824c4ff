package kerneltests

import (
	"os/exec"
	"testing"
	"time"

	"wpptrace/internal/record/sample"
	"wpptrace/internal/testenv"
	"wpptrace/loader/target"
)

// TestSamples: each kernel samples where the CPU time of a process goes: of a bash that computes,
// to bash, and its samples make up the CPU time that it has used, but for those that the machine
// was too late for.
func TestSamples(t *testing.T) {
	path := realPath(t, "bash")
	bash := exec.CommandContext(t.Context(), path, "--norc", "-c",
		"while :; do x=$(((x * 31 + 7) % 1000)); done")
	if err := bash.Start(); err != nil {
		t.Fatal(err)
	}
	defer bash.Wait()
	defer bash.Process.Kill()
	p, err := target.Open(bash.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	began, err := p.Times()
	if err != nil {
		t.Fatal(err)
	}
	s, err := sample.Start(p, sample.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var c sample.Counts
	testenv.Eventually(t, func() bool {
		time.Sleep(100 * time.Millisecond)
		more, err := s.Take()
		if err != nil {
			t.Fatal(err)
		}
		c.Add(more)
		return c.CPUTime > time.Second
	}, "bash has computed for a second")
	// samples are taken out after the CPU time has been read, and bash runs on meanwhile
	ended, err := p.Times()
	if err != nil {
		t.Fatal(err)
	}
	own, all := uint64(0), c.Total()
	for _, i := range c.Images {
		if i.Name == path {
			own = i.Total()
		}
	}
	stand := time.Duration(all) * s.Period()
	most := (ended.CPU - began.CPU) * 11 / 10
	if own < all/3 || stand < c.CPUTime/3 || stand > most || c.Lost > 0 {
		t.Errorf("%d samples, %d of them in %s, with a period of %v in %v; %d lost", all, own, path,
			s.Period(), c.CPUTime, c.Lost)
	}
}
