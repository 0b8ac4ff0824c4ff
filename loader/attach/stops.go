package attach

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/bpf"
	"wpptrace/internal/remedy"
	"wpptrace/loader/guard"
	"wpptrace/loader/target"
)

// stops lets a process go on that the BPF program has stopped: where the ring buffer would
// overflow, or where it maps code.
type stops struct {
	process *target.Process
	watch   *guard.Watch
	since   time.Time // when it was found stopped; zero: it is not
}

// watchStops has the BPF program see who is stopped, and by whom.
func watchStops(p *target.Process, g *guard.Guard, objects *bpf.TracerObjects) (*stops, error) {
	if errors.Is(p.Signal(0), unix.EPERM) { // before it is stopped, and stays so
		return nil, remedy.Errorf(remedy.RootOrNoHold,
			"it could be stopped, but not let go on: no CAP_KILL")
	}
	if err := objects.Stops.Put(uint32(p.PID), bpf.TracerStop{}); err != nil {
		return nil, fmt.Errorf("watch over it: %w", err)
	}
	watch, err := g.Watch(objects.Stops, objects.OnSignalGenerate, objects.OnExit)
	if err != nil {
		return nil, err
	}
	return &stops{process: p, watch: watch}, nil
}

// hold reports whether the BPF program has stopped the process, and nobody else since.
func (s *stops) hold() (bool, error) { return s.watch.Holds(s.process.PID) }

// resume lets the process go on if it is stopped.
func (s *stops) resume() error { return s.watch.Resume(s.process.PID) }

// resumeWhenAllStand lets the process go on once all of its threads have stopped, unless it has
// mapped code that is to be dealt with: before, a thread may be about to.
func (s *stops) resumeWhenAllStand(hasMapped func() bool) error {
	held, err := s.hold()
	if err != nil || !held {
		s.since = time.Time{}
		return err
	}
	// With a thread that waits in the kernel, for a process that may wait for this one.
	const patience = 200 * time.Millisecond
	if s.since.IsZero() {
		s.since = time.Now()
	}
	if !s.process.Stopped() && time.Since(s.since) < patience || hasMapped() {
		return nil
	}
	s.since = time.Time{}
	return s.resume()
}

// close lets the process go on. Nothing may stop it any more.
func (s *stops) close() error { return s.watch.Close() }
