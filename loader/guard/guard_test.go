package guard

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"wpptrace/bpf"
	"wpptrace/loader/target"
)

// What is known of a stop follows the signals in the order in which they take effect: a SIGCONT
// that came before our own SIGSTOP, which was on its way, once left the process stopped for ever.
func TestSignalsBesideAStop(t *testing.T) {
	for _, c := range []struct {
		name    string
		steps   []string
		want    bpf.TracerStop
		stopped bool
	}{
		{"theirs", []string{"SIGSTOP", "let go"}, bpf.TracerStop{Other: uint32(unix.SIGSTOP)},
			true},
		{"theirs is over", []string{"SIGSTOP", "SIGCONT"}, bpf.TracerStop{}, false},
		{"ours", []string{"stop"}, bpf.TracerStop{Ours: 1}, true},
		{"let go", []string{"stop", "let go"}, bpf.TracerStop{}, false},
		{"let go before it stops", []string{"let go", "stop", "let go"}, bpf.TracerStop{}, false},
		{"SIGCONT before it stops", []string{"SIGCONT", "stop"}, bpf.TracerStop{Ours: 1}, true},
		{"SIGCONT", []string{"stop", "SIGCONT"}, bpf.TracerStop{}, false},
		{"theirs too", []string{"stop", "SIGSTOP", "let go"},
			bpf.TracerStop{Other: uint32(unix.SIGSTOP)}, true},
		{"theirs and SIGCONT before it stops", []string{"SIGSTOP", "SIGCONT", "stop"},
			bpf.TracerStop{Ours: 1}, true},
		{"theirs as it is let go", []string{"stop", "SIGSTOP", "go on"},
			bpf.TracerStop{Other: uint32(unix.SIGSTOP)}, true},
		{"theirs was before", []string{"SIGSTOP", "SIGCONT", "stop", "go on"}, bpf.TracerStop{},
			false},
		{"the terminal's", []string{"stop", "SIGTSTP"},
			bpf.TracerStop{Ours: 1, Other: uint32(unix.SIGTSTP)}, true},
		{"the terminal's is kept", []string{"stop", "SIGTSTP", "let go"}, bpf.TracerStop{}, true},
		{"the terminal's is taken back", []string{"stop", "SIGTSTP", "SIGCONT"}, bpf.TracerStop{},
			false},
		{"a debugger's", []string{"debug"}, bpf.TracerStop{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, stops := follow(t)
			for _, step := range c.steps {
				take(t, p, stops, step)
			}
			becomes(t, p, c.stopped)
			if s, err := stopOf(stops, p.PID); err != nil || s.Ours != c.want.Ours ||
				s.Other != c.want.Other {
				t.Errorf("it is known %+v, %v; want %+v but for the time", s, err, c.want)
			}
		})
	}
}

// follow starts a process whose signals the BPF program sees.
func follow(t *testing.T) (*target.Process, *ebpf.Map) {
	cmd := exec.Command("yes")
	// in a process group that nobody heeds, the terminal's signals do not stop it
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
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
		Signals *ebpf.Program `ebpf:"on_signal_generate"`
		Stops   *ebpf.Map     `ebpf:"stops"`
	}
	if err := spec.LoadAndAssign(&loaded, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { loaded.Signals.Close(); loaded.Stops.Close() })
	if err := loaded.Stops.Put(uint32(p.PID), bpf.TracerStop{}); err != nil {
		t.Fatal(err)
	}
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
	case "stop":
		stop(t, p)
	case "debug":
		err = debug(p)
	case "let go":
		_, err = resume(stops, p.PID)
	case "go on":
		err = sendCont(p, stops)
	default:
		err = p.Signal(unix.SignalNum(step))
	}
	if err != nil {
		t.Fatalf("%s: %v", step, err)
	}
}

// stop stops a process as a hit does.
func stop(t *testing.T, p *target.Process) {
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.RawTracepoint, License: "GPL",
		Instructions: asm.Instructions{
			asm.FnGetCurrentPidTgid.Call(),
			asm.RSh.Imm(asm.R0, 32),
			asm.JNE.Imm(asm.R0, int32(p.PID), "end"),
			asm.Mov.Imm(asm.R1, int32(unix.SIGSTOP)),
			asm.FnSendSignalThread.Call(),
			asm.Mov.Imm(asm.R0, 0).WithSymbol("end"),
			asm.Return(),
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: "sys_enter",
		Program: program})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	becomes(t, p, true)
}

// debug attaches to a process, which the kernel stops for it, and lets it go on.
func debug(p *target.Process) error {
	runtime.LockOSThread() // it alone may debug what it has attached to
	defer runtime.UnlockOSThread()
	if err := unix.PtraceAttach(p.PID); err != nil {
		return err
	}
	if _, err := unix.Wait4(p.PID, nil, 0, nil); err != nil {
		return err
	}
	return unix.PtraceDetach(p.PID)
}

// becomes waits until the process is stopped, or runs, and stays so.
func becomes(t *testing.T, p *target.Process, stopped bool) {
	t.Helper()
	const patience, enough = 10 * time.Second, 20
	began := time.Now()
	for seen := 0; seen < enough; time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
		if err != nil {
			t.Fatal(err)
		}
		if seen++; (bytes.Fields(stat)[2][0] == 'T') != stopped {
			seen = 0
		}
		if time.Since(began) > patience {
			t.Fatalf("stopped: %v", !stopped)
		}
	}
}
