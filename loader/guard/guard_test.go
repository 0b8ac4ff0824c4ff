package guard

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"wpptrace/bpf"
	"wpptrace/loader/target"
)

// What is known of a stop follows the signals in the order in which they take effect: a SIGCONT that comes before our own SIGSTOP, which is on its way, once left
// the process stopped for ever.
func TestSignalsBesideAStop(t *testing.T) {
	for _, c := range []struct {
		name    string
		steps   []string
		state   bpf.TracerStopState
		other   unix.Signal
		stopped bool
	}{
		{"nothing", []string{"SIGSTOP", "let go"}, bpf.TracerStopStateSTOP_NONE, 0, true},
		{"on its way", []string{"hold", "let go"}, bpf.TracerStopStateSTOP_SENT, 0, false},
		{"let go", []string{"hold", "stop", "let go"}, bpf.TracerStopStateSTOP_NONE, 0, false},
		{"let go before it stops", []string{"hold", "let go", "stop", "let go"}, bpf.TracerStopStateSTOP_NONE, 0, false},
		{"SIGCONT before it stops", []string{"hold", "SIGCONT", "stop"}, bpf.TracerStopStateSTOP_OURS, 0, true},
		{"SIGCONT", []string{"hold", "stop", "SIGCONT"}, bpf.TracerStopStateSTOP_NONE, 0, false},
		{"theirs too", []string{"hold", "stop", "SIGSTOP", "let go"}, bpf.TracerStopStateSTOP_NONE, 0, true},
		{"theirs before it stops", []string{"hold", "SIGSTOP", "stop", "let go"}, bpf.TracerStopStateSTOP_NONE, 0, true},
		{"theirs and SIGCONT before it stops", []string{"hold", "SIGSTOP", "SIGCONT", "stop"}, bpf.TracerStopStateSTOP_OURS, 0, true},
		{"the terminal's", []string{"hold", "stop", "SIGTSTP"}, bpf.TracerStopStateSTOP_OURS, unix.SIGTSTP, true},
		{"the terminal's is kept", []string{"hold", "stop", "SIGTSTP", "let go"}, bpf.TracerStopStateSTOP_NONE, 0, true},
		{"the terminal's is taken back", []string{"hold", "stop", "SIGTSTP", "SIGCONT"}, bpf.TracerStopStateSTOP_NONE, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, stops := follow(t)
			for _, step := range c.steps {
				take(t, p, stops, step)
			}
			var s bpf.TracerStop
			if err := stops.Lookup(uint32(0), &s); err != nil {
				t.Fatal(err)
			}
			if state, other := bpf.TracerStopState(s.State), unix.Signal(s.Other); state != c.state || other != c.other {
				t.Errorf("state %d, other signal %d; want %d and %d", state, other, c.state, c.other)
			}
			becomes(t, p, c.stopped)
		})
	}
}

// follow starts a process whose signals the BPF program sees.
func follow(t *testing.T) (*target.Process, *ebpf.Map) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	p, err := target.Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	spec, err := bpf.LoadTracer()
	if err != nil {
		t.Fatal(err)
	}
	if err := spec.Variables["target"].Set(uint32(p.PID)); err != nil {
		t.Fatal(err)
	}
	var loaded struct {
		Signals *ebpf.Program `ebpf:"signal_sent"`
		Stops   *ebpf.Map     `ebpf:"stops"`
	}
	if err := spec.LoadAndAssign(&loaded, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { loaded.Signals.Close(); loaded.Stops.Close() })
	l, err := link.AttachTracing(link.TracingOptions{Program: loaded.Signals})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return p, loaded.Stops
}

func take(t *testing.T, p *target.Process, stops *ebpf.Map, step string) {
	t.Helper()
	var err error
	switch step {
	case "hold": // as a hit does before it sends the signal
		err = stops.Put(uint32(0), bpf.TracerStop{State: uint32(bpf.TracerStopStateSTOP_SENT)})
	case "stop":
		err = stopFromKernel(p)
	case "let go":
		_, err = letGo(p, stops)
	default:
		err = p.Signal(unix.SignalNum(step))
	}
	if err != nil {
		t.Fatalf("%s: %v", step, err)
	}
}

// stopFromKernel stops a process for good by a SIGSTOP whose sender is the kernel, as for a BPF program: a debugger's, which it has the process take.
func stopFromKernel(p *target.Process) error {
	runtime.LockOSThread() // it alone may debug what it has attached to
	defer runtime.UnlockOSThread()
	if err := unix.PtraceAttach(p.PID); err != nil {
		return err
	}
	if _, err := unix.Wait4(p.PID, nil, unix.WUNTRACED, nil); err != nil {
		return err
	}
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(p.PID), 0, uintptr(unix.SIGSTOP), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// becomes waits until the process is stopped, or runs, and stays so.
func becomes(t *testing.T, p *target.Process, stopped bool) {
	t.Helper()
	const patience, enough = 10 * time.Second, 20 * time.Millisecond
	began := time.Now()
	for last := began; time.Since(last) < enough; time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
		if err != nil {
			t.Fatal(err)
		}
		if state := bytes.Fields(stat)[2][0]; (state == 'T') != stopped {
			last = time.Now()
		}
		if time.Since(began) > patience {
			t.Fatalf("stopped: %v", !stopped)
		}
	}
}
