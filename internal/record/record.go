package record

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"wpptrace/compress/wpp"
	"wpptrace/internal/traced"
	"wpptrace/loader/attach"
	"wpptrace/loader/target"
)

// ErrInterrupted says that there is no recording.
var ErrInterrupted = errors.New("interrupted before the recording began: nothing was recorded")

// A Result is a recording that is over.
type Result struct {
	Snapshot *wpp.Snapshot
	Path     string // of its file
	Written  bool   // there is such a file; else it was not to be written, or an error says why not
	FileSize uint64 // bytes
	Program  *traced.Program
	Losses   Losses

	CPUTime time.Duration // that the process has used while it was recorded
	HitCost time.Duration // of that, what hits took by calibration

	Windows   uint64   // that have been closed; 0: all was traced
	Asleep    uint64   // windows that began where the process woke up, or may have
	Overhead  float64  // with windows: what tracing took, as a share of the process's own CPU time
	Unmatched []string // globs of the selection that have named no library
}

// Losses are the events that were lost.
type Losses struct {
	Events  uint64 // that never came
	Places  uint64 // in the streams of threads, where some are missing
	Metrics attach.Metrics
	Err     error // it is not known what was lost
}

// Run records a process or a command until it ends, the context is done, or there is another reason
// to end, and writes the snapshot. handle is called for what happens meanwhile, on this goroutine;
// it may be nil. Where the snapshot cannot be written, the result holds it all the same, beside the
// error. A command that outlives the recording goes on.
//
// It takes the privileges to trace (CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE), and the initial pid
// namespace. The probes go whatever becomes of this process.
func Run(ctx context.Context, o Options, handle func(Event)) (*Result, error) {
	if handle == nil {
		handle = func(Event) {}
	}
	o, err := o.Complete()
	if err != nil {
		return nil, KillUnstarted(o.Child, err)
	}
	r, err := start(ctx, o, handle)
	if err != nil {
		return nil, KillUnstarted(o.Child, err)
	}
	defer r.Close()
	if o.Child != nil {
		o.Child.Release()
	}
	if err := r.confine(); err != nil {
		return nil, err
	}
	handle(Began{o.Output})
	return r.Record(ctx)
}

// An UnstartedError says that there is no recording, and why.
type UnstartedError struct{ Err error }

func (e *UnstartedError) Error() string { return e.Err.Error() }

func (e *UnstartedError) Unwrap() error { return e.Err }

// KillUnstarted kills a command whose recording cannot begin, unless it is nil, and returns the
// error that says so.
func KillUnstarted(c *target.Child, err error) *UnstartedError {
	if c == nil {
		return &UnstartedError{err}
	}
	c.Kill()
	if errors.Is(err, ErrInterrupted) {
		err = fmt.Errorf("%w, and the command has not run", err)
	}
	return &UnstartedError{err}
}

// start has a recording begin.
func start(ctx context.Context, o Options, handle func(Event)) (*Recorder, error) {
	if err := checkThreads(o.Process, o.Threads); err != nil {
		return nil, err
	}
	r, err := Prepare(o, handle)
	if err != nil {
		return nil, besideAnother(o.Process, err)
	}
	if err = r.beginUnless(ctx); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// besideAnother says who has put breakpoints into a process, where that is why it cannot be
// recorded; nil: it is a command's, and there is nobody.
func besideAnother(p *target.Process, err error) error {
	if p == nil || !errors.Is(err, attach.ErrBreakpoint) {
		return err
	}
	by := strings.Trim(fmt.Sprint(p.Tracers()), "[]")
	if by == "" {
		return err
	}
	return fmt.Errorf("%w, which is process %s", err, strings.ReplaceAll(by, " ", " and "))
}

// beginUnless begins unless the context is done already.
func (r *Recorder) beginUnless(ctx context.Context) error {
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	return r.Begin(r.options.Child != nil)
}

// result sums up a recording that is over.
func (r *Recorder) result(s *wpp.Snapshot, written bool) *Result {
	result := &Result{
		Snapshot: s, Path: r.options.Output, Written: written, Program: r.program,
		Losses:    r.losses(),
		Unmatched: r.libraries.unmatched(),
	}
	result.CPUTime, result.HitCost = r.usage.traced()
	if r.windows.haveBegun() {
		schedule := r.windows.schedule
		result.Windows, result.Asleep, result.Overhead = schedule.Closed(), schedule.Asleep(),
			schedule.Overhead()
	}
	return result
}

func (r *Recorder) losses() Losses {
	m, err := r.session.Counters().Metrics()
	if err != nil {
		return Losses{Err: err}
	}
	return Losses{Events: r.threads.lost(m), Places: r.threads.gaps(), Metrics: m}
}

// checkThreads fails when the process has not all of these threads.
func checkThreads(p *target.Process, tids []int) error {
	if len(tids) == 0 {
		return nil
	}
	have, err := p.Threads()
	if err != nil {
		return err
	}
	for _, id := range tids {
		if !slices.Contains(have, id) {
			return fmt.Errorf("record thread %d: process %d (%s) has no such thread: ls "+
				"/proc/%d/task lists them", id, p.PID, p.Name, p.PID)
		}
	}
	return nil
}
