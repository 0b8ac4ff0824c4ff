package guard

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"

	"wpptrace/bpf"
	"wpptrace/loader/target"
	"wpptrace/loader/uprobe"
)

// Command is the argument with which this program, started again, is to call Stand.
const Command = "guard"

// A Guard is asked for what it does to a process. It is used by one goroutine at a time.
type Guard struct {
	process *target.Process
	cmd     *exec.Cmd
	conn    *net.UnixConn // closed with us, however we end
	gone    chan struct{} // closed with it
	status  error         // then

	stops   *ebpf.Map // nil: nobody is stopped
	signals link.Link // of the program that keeps stops: the guard has it too, for without it nobody knows what to undo
}

// Start starts the guard of a process. The caller closes it. Cost: some 10 ms, and a process, which sleeps.
func Start(p *target.Process) (*Guard, error) {
	g := &Guard{process: p}
	if err := g.start(); err != nil {
		return nil, fmt.Errorf("start the guard of process %d: %w", p.PID, err)
	}
	return g, nil
}

func (g *Guard) start() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	theirs := os.NewFile(uintptr(pair[1]), "guard")
	if g.conn, err = connection(os.NewFile(uintptr(pair[0]), "guard")); err != nil {
		return errors.Join(err, theirs.Close())
	}
	g.cmd = &exec.Cmd{
		Path:        "/proc/self/exe",
		Args:        []string{"wpptrace", Command},
		ExtraFiles:  []*os.File{theirs},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // signals of the terminal are not meant for it
	}
	err = errors.Join(g.cmd.Start(), theirs.Close()) // that end is its alone: where it ends, so does the connection
	if err != nil {
		return errors.Join(err, g.conn.Close())
	}
	g.gone = make(chan struct{})
	go func() {
		g.status = g.cmd.Wait()
		close(g.gone)
	}()
	if _, err := receive(g.conn, &reply{}); err != nil { // it stands
		return errors.Join(fmt.Errorf("it ended at once: %w", err), g.end())
	}
	return nil
}

// end ends the guard, if it has not ended by itself.
func (g *Guard) end() error {
	err := g.conn.Close()
	<-g.gone
	return errors.Join(err, g.status)
}

// Gone is closed when the guard has come to its end: it has been killed, and its probes are out.
func (g *Guard) Gone() <-chan struct{} { return g.gone }

// connection takes over the file.
func connection(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	return c.(*net.UnixConn), nil
}

var errGone = errors.New("it has been killed, and its probes are out")

func (g *Guard) ask(q *request, files ...*os.File) (reply, error) {
	var r reply
	err := send(g.conn, q, files...)
	if err == nil {
		_, err = receive(g.conn, &r)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		err = errGone
	}
	if err != nil {
		return r, fmt.Errorf("ask the guard of process %d: %w", g.process.PID, err)
	}
	if r.Refusal != nil {
		return r, r.Refusal
	}
	return r, nil
}

// Watch has the guard let the process go on, should we be gone, where the BPF program has stopped it. stops is where that is kept, signals the program that sees
// the signals of the process.
func (g *Guard) Watch(signals *ebpf.Program, stops *ebpf.Map) error {
	l, err := link.AttachTracing(link.TracingOptions{Program: signals})
	if err != nil {
		return fmt.Errorf("follow the signals of process %d: %w", g.process.PID, err)
	}
	if err := g.watch(l, stops); err != nil {
		return fmt.Errorf("watch over process %d: %w", g.process.PID, errors.Join(err, l.Close()))
	}
	g.signals, g.stops = l, stops
	return nil
}

func (g *Guard) watch(signals link.Link, stops *ebpf.Map) error {
	process, err := g.process.Hand()
	if err != nil {
		return err
	}
	defer process.Close()
	seen, err := duplicate(signals.(interface{ FD() int }).FD())
	if err != nil {
		return err
	}
	defer seen.Close()
	kept, err := duplicate(stops.FD())
	if err != nil {
		return err
	}
	defer kept.Close()
	_, err = g.ask(&request{Watch: true}, process, kept, seen)
	return err
}

// duplicate is a file of its own on what a library holds.
func duplicate(fd int) (*os.File, error) {
	fd, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("duplicate a descriptor: %w", err)
	}
	return os.NewFile(uintptr(fd), "duplicate"), nil
}

// Probes are a program at places of a file.
type Probes struct {
	guard *Guard
	id    int
}

// Probe puts a program at places of a file, where it is mapped in the memory of a process, as uprobe.Way.Put does. Errors that the
// kernel gave are told by errors.Is. The caller closes the probes, before the guard. Cost: about 2 us a place in a link, 0.3 ms one that is an event.
func (g *Guard) Probe(way uprobe.Way, file *os.File, program *ebpf.Program, offsets, cookies []uint64, pid int) (*Probes, error) {
	hit, err := duplicate(program.FD())
	if err != nil {
		return nil, err
	}
	defer hit.Close()
	r, err := g.ask(&request{Probe: &placement{way, offsets, cookies, pid}}, file, hit)
	if err != nil {
		return nil, err
	}
	return &Probes{g, r.Placement}, nil
}

// Close takes the probes out. Cost: that of uprobe.Way.Removal.
func (p *Probes) Close() error {
	_, err := p.guard.ask(&request{Remove: p.id})
	return err
}

// Confine leaves the guard with those capabilities alone: with none it can still undo what it has done, and, of a process of its own user, let it go on.
func (g *Guard) Confine(keep ...cap.Value) error {
	_, err := g.ask(&request{Confine: &confinement{keep}})
	return err
}

// Holds reports whether the BPF program has stopped the process, and nobody else since.
func (g *Guard) Holds() (bool, error) {
	if g.stops == nil {
		return false, nil
	}
	s, err := stopOf(g.stops)
	return s.Ours != 0, err
}

// LetGo lets the process go on, if the BPF program has stopped it and nobody else since. Call it when there is room for what it will say.
func (g *Guard) LetGo() error {
	if g.stops == nil {
		return nil
	}
	_, err := letGo(g.process, g.stops)
	return err
}

// Close lets the process go on, if need be, and ends the guard. Nothing may stop the process any more. An error says also that the guard had been killed.
func (g *Guard) Close() error {
	err := errors.Join(g.LetGo(), g.end())
	if g.signals != nil {
		err = errors.Join(err, g.signals.Close())
	}
	return err
}

func stopOf(stops *ebpf.Map) (s bpf.TracerStop, err error) {
	if err := stops.Lookup(uint32(0), &s); err != nil {
		return s, fmt.Errorf("read whether the process was stopped: %w", err)
	}
	return s, nil
}

// letGo reports whether the process had been stopped.
func letGo(p *target.Process, stops *ebpf.Map) (stopped bool, err error) {
	s, err := stopOf(stops)
	if err != nil || s.Ours == 0 {
		return false, err
	}
	if err = goOn(p, stops); errors.Is(err, unix.ESRCH) { // it has been killed
		err = nil
	}
	return true, err
}

// goOn lets the process go on, but for the stop that somebody else may have made, just now perhaps.
func goOn(p *target.Process, stops *ebpf.Map) error {
	if err := p.Signal(unix.SIGCONT); err != nil { // the BPF program sees it, and notes what it takes back
		return err
	}
	s, err := stopOf(stops)
	if err == nil && s.Undone != 0 {
		err = p.Signal(unix.Signal(s.Undone))
	}
	return err
}
