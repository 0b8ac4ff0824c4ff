package guard

import (
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"wpptrace/internal/testenv"
)

// TestRunsOn: a thread is one to take the place of if it runs, and no real-time one.
func TestRunsOn(t *testing.T) {
	const rest = " 1 2 3 0 -1 4 0 0 0 0 10 0 0 0 20 0 1 0 99 0 0 18446744073709551615 0 0 0 0 0 0 0" +
		" 0 0 0 0 0 17 "
	for _, c := range []struct {
		stat string
		cpu  int
		ok   bool
	}{
		{"7 (busy) R" + rest + "1 0 0 0 0 0", 1, true},
		{"7 (a ) R b) R" + rest + "12 0 0 0 0 0", 12, true},
		{"7 (asleep) S" + rest + "1 0 0 0 0 0", 0, false},
		{"7 (real time) R" + rest + "1 50 1 0 0 0", 0, false},
		{"7 (short) R 1 2", 0, false},
		{"", 0, false},
	} {
		if cpu, ok := runsOn(c.stat); ok != c.ok || ok && cpu != c.cpu {
			t.Errorf("%q: CPU %d, %v", c.stat, cpu, ok)
		}
	}
}

// TestInPlaceOf: what is done in place of a process is done on its CPU; afterwards the thread may
// run where it might before.
func TestInPlaceOf(t *testing.T) {
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	cpu := AnyCPU
	testenv.Eventually(t, func() bool {
		cpu = CPUOf(cmd.Process.Pid)
		return cpu != AnyCPU
	}, "the process runs")
	var before, meanwhile, after unix.CPUSet
	done := false
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	err := inPlaceOf(cpu, func() error {
		done = true
		return unix.SchedGetaffinity(0, &meanwhile)
	})
	if err != nil || !done {
		t.Fatal(done, err)
	}
	if meanwhile.Count() != 1 || !meanwhile.IsSet(cpu) {
		t.Errorf("%d CPUs meanwhile", meanwhile.Count())
	}
	if err := unix.SchedGetaffinity(0, &after); err != nil || after != before {
		t.Errorf("%d CPUs before, %d after: %v", before.Count(), after.Count(), err)
	}
	if err := inPlaceOf(AnyCPU, func() error { return os.ErrClosed }); err != os.ErrClosed {
		t.Errorf("the change's error is %v", err)
	}
}

func FuzzRunsOn(f *testing.F) {
	f.Add("7 (busy) R 1 2 3")
	f.Fuzz(func(t *testing.T, stat string) {
		if cpu, ok := runsOn(stat); ok && cpu < 0 {
			t.Errorf("CPU %d", cpu)
		}
	})
}
