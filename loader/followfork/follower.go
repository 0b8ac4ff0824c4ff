package followfork

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"

	"wpptrace/bpf"
	"wpptrace/internal/remedy"
	"wpptrace/loader/guard"
	"wpptrace/loader/target"
)

// Most is how many followed processes may live at the same time; those beyond are not followed.
const Most = int(bpf.FamilyFamilyTableFAMILY_MAX)

// A Follower follows a process, those that it has started since Follow, and those that these have.
// It is used by one goroutine at a time, but for Resume and Holds.
type Follower struct {
	objects bpf.FamilyObjects
	watch   *guard.Watch
	links   []link.Link // of what stops processes
	reader  *ringbuf.Reader
	record  ringbuf.Record
}

// Started is a process that is stopped before its first instruction, or that of another program,
// unless Obstacle says why it is not.
type Started struct {
	PID      int
	Name     string // that of its first thread, with \n and the like for what cannot be printed
	Exec     bool   // it has called exec; else another process has started it, as a copy of itself
	Obstacle error  // it runs on, and must not be stopped
}

// Obstacles.
var (
	ErrDebugger   = errors.New("a debugger has it")
	ErrJobControl = remedy.Errorf(remedy.RecordLater, "it is the job of a shell on a terminal, "+
		"which would take it for stopped by its user")
)

// Load prepares to follow processes; nothing is stopped before Follow. The caller closes the
// follower, before the guard. Cost: some ms.
func Load(g *guard.Guard) (*Follower, error) {
	f := &Follower{}
	if err := f.load(g); err != nil {
		f.Close()
		return nil, fmt.Errorf("prepare to follow processes: %w", err)
	}
	return f, nil
}

func (f *Follower) load(g *guard.Guard) error {
	spec, err := bpf.LoadFamily()
	if err != nil {
		return err
	}
	spec.Maps["stops"].MaxEntries = uint32(Most)
	if err := spec.LoadAndAssign(&f.objects, nil); err != nil {
		return err
	}
	if err := f.objects.Guard.Set(uint32(g.PID())); err != nil {
		return err
	}
	if f.reader, err = ringbuf.NewReader(f.objects.Events); err != nil {
		return err
	}
	if f.watch, err = g.Watch(f.objects.Stops, f.objects.OnSignalGenerate,
		f.objects.OnExit); err != nil {
		return err
	}
	for _, p := range []*ebpf.Program{f.objects.OnFork, f.objects.OnFirstReturn, f.objects.OnExec} {
		l, err := link.AttachTracing(link.TracingOptions{Program: p})
		if err != nil {
			return err
		}
		f.links = append(f.links, l)
	}
	return nil
}

// Follow begins with a process: it is followed, as is what it starts from here on.
func (f *Follower) Follow(p *target.Process) error {
	err := f.objects.Stops.Put(uint32(p.PID), bpf.TracerStop{})
	if err == nil {
		err = f.objects.Following.Set(uint32(1))
	}
	if err != nil {
		return fmt.Errorf("follow process %d (%s): %w", p.PID, p.Name, err)
	}
	return nil
}

// Next waits for a process that has started until the deadline, and returns os.ErrDeadlineExceeded
// then.
func (f *Follower) Next(deadline time.Time) (Started, error) {
	f.reader.SetDeadline(deadline)
	if err := f.reader.ReadInto(&f.record); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return Started{}, os.ErrDeadlineExceeded
		}
		return Started{}, fmt.Errorf("wait for new processes: %w", err)
	}
	return parse(f.record.RawSample)
}

// Holds reports whether a process is still stopped where Next has returned it.
func (f *Follower) Holds(pid int) (bool, error) { return f.watch.Holds(pid) }

// Resume continues a process that is stopped, unless somebody else has stopped it since.
func (f *Follower) Resume(pid int) error { return f.watch.Resume(pid) }

// Alive reports whether any of the processes has not come to its end.
func (f *Follower) Alive() bool {
	var pid uint32
	for it := f.objects.Stops.Iterate(); it.Next(&pid, new(bpf.TracerStop)); {
		p, err := target.Reach(int(pid))
		if err == nil {
			p.Close()
			return true
		}
	}
	return false
}

// Dropped is how many processes there was no room for: they run, and Next does not return them.
func (f *Follower) Dropped() (n uint32) {
	_ = f.objects.Missed.Get(&n) // which cannot fail
	return n
}

// Unfollow ends the stops, and continues all processes that are stopped or about to be. Cost: 0.1
// s, unless all have come to their ends.
func (f *Follower) Unfollow() error {
	err := f.objects.Following.Set(uint32(0))
	for _, l := range f.links {
		err = errors.Join(err, l.Close())
	}
	f.links = nil
	const enough, pause = 100 * time.Millisecond, 5 * time.Millisecond
	for began := time.Now(); err == nil && f.Alive() &&
		time.Since(began) < enough; time.Sleep(pause) {
		err = f.watch.ResumeAll()
	}
	return err
}

// Close ends the stops, if need be, and frees everything.
func (f *Follower) Close() (err error) {
	if f.watch != nil {
		err = errors.Join(f.Unfollow(), f.watch.Close())
	}
	if f.reader != nil {
		f.reader.Close()
	}
	f.objects.Close()
	return err
}
