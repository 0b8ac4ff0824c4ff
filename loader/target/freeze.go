package target

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Freeze keeps those threads of the process that are running from running on, until thaw is called; should we die before, they go on. Nobody is told but who
// looks at their TracerPid. It does what can be done: where a debugger has the process, or we have no CAP_SYS_PTRACE, it does nothing. A thread that sleeps is left
// alone, and may wake up: to be frozen in a system call would make some fail with EINTR that never do. Cost: as long as the threads take to leave the kernel, but
// some 10 ms at most.
func (p *Process) Freeze() (thaw func()) {
	frozen, over, thawed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		runtime.LockOSThread() // who traces is a thread
		defer runtime.UnlockOSThread()
		tracees := p.seizeRunning()
		for began := time.Now(); time.Since(began) < freezing && !all(tracees, (*tracee).stop); time.Sleep(pause) {
		}
		close(frozen)
		<-over
		all(tracees, (*tracee).letGo)
		close(thawed)
		for !all(tracees, (*tracee).letGo) { // what is deep in the kernel stops when it comes out, and not before
			time.Sleep(pause)
		}
	}()
	<-frozen
	return func() {
		close(over)
		<-thawed
	}
}

const (
	freezing = 10 * time.Millisecond
	pause    = 50 * time.Microsecond
)

// all does something with each thread, and reports whether it is done with all.
func all(tracees []*tracee, do func(*tracee) bool) bool {
	done := true
	for _, t := range tracees {
		done = do(t) && done
	}
	return done
}

// A tracee is a thread that the calling thread traces, until it is gone.
type tracee struct {
	tid     int
	stopped bool
	signal  int  // that it has stopped for, and has to be given
	gone    bool // it has ended, or is let go
}

func (p *Process) seizeRunning() (tracees []*tracee) {
	ids, err := p.Threads()
	if err != nil {
		return nil
	}
	for _, tid := range ids {
		if p.runs(tid) && unix.PtraceSeize(tid) == nil {
			_ = unix.PtraceInterrupt(tid) // or it has ended
			tracees = append(tracees, &tracee{tid: tid})
		}
	}
	return tracees
}

// runs reports whether a thread is on a CPU, or waits for one.
func (p *Process) runs(tid int) bool {
	b, err := os.ReadFile(p.proc(fmt.Sprintf("task/%d/stat", tid)))
	if err != nil {
		return false
	}
	s, err := parseStat(b)
	return err == nil && s.state == 'R'
}

// stop reports whether the thread has stopped by now, or is gone.
func (t *tracee) stop() bool {
	if t.stopped || t.gone {
		return true
	}
	var status unix.WaitStatus
	tid, err := unix.Wait4(t.tid, &status, unix.WNOHANG|unix.WALL|unix.WNOTHREAD, nil)
	switch {
	case tid == t.tid && status.Stopped():
		t.stopped = true
		if status>>16 == 0 { // no event of ptrace: a signal came first
			t.signal = int(status.StopSignal())
		}
	case tid == t.tid, err != nil && err != unix.EINTR:
		t.gone = true
	}
	return t.stopped || t.gone
}

// letGo lets the thread run if it has stopped, and reports whether it is gone. Of one that ends right now the kernel's refusal means nothing.
func (t *tracee) letGo() bool {
	if t.stop() && !t.gone {
		_, _, _ = unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(t.tid), 0, uintptr(t.signal), 0, 0)
		t.gone = true
	}
	return t.gone
}
