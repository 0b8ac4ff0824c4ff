package guard

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"wpptrace/bpf"
	"wpptrace/loader/target"
)

// Command is the argument with which this program, started again, is to call Stand.
const Command = "guard"

// A Guard watches over a process that the BPF program may stop. It is used by one goroutine at a time.
type Guard struct {
	process *target.Process
	stops   *ebpf.Map
	cmd     *exec.Cmd
	life    *os.File // closed with us, however we end
}

// Start begins to watch over a process. stops is where the BPF program keeps what it has stopped. The caller closes the guard. Cost: a process, which sleeps.
func Start(p *target.Process, stops *ebpf.Map) (*Guard, error) {
	g := &Guard{process: p, stops: stops}
	if err := g.start(); err != nil {
		return nil, fmt.Errorf("start the guard of process %d: %w", p.PID, err)
	}
	return g, nil
}

func (g *Guard) start() error {
	held, err := g.process.Hand()
	if err != nil {
		return err
	}
	defer held.Close()
	fd, err := unix.FcntlInt(uintptr(g.stops.FD()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	stops := os.NewFile(uintptr(fd), "stops")
	defer stops.Close()
	ours, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ours.Close()
	g.life = theirs
	g.cmd = &exec.Cmd{
		Path:        "/proc/self/exe",
		Args:        []string{"wpptrace", Command},
		ExtraFiles:  []*os.File{ours, held, stops},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // signals of the terminal are not meant for it
	}
	ready, err := g.cmd.StdoutPipe()
	if err != nil {
		return errors.Join(err, theirs.Close())
	}
	if err := g.cmd.Start(); err != nil {
		return errors.Join(err, theirs.Close())
	}
	if _, err := io.ReadFull(ready, make([]byte, 1)); err != nil {
		return errors.Join(fmt.Errorf("it ended at once: %w", err), theirs.Close(), g.cmd.Wait())
	}
	return nil
}

// LetGo lets the process go on, if the BPF program has stopped it and nobody else since. Call it when there is room for what it will say.
func (g *Guard) LetGo() error {
	_, err := letGo(g.process, g.stops)
	return err
}

// Close lets the process go on, if need be, and ends the watch. Nothing may stop it any more.
func (g *Guard) Close() error {
	err := g.LetGo()
	return errors.Join(err, g.life.Close(), g.cmd.Wait())
}

// letGo reports whether the process had been stopped.
func letGo(p *target.Process, stops *ebpf.Map) (stopped bool, err error) {
	const key = uint32(0)
	var s bpf.TracerStop
	if err := stops.Lookup(key, &s); err != nil {
		return false, fmt.Errorf("read whether the process was stopped: %w", err)
	}
	if s.Stopped == 0 {
		return false, nil
	}
	if err := stops.Put(key, bpf.TracerStop{}); err != nil {
		return true, fmt.Errorf("note that the process goes on: %w", err)
	}
	other := unix.Signal(s.Other)
	if other == unix.SIGSTOP { // it is theirs now
		return true, nil
	}
	err = p.Signal(unix.SIGCONT)
	if other != 0 { // SIGCONT has taken that back, and it was meant
		err = errors.Join(err, p.Signal(other))
	}
	if errors.Is(err, unix.ESRCH) { // it has been killed
		err = nil
	}
	return true, err
}

// The descriptors that start hands on.
const (
	lifeFD = 3 + iota
	processFD
	stopsFD
)

// Stand is the life of the process that start starts: it sleeps until the one that started it is gone, and lets the process go on as long as
// its probes, which the kernel takes out by and by, may stop it again.
func Stand() error {
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE)
	stops, err := ebpf.NewMapFromFD(stopsFD)
	if err != nil {
		return fmt.Errorf("take hold of what was stopped: %w", err)
	}
	defer stops.Close()
	p := target.Take(processFD)
	defer p.Close()
	if _, err := os.Stdout.WriteString("\n"); err != nil { // it stands
		return fmt.Errorf("answer wpptrace: %w", err)
	}
	if _, err := io.Copy(io.Discard, os.NewFile(lifeFD, "life")); err != nil {
		return fmt.Errorf("wait for the end of wpptrace: %w", err)
	}
	const enough = 200 * time.Millisecond
	for last := time.Now(); time.Since(last) < enough; time.Sleep(time.Millisecond) {
		stopped, err := letGo(p, stops)
		if err != nil {
			return err
		}
		if stopped {
			last = time.Now()
		}
	}
	return nil
}
