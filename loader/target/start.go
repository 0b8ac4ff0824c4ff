package target

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"wpptrace/loader/privilege"
)

// A Child is a process that we started. It stands before its first instruction until Release.
type Child struct {
	Process *Process // from its start on; ask the Child for its Times
	release chan bool
	done    chan struct{}
	state   *os.ProcessState
	used    Times
	err     error
}

// Start starts a program with our standard files and stops it at its exec. If we die before
// Release, it dies. The program is looked up and started as the user, as a shell would.
func Start(argv []string) (*Child, error) {
	c := &Child{release: make(chan bool, 1), done: make(chan struct{})}
	started := make(chan error)
	go c.run(argv, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], explain(err))
	}
	return c, nil
}

// explain says what to do about a program that cannot be started.
func explain(err error) error {
	cause := errors.Unwrap(err)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return errors.New("no such program in PATH: check its name, or give its path")
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: check its path, and that of its interpreter if it is a script",
			cause)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: it must be a file that may be executed", cause)
	case errors.Is(err, unix.ENOEXEC):
		return fmt.Errorf("%w: it is no program for this machine, nor a script that begins with "+
			"'#!'", cause)
	}
	return err
}

// run is the life of a child. The thread that starts it is the one that may let it go.
func (c *Child) run(argv []string, started chan<- error) {
	runtime.LockOSThread()
	defer close(c.done)
	var cmd *exec.Cmd
	err := privilege.AsUser(func() error {
		cmd = exec.Command(argv[0], argv[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
		return cmd.Start()
	})
	if err != nil {
		started <- err
		return
	}
	if err := c.hold(cmd.Process.Pid); err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		started <- err
		return
	}
	started <- nil
	released := <-c.release
	if released {
		if err := unix.PtraceDetach(c.Process.PID); err != nil {
			c.err, released = fmt.Errorf("let process %d (%s) run: %w", c.Process.PID,
				c.Process.Name, err), false
		}
	}
	if !released { // it would stand there for ever
		c.err = errors.Join(c.err, cmd.Process.Kill())
	}
	if c.waitDead() == nil {
		c.used, _ = c.Process.Times()
	}
	err = cmd.Wait()
	c.state = cmd.ProcessState
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.err = errors.Join(c.err, err)
	}
}

func (c *Child) hold(pid int) error {
	var ws unix.WaitStatus
	if _, err := unix.Wait4(pid, &ws, 0, nil); err != nil {
		return fmt.Errorf("wait for its exec: %w", err)
	}
	if !ws.Stopped() {
		return errors.New("it ended before its first instruction")
	}
	if err := unix.PtraceSetOptions(pid, unix.PTRACE_O_EXITKILL); err != nil {
		return fmt.Errorf("hold it: %w", err)
	}
	p, err := Open(pid)
	c.Process = p
	return err
}

// waitDead waits for the end of the child, but leaves it to be waited for again: until then its
// clock can be read.
func (c *Child) waitDead() error {
	for {
		err := unix.Waitid(unix.P_PID, c.Process.PID, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Times is as Process.Times, but is known of a child that has ended too.
func (c *Child) Times() (Times, error) {
	if c.Process.Wait(0) {
		<-c.done
		return c.used, nil
	}
	return c.Process.Times()
}

// Release lets the child run.
func (c *Child) Release() { c.release <- true }

// Kill ends a child that was not released.
func (c *Child) Kill() {
	c.release <- false
	<-c.done
}

// Done is closed when the child has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// ExitStatus is what a shell would report: the exit status, or 128 and the signal that killed it.
// Call it after Done.
func (c *Child) ExitStatus() (int, error) {
	if c.state == nil {
		return 1, c.err
	}
	ws := c.state.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return 128 + int(ws.Signal()), c.err
	}
	return ws.ExitStatus(), c.err
}
