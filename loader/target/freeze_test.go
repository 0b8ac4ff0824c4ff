package target

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const spinners = 3

// TestMain lets the test binary, started again, be a process with threads that are always at work, or one that freezes another and waits for its own end.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("WPPTRACE_SPIN") != "":
		for range spinners {
			go func() {
				runtime.LockOSThread()
				for {
				}
			}()
		}
		fmt.Println("spinning")
		select {}
	case os.Getenv("WPPTRACE_FREEZE") != "":
		pid, err := strconv.Atoi(os.Getenv("WPPTRACE_FREEZE"))
		if err != nil {
			panic(err)
		}
		p, err := Open(pid)
		if err != nil {
			panic(err)
		}
		p.Freeze()
		fmt.Println("frozen")
		select {}
	}
	os.Exit(m.Run())
}

// startAndHear starts a command and waits for its first line.
func startAndHear(t *testing.T, cmd *exec.Cmd) *bufio.Scanner {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("%v said nothing", cmd.Args)
	}
	return lines
}

func again(variable string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(spinners+2), variable)
	return cmd
}

func open(t *testing.T, cmd *exec.Cmd) *Process {
	t.Helper()
	p, err := Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func cpuTime(t *testing.T, p *Process) time.Duration {
	t.Helper()
	times, err := p.Times()
	if err != nil {
		t.Fatal(err)
	}
	return times.CPU
}

// awaitProgress waits until the process has used more CPU time.
func awaitProgress(t *testing.T, p *Process) {
	t.Helper()
	before := cpuTime(t, p)
	for began := time.Now(); cpuTime(t, p) < before+5*time.Millisecond; time.Sleep(time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatal("it does not go on")
		}
	}
}

// threads are those of a process by their state, with the time that they have been on a CPU.
func threads(t *testing.T, p *Process) map[byte]map[int]string {
	t.Helper()
	ids, err := p.Threads()
	if err != nil {
		t.Fatal(err)
	}
	list := map[byte]map[int]string{}
	for _, id := range ids {
		b, err := os.ReadFile(p.proc(fmt.Sprintf("task/%d/stat", id)))
		if err != nil {
			continue
		}
		s, err := parseStat(b)
		if err != nil {
			t.Fatal(err)
		}
		used, _ := os.ReadFile(p.proc(fmt.Sprintf("task/%d/schedstat", id)))
		if list[s.state] == nil {
			list[s.state] = map[int]string{}
		}
		list[s.state][id], _, _ = strings.Cut(string(used), " ")
	}
	return list
}

// awaitFrozen waits until so many threads at least are held by ptrace, and returns them: one of the runtime's own may be among them.
func awaitFrozen(t *testing.T, p *Process, n int) map[int]string {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		all := threads(t, p)
		if len(all['t']) >= n {
			return all['t']
		}
		if time.Since(began) > patience {
			t.Fatalf("threads by state: %v", all)
		}
	}
}

// Threads that run are kept from it, again and again; those that sleep are left alone, and the parent hears of nothing.
func TestFreeze(t *testing.T) {
	runtime.LockOSThread() // the parent is a thread, as far as waiting goes
	defer runtime.UnlockOSThread()
	cmd := again("WPPTRACE_SPIN=1")
	startAndHear(t, cmd)
	p := open(t, cmd)
	awaitProgress(t, p)
	for range 20 {
		thaw := p.Freeze()
		before := awaitFrozen(t, p, spinners)
		time.Sleep(10 * time.Millisecond)
		all := threads(t, p)
		if !maps.Equal(before, all['t']) {
			t.Errorf("threads and their time: before %v, after %v", before, all['t'])
		}
		if len(all['S']) == 0 {
			t.Errorf("no thread sleeps: %v", all)
		}
		var status unix.WaitStatus
		if pid, err := unix.Wait4(p.PID, &status, unix.WNOHANG|unix.WUNTRACED|unix.WCONTINUED|unix.WNOTHREAD, nil); pid != 0 || err != nil {
			t.Errorf("its parent hears of %v, %v", status, err)
		}
		thaw()
		awaitProgress(t, p)
	}
}

// What is sent to a frozen process arrives, once.
func TestSignalWhileFrozen(t *testing.T) {
	cmd := exec.Command("sh", "-c", "trap 'echo usr1' USR1; trap 'exit 7' USR2; echo; while :; do :; done")
	lines := startAndHear(t, cmd)
	p := open(t, cmd)
	for round := range 40 {
		sent := make(chan error, 1)
		send := func() { sent <- p.Signal(unix.SIGUSR1) }
		if round%2 == 0 { // it may be what stops it
			go send()
		}
		thaw := p.Freeze()
		if round%2 == 1 {
			send()
		}
		thaw()
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() || lines.Text() != "usr1" {
			t.Fatalf("it says %q", lines.Text())
		}
	}
	thaw := p.Freeze()
	if err := p.Signal(unix.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	thaw()
	if lines.Scan() {
		t.Errorf("it says %q", lines.Text())
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("it ends with %v", err)
	}
}

// A process that ends while it is frozen, or has ended, or has somebody else for a tracer is let alone.
func TestFreezeInVain(t *testing.T) {
	cmd := exec.Command("sh", "-c", "echo; while :; do :; done")
	startAndHear(t, cmd)
	p := open(t, cmd)
	first := p.Freeze()
	second := p.Freeze()
	second()
	awaitFrozen(t, p, 1)
	_ = p.Signal(unix.SIGKILL)
	first()
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
		t.Errorf("it ends with %v", err)
	}
	p.Freeze()()
}

// Should we be killed, what we have frozen goes on.
func TestKilledWhileItFreezes(t *testing.T) {
	cmd := again("WPPTRACE_SPIN=1")
	startAndHear(t, cmd)
	p := open(t, cmd)
	freezer := again("WPPTRACE_FREEZE=" + strconv.Itoa(p.PID))
	startAndHear(t, freezer)
	awaitFrozen(t, p, spinners)
	if err := freezer.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	awaitProgress(t, p)
	if all := threads(t, p); len(all['t']) > 0 {
		t.Errorf("threads by state: %v", all)
	}
}
