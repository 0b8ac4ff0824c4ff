package target

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"wpptrace/internal/testenv"
)

const patience = time.Minute

func TestOpen(t *testing.T) {
	p, err := Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.PID != os.Getpid() || !strings.HasSuffix(p.Name, ".test") || !p.Alive() || p.Wait(0) {
		t.Errorf("%+v, alive %v", p, p.Alive())
	}
	if got := p.Command(); !slices.Equal(got, os.Args) {
		t.Errorf("command %q, want %q", got, os.Args)
	}
	threads, err := p.Threads()
	if err != nil || !slices.Contains(threads, p.PID) {
		t.Errorf("threads %v, %v", threads, err)
	}
	if p.ThreadName(p.PID) == "" || p.ThreadName(1) != "" {
		t.Errorf("names of threads: %q, %q", p.ThreadName(p.PID), p.ThreadName(1))
	}
	before, err := p.Times()
	if err != nil || before.CPU <= 0 || before.User < 0 || before.User > before.CPU+clockTick {
		t.Errorf("times %v, %v", before, err)
	}
	if mappings, err := p.ExecutableMappings(); err != nil || !slices.ContainsFunc(mappings,
		func(m Mapping) bool { return m.Exec }) {
		t.Errorf("mappings %v, %v", mappings, err)
	}
}

func TestOpenErrors(t *testing.T) {
	dead := exec.Command("true")
	if err := dead.Start(); err != nil {
		t.Fatal(err)
	}
	defer dead.Wait()
	for zombie := false; !zombie; { // it stays one until Wait
		b, err := os.ReadFile("/proc/" + strconv.Itoa(dead.Process.Pid) + "/stat")
		zombie = err == nil && strings.Contains(string(b), ") Z ")
	}
	thread := otherThread(t)
	for _, c := range []struct {
		name string
		pid  int
		want error
		text string
	}{
		{"no such process", 1<<22 + 1, ErrNoProcess, "ps or pgrep"},
		{"not positive", -1, ErrNoProcess, "positive"},
		{"kernel thread", 2, ErrKernelThread, ""},
		{"thread", thread, ErrNoProcess, fmt.Sprintf("it is a thread of process %d", os.Getpid())},
		{"zombie", dead.Process.Pid, ErrGone, ""},
	} {
		if p, err := Open(c.pid); !errors.Is(err, c.want) || !strings.Contains(err.Error(),
			strconv.Itoa(c.pid)) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, %v; want %v", c.name, p, err, c.want)
		}
	}
}

// A process that is killed has exited, though of its many threads some have not come to their end
// yet. It was said that its first had, and that others went on.
func TestOpenWhileItExits(t *testing.T) {
	const child = "OPEN_WHILE_IT_EXITS"
	if os.Getenv(child) != "" {
		haveThreads(500)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), child+"=yes")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for {
		p, err := Open(cmd.Process.Pid)
		switch {
		case err == nil:
			p.Close()
		case errors.Is(err, ErrGone):
			return
		default:
			t.Fatal(err)
		}
	}
}

// haveThreads makes this process one that has many threads, says so, and waits.
func haveThreads(n int) {
	var all sync.WaitGroup
	for range n {
		all.Add(1)
		go func() {
			runtime.LockOSThread()
			all.Done()
			time.Sleep(patience)
		}()
	}
	all.Wait()
	fmt.Println()
	time.Sleep(patience)
}

// otherThread returns the number of a thread of ours that is not the first.
func otherThread(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if tid, err := strconv.Atoi(e.Name()); err == nil && tid != os.Getpid() {
			return tid
		}
	}
	t.Fatal("a Go program has but one thread")
	return 0
}

func TestStart(t *testing.T) {
	c, err := Start([]string{"sh", "-c", "exit 5"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Process.Close()
	if !c.Process.Alive() || c.Process.Wait(0) {
		t.Error("the child is not alive before its release")
	}
	c.Release()
	if !c.Process.Wait(patience) {
		t.Fatal("the child does not end")
	}
	<-c.Done()
	if status, err := c.ExitStatus(); status != 5 || err != nil {
		t.Errorf("exit status %d, %v", status, err)
	}
	if c.Process.Alive() {
		t.Error("the child is alive after its end")
	}
	if used, err := c.Times(); used.CPU <= 0 || err != nil {
		t.Errorf("times of the ended child: %v, %v", used, err)
	}
}

func TestExitStatusOfSignal(t *testing.T) {
	c, err := Start([]string{"sh", "-c", "kill -TERM $$"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Process.Close()
	c.Release()
	<-c.Done()
	if status, err := c.ExitStatus(); status != 128+int(unix.SIGTERM) || err != nil {
		t.Errorf("exit status %d, %v", status, err)
	}
}

// A child that is not released does nothing.
func TestKill(t *testing.T) {
	file := t.TempDir() + "/ran"
	c, err := Start([]string{"touch", file})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Process.Close()
	c.Kill()
	if _, err := os.Stat(file); err == nil || c.Process.Alive() {
		t.Errorf("the child ran, or lives: %v", err)
	}
}

// A child that cannot be let go does not stand there for ever.
func TestReleaseFails(t *testing.T) {
	c, err := Start([]string{"true"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Process.Close()
	pid := c.Process.PID
	c.Process.PID = 1 << 22 // nobody's
	c.Release()
	select {
	case <-c.Done():
	case <-time.After(patience):
		t.Fatal("the child is still waited for")
	}
	if status, err := c.ExitStatus(); status != 128+int(unix.SIGKILL) ||
		!errors.Is(err, unix.ESRCH) {
		t.Errorf("exit status %d, %v", status, err)
	}
	if err := unix.Kill(pid, 0); !errors.Is(err, unix.ESRCH) {
		t.Errorf("the child is there still: %v", err)
	}
}

func TestStartErrors(t *testing.T) {
	for _, name := range []string{"/no/such/program", "no-such-program", "/dev/null", "/"} {
		if c, err := Start([]string{name}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("start %s: %v, %v", name, c, err)
		}
	}
}

// startCopy starts a copy of true, of that name, and keeps it before its first instruction.
func startCopy(t *testing.T, name string) (c *Child, program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), name)
	content, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, content, 0o755); err != nil {
		t.Fatal(err)
	}
	if c, err = Start([]string{program}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Kill(); c.Process.Close() })
	return c, program
}

// A process whose file is gone can still be opened.
func TestDeletedExecutable(t *testing.T) {
	c, program := startCopy(t, "program")
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	p, err := Open(c.Process.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	f, err := p.Executable()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mappings, err := p.ExecutableMappings()
	if st, e := f.Stat(); e != nil || st.Size() == 0 || p.Name != "program" || err != nil ||
		len(mappings) == 0 {
		t.Errorf("%v %v %q %v %v", st, e, p.Name, mappings, err)
	}
}

// A process that may not be looked at is distinguished from one that this wpptrace lacks the
// privilege for.
func TestRemedy(t *testing.T) {
	if !mayTrace() {
		t.Error("root has no CAP_SYS_PTRACE")
	}
	for privileged, want := range map[bool]string{false: "run wpptrace as root, ",
		true: "a sandbox around it or a security module"} {
		if got := remedy(privileged); !strings.Contains(got, want) {
			t.Errorf("privileged %v: %q, want %q", privileged, got, want)
		}
	}
}

func TestReadMemory(t *testing.T) {
	self, err := Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	there := []byte("what is there")
	got := make([]byte, len(there))
	if err := self.ReadMemory(got, uint64(uintptr(unsafe.Pointer(&there[0])))); err != nil ||
		string(got) != string(there) {
		t.Errorf("read %q, %v", got, err)
	}
	if err := self.ReadMemory(nil, 0); err != nil {
		t.Errorf("nothing: %v", err)
	}
	if err := self.ReadMemory(got, 8); !errors.Is(err, unix.EFAULT) {
		t.Errorf("where nothing is: %v", err)
	}
}

// A run is over when the process calls exec, even of the same program, or exits.
func TestRun(t *testing.T) {
	for _, next := range []string{"exec sh -c 'read -r x'", "exit"} {
		cmd := exec.Command("sh", "-c", "read -r x; "+next)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Wait()
		defer in.Close()
		p, err := Open(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		r, err := p.Run()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if r.Over() {
			t.Errorf("%s: it is over before", next)
		}
		fmt.Fprintln(in)
		testenv.Eventually(t, r.Over, "%s: its run is over", next)
	}
}

func TestStopped(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	p, err := Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, c := range []struct {
		sig  unix.Signal
		want bool
	}{{0, false}, {unix.SIGSTOP, true}, {unix.SIGCONT, false}} {
		if err := p.Signal(c.sig); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, func() bool { return p.Stopped() == c.want },
			"after signal %d, stopped: %v", c.sig, c.want)
	}
}

// A file may be called anything: its name neither ends a line nor steers a terminal.
func TestHostileName(t *testing.T) {
	c, _ := startCopy(t, "a\nb\x1b[31m\xff")
	if want := `a\nb\x1b[31m\xff`; c.Process.Name != want {
		t.Errorf("it is called %q, want %q", c.Process.Name, want)
	}
}
