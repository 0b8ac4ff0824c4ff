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
	"github.com/cilium/ebpf/link"
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
	signals descriptor // the link of the program that keeps stops: the process has it too, for without it nobody knows what to undo
	cmd     *exec.Cmd
	life    *os.File // closed with us, however we end
}

type descriptor interface {
	FD() int
	Close() error
}

// Start begins to watch over a process. stops is where the BPF programs keep whether they have stopped it, signals the one of them that sees its signals. The
// caller closes the guard. Cost: a process, which sleeps.
func Start(p *target.Process, signals *ebpf.Program, stops *ebpf.Map) (*Guard, error) {
	l, err := link.AttachTracing(link.TracingOptions{Program: signals})
	if err != nil {
		return nil, fmt.Errorf("follow the signals of process %d: %w", p.PID, err)
	}
	g := &Guard{process: p, stops: stops, signals: l.(descriptor)}
	if err := g.start(); err != nil {
		return nil, fmt.Errorf("start the guard of process %d: %w", p.PID, errors.Join(err, l.Close()))
	}
	return g, nil
}

func (g *Guard) start() error {
	held, err := g.process.Hand()
	if err != nil {
		return err
	}
	defer held.Close()
	stops, err := duplicate(g.stops.FD(), "stops")
	if err != nil {
		return err
	}
	defer stops.Close()
	signals, err := duplicate(g.signals.FD(), "signals")
	if err != nil {
		return err
	}
	defer signals.Close()
	ours, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ours.Close()
	g.life = theirs
	g.cmd = &exec.Cmd{
		Path:        "/proc/self/exe",
		Args:        []string{"wpptrace", Command},
		ExtraFiles:  []*os.File{ours, held, stops, signals},
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

// duplicate is a descriptor of its own, for a child.
func duplicate(fd int, name string) (*os.File, error) {
	fd, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("duplicate the descriptor of %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// LetGo lets the process go on, if the BPF program has stopped it and nobody else since. Call it when there is room for what it will say.
func (g *Guard) LetGo() error {
	_, err := letGo(g.process, g.stops)
	return err
}

// Close lets the process go on, if need be, and ends the watch. Nothing may stop it any more.
func (g *Guard) Close() error {
	err := g.LetGo()
	return errors.Join(err, g.life.Close(), g.cmd.Wait(), g.signals.Close())
}

// letGo reports whether the process had been stopped.
func letGo(p *target.Process, stops *ebpf.Map) (stopped bool, err error) {
	const key = uint32(0)
	var s bpf.TracerStop
	if err := stops.Lookup(key, &s); err != nil {
		return false, fmt.Errorf("read whether the process was stopped: %w", err)
	}
	if bpf.TracerStopState(s.State) != bpf.TracerStopStateSTOP_OURS {
		return false, nil
	}
	err = p.Signal(unix.SIGCONT) // the BPF program sees it, and notes that the process goes on
	if s.Other != 0 {            // SIGCONT has taken that back, and it was meant
		err = errors.Join(err, p.Signal(unix.Signal(s.Other)))
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
	_ // of the link, which it only keeps
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
