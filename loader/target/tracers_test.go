package target_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"

	"wpptrace/loader/target"
)

// TestMain holds a process when it is told to.
func TestMain(m *testing.M) {
	if pid := os.Getenv("HOLD_PROCESS"); pid != "" {
		n, err := strconv.Atoi(pid)
		if err == nil {
			_, err = target.Open(n)
		}
		if err != nil {
			panic(err)
		}
		fmt.Println(os.Getpid())
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	os.Exit(m.Run())
}

// TestTracers: another process of this program that holds a process is listed as long as it does,
// and neither this one, nor one of another program, nor who holds another process.
func TestTracers(t *testing.T) {
	sleep := exec.Command("sleep", "100")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sleep.Wait() }()
	defer func() { _ = sleep.Process.Kill() }()
	p, err := target.Open(sleep.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	other, err := target.Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if list := p.Tracers(); len(list) > 0 {
		t.Errorf("%v hold it before anybody does", list)
	}
	// by way of a shell: whoever this one has started is not listed
	holder := exec.Command("sh", "-c", `"$0"; true`, os.Args[0])
	holder.Env = append(os.Environ(), fmt.Sprintf("HOLD_PROCESS=%d", p.PID))
	in, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	if list := p.Tracers(); !slices.Equal(list, []int{pid}) {
		t.Errorf("%v hold it, not %d", list, pid)
	}
	if list := other.Tracers(); len(list) > 0 {
		t.Errorf("%v hold this one", list)
	}
	if err := errors.Join(in.Close(), holder.Wait()); err != nil {
		t.Fatal(err)
	}
	if list := p.Tracers(); len(list) > 0 {
		t.Errorf("%v hold it after they have ended", list)
	}
}
