package record

import (
	"context"
	"errors"
	"time"

	"wpptrace/internal/record/overhead"
	"wpptrace/loader/guard"
	"wpptrace/loader/target"
)

// tick is how often a recording looks up from its ring buffer.
const tick = 20 * time.Millisecond

// A cause is why a context was canceled.
type cause Reason

func (c cause) Error() string { return "the recording is to end: " + string(c) }

// Cause returns what to cancel a recording's context with so that it ends for a reason other than
// Interrupted.
func Cause(r Reason) error { return cause(r) }

// interrupted is the end of a recording whose context is done.
func (r *Recorder) interrupted(ctx context.Context) Ended {
	var c cause
	switch {
	case !errors.As(context.Cause(ctx), &c):
		return Ended{Reason: Interrupted}
	case Reason(c) == GuardLost:
		return r.guardLost()
	}
	return Ended{Reason: Reason(c)}
}

// guardLost is the end of a recording whose guard has been killed.
func (r *Recorder) guardLost() Ended {
	return Ended{Reason: GuardLost, Err: r.session.GuardLostError()}
}

// watch records until there is a reason to end, which it returns.
func (r *Recorder) watch(ctx context.Context, b *background) (end Ended, err error) {
	abort := r.options.Abort
	pacing := pacing{lastSnapshot: r.began, nextSample: time.Now()}
	for {
		if err := r.threads.listen(time.Now().Add(r.windows.pause())); err != nil {
			return end, err
		}
		if err := r.images.takeMapped(abort); err != nil {
			return r.disturbed(err)
		}
		select {
		case <-ctx.Done():
			return r.interrupted(ctx), nil
		case <-r.options.Snapshot:
			b.request()
		default:
		}
		if err := r.raw.Failure(); err != nil {
			r.warn(err)
		}
		if pacing.isSnapshotDue(r.options.SnapshotEvery) {
			b.request()
		}
		switch done, err := b.poll(); {
		case err != nil:
			r.warn(err)
		case done:
			r.handle(SnapshotWritten{r.options.Output})
		}
		exited := r.options.Process.Wait(0)
		if end, over := r.isOver(); over {
			return end, nil
		}
		if exited {
			return r.exited(), nil
		}
		if err := r.windows.keep(abort); err != nil {
			return r.disturbed(err)
		}
		if err := r.forks.keep(); err != nil {
			return r.disturbed(err)
		}
		if err := r.threads.endStrays(); err != nil {
			return r.disturbed(err)
		}
		if r.windows.haveBegun() && !pacing.windowsBegun {
			pacing.windowsBegun = true
			r.handle(WindowsBegin{r.options.Window, r.windows.schedule.Wait(), r.left()})
		}
		if pacing.isSampleDue() {
			r.usage.sample()
		}
		r.sampling.keep()
		r.handle(Progress{r.status, r.snapshots.snapshot})
	}
}

// pacing is what a recording does from time to time.
type pacing struct {
	lastSnapshot time.Time
	nextSample   time.Time
	windowsBegun bool // which has been said
}

func (p *pacing) isSnapshotDue(every time.Duration) bool {
	if every <= 0 || time.Since(p.lastSnapshot) < every {
		return false
	}
	p.lastSnapshot = time.Now()
	return true
}

func (p *pacing) isSampleDue() bool {
	now := time.Now()
	if !now.After(p.nextSample) {
		return false
	}
	p.nextSample = now.Add(overhead.SamplePause)
	return true
}

// left is how long the recording goes on yet; 0: nobody knows.
func (r *Recorder) left() time.Duration {
	if r.options.Duration == 0 {
		return 0
	}
	return max(r.options.Duration-time.Since(r.began), 1)
}

// isOver reports whether the recording is to end before the process does.
func (r *Recorder) isOver() (end Ended, over bool) {
	switch {
	case r.session.Replaced():
		return Ended{Reason: Exec}, true
	case r.session.GuardDead():
		return r.guardLost(), true
	case r.options.Duration > 0 && time.Since(r.began) >= r.options.Duration:
		return Ended{Reason: DurationOver}, true
	}
	if e, over := r.usage.meter.Exceeds(r.options.MaxSlowDown); over && r.options.MaxSlowDown > 0 {
		return Ended{Reason: SlowDown, SlowDown: e}, true
	}
	return Ended{}, false
}

// exited is how the process has come to its end.
func (r *Recorder) exited() Ended {
	status, known := r.session.Exit()
	return Ended{Reason: Exited, Status: status, StatusKnown: known}
}

// disturbed is what to make of a window that could not be opened or closed: what has been recorded
// is kept, unless all is to be dropped.
func (r *Recorder) disturbed(err error) (end Ended, fatal error) {
	switch {
	case errors.Is(err, context.Canceled):
		return end, err
	case errors.Is(err, target.ErrGone):
		return r.exited(), nil
	case errors.Is(err, guard.ErrGone):
		return r.guardLost(), nil
	}
	return Ended{Reason: Failed, Err: err}, nil
}

// warn says what could not be written in the middle of the recording. A full disk, say, may be
// empty again when it ends.
func (r *Recorder) warn(err error) {
	if r.options.Abort.Err() == nil {
		r.handle(SnapshotFailed{err})
	}
}

// status is how far the recording has come.
func (r *Recorder) status() Status {
	s := Status{Duration: r.duration(), Ring: r.session.Fill()}
	for _, t := range r.threads.all {
		if t.stream != nil {
			paths, rules, symbols := t.stream.Size()
			s.Paths, s.Rules, s.Symbols = s.Paths+paths, s.Rules+rules, s.Symbols+symbols
		}
		s.Lost += t.lost
	}
	if c := r.threads.counter; c != nil {
		s.Paths = c.Total()
	}
	windows, share := r.windows.sampled()
	s.Windows, s.Sampled = windows, share.Share
	if r.windows != nil {
		s.Overhead = r.windows.schedule.Overhead()
	}
	if s.Windows == 0 {
		s.SlowDown, s.SlowDownKnown = r.usage.meter.Recent()
	}
	s.InWindow, s.HeldUp = r.windows.heldUp()
	if hot, known := r.sampling.hottest(r.program.Plan, r.images.ids); known {
		s.Hottest, s.HottestShare = hot.routine.Name, hot.share
	}
	return s
}
