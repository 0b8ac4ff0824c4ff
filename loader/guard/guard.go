package guard

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"

	"wpptrace/loader/privilege"
	"wpptrace/loader/target"
	"wpptrace/loader/uprobe"
)

// arguments are those with which this program is started again, to be a guard.
var arguments = []string{"wpptrace", "guard"}

// isServed says that this program calls Main, and so can be a guard.
var isServed atomic.Bool

// Main is to be called first in main, or in TestMain, of a program that calls Start: Start starts
// that program again. There Main is the guard, and does not return; elsewhere it returns at once.
func Main() {
	isServed.Store(true)
	if !slices.Equal(os.Args, arguments) {
		return
	}
	// It hardly computes, and is often in system calls that take long. With a second processor the
	// runtime would look every 20 us meanwhile whether to take the one away that is in such a call:
	// half of what the guard took.
	runtime.GOMAXPROCS(1)
	err := privilege.TakeAll()
	if err == nil {
		// programs are loaded once more when it is confined, and cannot see itself any more
		privilege.Seeing(func() { _, _ = features.LinuxVersionCode() })
		err = serve()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "wpptrace: %v\n", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A Guard is our side of the helper process that probes a process, and those that this one has
// started. It may be used by several goroutines.
type Guard struct {
	process *target.Process
	cmd     *exec.Cmd
	asking  sync.Mutex    // of conn
	conn    *net.UnixConn // closed with us, however we end
	gone    chan struct{} // closed with it
	status  error         // then
}

// ErrNotServed says that this program cannot be a guard: started again as one, it would do what it
// does now, and start another.
var ErrNotServed = errors.New("this program does not call guard.Main: call it first in main")

// Start starts the guard of a process. The caller closes it. It fails with ErrNotServed in a
// program that does not call Main. Cost: some 10 ms, and a process, which sleeps.
func Start(p *target.Process) (*Guard, error) {
	g, err := &Guard{process: p}, ErrNotServed
	if isServed.Load() {
		err = g.start()
	}
	if err != nil {
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
		Path:       "/proc/self/exe",
		Args:       arguments,
		ExtraFiles: []*os.File{theirs},
		// the terminal's signals are not meant for it; of the same session, it may be let go on by
		// whatever user
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	// that end is its alone: where it ends, so does the connection
	restore := RaisePriority() // which the guard inherits, and keeps: it sleeps as a rule
	err = errors.Join(g.cmd.Start(), theirs.Close())
	restore()
	if err != nil {
		return errors.Join(err, g.conn.Close())
	}
	g.gone = make(chan struct{})
	go func() {
		g.status = g.cmd.Wait()
		close(g.gone)
	}()
	defer g.keepAwake()()
	if _, err := receive(g.conn, &reply{}); err != nil { // it stands
		return errors.Join(fmt.Errorf("it ended at once: %w", err), g.end())
	}
	return nil
}

// end ends the guard, if it has not ended by itself.
func (g *Guard) end() error {
	err := g.conn.Close()
	g.wake()
	defer g.keepAwake()()
	<-g.gone
	return errors.Join(err, g.status)
}

// PID is the number of the guard's own process.
func (g *Guard) PID() int { return g.cmd.Process.Pid }

// Gone is closed when the guard has come to its end: it has been killed, and the kernel has taken
// its probes out, but for such as it may have left in that were about to go in.
func (g *Guard) Gone() <-chan struct{} { return g.gone }

// IsGone reports whether Gone is closed.
func (g *Guard) IsGone() bool {
	select {
	case <-g.gone:
		return true
	default:
		return false
	}
}

// connection takes over the file, which is to be a Unix socket.
func connection(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	if u, ok := c.(*net.UnixConn); ok {
		return u, nil
	}
	return nil, errors.Join(fmt.Errorf("it is a %s socket, not a Unix socket: wpptrace starts its "+
		"guard itself", c.LocalAddr().Network()), c.Close())
}

// ErrGone says that the guard has come to its end.
var ErrGone = errors.New("its guard has been killed")

func (g *Guard) ask(q *request, files ...*os.File) (reply, error) {
	g.asking.Lock()
	defer g.asking.Unlock()
	defer g.keepAwake()()
	var r reply
	err := send(g.conn, q, files...)
	if err == nil {
		_, err = receive(g.conn, &r)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		return r, fmt.Errorf("process %d: %w", g.process.PID, ErrGone)
	}
	if err != nil {
		return r, fmt.Errorf("ask the guard of process %d: %w", g.process.PID, err)
	}
	if r.Refusal != nil {
		return r, r.Refusal
	}
	return r, nil
}

// usualAnswer is how soon the guard answers, of some ten thousand probes too.
const usualAnswer = time.Second

// keepAwake lets the guard go on while it takes longer than usual: somebody may have stopped it,
// and nothing is taken out then.
func (g *Guard) keepAwake() (enough func()) {
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-time.After(usualAnswer):
				g.wake()
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

func (g *Guard) wake() { _ = g.cmd.Process.Signal(unix.SIGCONT) }

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
	took  time.Duration
}

// Took is how long the kernel took to put them in.
func (p *Probes) Took() time.Duration { return p.took }

// Prime has the kernel change probes at once, as uprobe.Primer does, and for a time from then on.
func (g *Guard) Prime(mechanism uprobe.Mechanism, stay time.Duration) error {
	_, err := g.ask(&request{Prime: &priming{mechanism, stay}})
	return err
}

// Probe puts a program at places of a file, where it is mapped in the memory of a process, as
// uprobe.Mechanism.Put does. errors.Is recognises errors that the kernel gave. The caller closes
// the probes, before the guard. They go in on a CPU, or on AnyCPU. Cost: about 2 us a place in a
// link, 0.3 ms one that is an event.
func (g *Guard) Probe(mechanism uprobe.Mechanism, file *os.File, program *ebpf.Program, offsets,
	cookies []uint64, pid, cpu int) (*Probes, error) {
	hit, err := duplicate(program.FD())
	if err != nil {
		return nil, err
	}
	defer hit.Close()
	r, err := g.ask(&request{Probe: &placement{mechanism, offsets, cookies, pid, cpu}}, file, hit)
	if err != nil {
		return nil, err
	}
	return &Probes{g, r.Placement, r.Took}, nil
}

// Close takes the probes out. Cost: that of uprobe.Mechanism.Removal.
func (p *Probes) Close() error {
	return errors.Join(BeginRemoval(AnyCPU, p), p.guard.AwaitRemovals())
}

// BeginRemoval begins to take out probes of one guard, on a CPU or on AnyCPU. They are out after
// some us each. The kernel goes on for long after that, until nobody can be in a handler of theirs:
// AwaitRemovals waits for that.
func BeginRemoval(cpu int, list ...*Probes) error { return ask(&request{CPU: cpu}, list) }

// RemoveInTurn takes out probes of one guard that can wait, for they are hardly hit, on the CPU
// that a process runs on: those of a few calls of Probe at once, and others when these are gone. So
// a thousand calls do not make a thousand threads wait for the kernel. AwaitRemovals waits for
// them, too.
func RemoveInTurn(pid int, list ...*Probes) error { return ask(&request{InTurn: pid}, list) }

// ask has probes of one guard removed as a request says.
func ask(q *request, list []*Probes) error {
	if len(list) == 0 {
		return nil
	}
	for _, p := range list {
		q.Remove = append(q.Remove, p.id)
	}
	_, err := list[0].guard.ask(q)
	return err
}

// AwaitRemovals returns when all probes are gone that have begun to go: no program of theirs runs
// any more. Its error is of any of them.
func (g *Guard) AwaitRemovals() error {
	_, err := g.ask(&request{Settle: true})
	return err
}

// Confine leaves the guard with those capabilities alone: with none it can still undo what it has
// done, and, of a process of its own user, let it go on.
func (g *Guard) Confine(keep ...cap.Value) error {
	_, err := g.ask(&request{Confine: &confinement{keep}})
	return err
}

// Close ends the guard. An error says also that it had been killed.
func (g *Guard) Close() error { return g.end() }
