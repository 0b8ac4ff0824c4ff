package guard

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"wpptrace/bpf"
	"wpptrace/loader/target"
)

// A Watch knows which processes BPF programs have stopped, and continues them. It may be used by
// several goroutines.
type Watch struct {
	stops *ebpf.Map
	// of the programs that keep stops: the guard has them too, for without them nobody knows what
	// to undo
	links []link.Link
}

// Watch has the guard continue, should we be gone, the processes that BPF programs have stopped.
// stops holds these by process number; programs maintain it: they see the signals of those
// processes, and remove each that ends. The caller closes the watch, before the guard, and frees
// stops then.
func (g *Guard) Watch(stops *ebpf.Map, programs ...*ebpf.Program) (*Watch, error) {
	w := &Watch{stops: stops}
	for _, p := range programs {
		l, err := link.AttachTracing(link.TracingOptions{Program: p})
		if err != nil {
			return nil, fmt.Errorf("follow the signals of process %d: %w", g.process.PID,
				errors.Join(err, w.Close()))
		}
		w.links = append(w.links, l)
	}
	if err := g.watch(w); err != nil {
		return nil, fmt.Errorf("watch over process %d: %w", g.process.PID,
			errors.Join(err, w.Close()))
	}
	return w, nil
}

func (g *Guard) watch(w *Watch) error {
	fds := []int{w.stops.FD()}
	for _, l := range w.links {
		fds = append(fds, l.(interface{ FD() int }).FD())
	}
	files := make([]*os.File, len(fds))
	for i, fd := range fds {
		f, err := duplicate(fd)
		if err != nil {
			return err
		}
		defer f.Close()
		files[i] = f
	}
	_, err := g.ask(&request{Watch: true}, files...)
	return err
}

// Holds reports whether a BPF program has stopped the process, and nobody else since.
func (w *Watch) Holds(pid int) (bool, error) {
	s, err := stopOf(w.stops, pid)
	return s.Ours != 0, err
}

// Resume continues a process, if a BPF program has stopped it and nobody else since. Call it when
// the ring buffer has room for its events.
func (w *Watch) Resume(pid int) error {
	_, err := resume(w.stops, pid)
	return err
}

// ResumeAll continues all processes that BPF programs have stopped.
func (w *Watch) ResumeAll() error {
	_, err := resumeAll(w.stops)
	return err
}

// Close continues all, too. Nothing may stop them any more.
func (w *Watch) Close() error {
	err := w.ResumeAll()
	for _, l := range w.links {
		err = errors.Join(err, l.Close())
	}
	return err
}

// stopOf is what is known of a process; nothing of one that has come to its end.
func stopOf(stops *ebpf.Map, pid int) (s bpf.TracerStop, err error) {
	err = stops.Lookup(uint32(pid), &s)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		err = nil
	}
	if err != nil {
		return s, fmt.Errorf("read whether process %d was stopped: %w", pid, err)
	}
	return s, nil
}

// resumeAll continues all processes in stops, and reports whether any had been stopped.
func resumeAll(stops *ebpf.Map) (any bool, err error) {
	var pids []uint32
	var pid uint32
	for it := stops.Iterate(); it.Next(&pid, new(bpf.TracerStop)); {
		pids = append(pids, pid)
	}
	for _, pid := range pids {
		stopped, failed := resume(stops, int(pid))
		any, err = any || stopped, errors.Join(err, failed)
	}
	return any, err
}

// resume continues a process, and reports whether it had been stopped.
func resume(stops *ebpf.Map, pid int) (stopped bool, err error) {
	s, err := stopOf(stops, pid)
	if err != nil || s.Ours == 0 {
		return false, err
	}
	p, err := target.Reach(pid)
	if err == nil {
		defer p.Close()
		if s, err = stopOf(stops, pid); err != nil || s.Ours == 0 {
			// it is over, and what we have reached is another by that number
			return false, err
		}
		err = sendCont(p, stops)
	}
	if errors.Is(err, unix.ESRCH) { // it has been killed
		err = nil
	}
	return true, err
}

// sendCont sends SIGCONT, and repeats the signal to stop that somebody else may have sent just
// before.
func sendCont(p *target.Process, stops *ebpf.Map) error {
	if err := p.Signal(unix.SIGCONT); err != nil {
		// the BPF program sees it, and notes what it takes back
		return err
	}
	s, err := stopOf(stops, p.PID)
	if err == nil && s.Undone != 0 {
		err = p.Signal(unix.Signal(s.Undone))
	}
	return err
}
