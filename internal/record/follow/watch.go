package follow

import (
	"context"
	"errors"
	"os"
	"time"

	"wpptrace/internal/record"
	"wpptrace/loader/followfork"
	"wpptrace/loader/target"
)

// tick is how often it is looked whether something has happened.
const tick = 20 * time.Millisecond

// watch takes what comes until there is a reason to end, which it returns.
func (r *recorder) watch(ctx context.Context) (record.Reason, error) {
	for {
		quiet, err := r.next()
		if err != nil {
			return record.Failed, err
		}
		if len(r.waiting) > 0 {
			n := r.waiting[0]
			r.waiting = r.waiting[1:]
			r.take(ctx, n)
		}
		select {
		case <-ctx.Done():
			return record.Interrupted, nil
		case <-r.options.Abort.Done():
			return record.Interrupted, context.Canceled
		case <-r.shared.guard.Gone():
			return record.GuardLost, nil
		case <-r.options.Snapshot:
			r.running.requestSnapshots()
		case e := <-r.running.over:
			r.account(e)
		default:
		}
		switch {
		case r.options.Duration > 0 && time.Since(r.began) >= r.options.Duration:
			return record.DurationOver, nil
		case quiet && r.running.count() == 0 && !r.follower.Alive():
			return record.Exited, nil
		}
		r.handle(Progress{time.Since(r.began), r.running.count(), r.totals.recordings,
			r.totals.losses.Events})
	}
}

// next takes notice of all that there is news of, and waits for some if nothing is to be done. It
// reports whether there is none. Each probe that goes into a program is tried on all processes that
// run it: those that there is no room for do not wait for it.
func (r *recorder) next() (quiet bool, err error) {
	deadline := time.Now()
	if len(r.waiting) == 0 {
		deadline = deadline.Add(tick)
	}
	const most = 64 // of a storm, so that signals are taken
	for range most {
		n, err := r.follower.Next(deadline)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return len(r.waiting) == 0, nil
		}
		if err != nil {
			return false, err
		}
		if busy := r.running.busy(); r.running.byPID[n.PID] == nil &&
			busy+len(r.waiting) >= r.atOnce() {
			r.refuse(n, r.tooMany())
		} else {
			r.waiting = append(r.waiting, n)
		}
		deadline = time.Now()
	}
	return false, nil
}

// atOnce is how many processes may be recorded at the same time.
func (r *recorder) atOnce() int { return atOnce(r.options.Memory.All) }

// tooMany says why a process is not recorded that there is no room for.
func (r *recorder) tooMany() error { return &TooManyError{r.atOnce()} }

// refuse lets a process go that is not to be recorded.
func (r *recorder) refuse(n followfork.Started, why error) {
	r.leaveOut(n.PID, n.Name, why)
	r.letGo(n.PID)
}

// take deals with a process that has begun, or with what it has become. It stands meanwhile.
func (r *recorder) take(ctx context.Context, n followfork.Started) {
	if before := r.running.byPID[n.PID]; before != nil && n.Exec {
		// its probes would stand in what comes
		if !r.awaitOut(ctx, before) {
			return
		}
		delete(r.running.byPID, n.PID)
	}
	why := n.Obstacle
	if why == nil {
		why = r.makeRoom()
	}
	if why != nil {
		r.refuse(n, why)
		return
	}
	p, err := target.Open(n.PID)
	if errors.Is(err, target.ErrGone) || errors.Is(err, target.ErrNoProcess) { // nothing of it ran
		r.letGo(n.PID)
		return
	}
	if err != nil {
		r.refuse(n, err)
		return
	}
	if err := r.adopt(n, p); err != nil {
		if p.Alive() && r.options.Abort.Err() == nil {
			r.leaveOut(p.PID, p.Name, err)
		}
		p.Close()
	}
	r.letGo(n.PID)
}

// awaitOut waits until the probes of a recording are out, unless all is to end.
func (r *recorder) awaitOut(ctx context.Context, one *recording) bool {
	for {
		select {
		case <-one.recorder.Out():
			return true
		case e := <-r.running.over:
			if r.account(e); e.recording == one {
				// which fails before it has begun to take them out, should it fail early
				return true
			}
		case <-ctx.Done():
			return false
		case <-r.options.Abort.Done():
			return false
		}
	}
}

// adopt has a process recorded.
func (r *recorder) adopt(n followfork.Started, p *target.Process) error {
	o := r.optionsOf(p)
	o.ForkOfTraced = !n.Exec
	one, err := r.prepare(o, func(record.Event) bool { return false })
	if err != nil {
		return err
	}
	if err := r.beginOne(one, n); err != nil {
		one.recorder.Close()
		return err
	}
	r.start(one)
	return nil
}

// errEscaped says that it is not known what a process did.
var errEscaped = errors.New("somebody has let it go on, by a SIGCONT, before probes stood")

// beginOne starts the reports. Of a program that stands before its first instruction nothing is
// missing.
func (r *recorder) beginOne(one *recording, n followfork.Started) error {
	held, err := r.follower.Holds(n.PID)
	if err != nil {
		return err
	}
	fromStart := n.Exec && held
	if err := one.recorder.Begin(fromStart); err != nil {
		return err
	}
	if !fromStart {
		return nil
	}
	if held, err = r.follower.Holds(n.PID); err == nil && !held {
		err = errEscaped
	}
	return err
}

// makeRoom waits for recordings that only write, where there are as many as may be. It fails when
// all record.
func (r *recorder) makeRoom() error {
	for r.running.count() >= r.atOnce() {
		if r.running.busy() == r.running.count() {
			return r.tooMany()
		}
		r.account(<-r.running.over)
	}
	return nil
}

// start has a process recorded whose probes stand.
func (r *recorder) start(one *recording) {
	p := one.recorder.Process()
	r.paths[one.recorder.Path()] = true
	r.handle(Began{p.PID, p.Name, one.recorder.Path()})
	r.running.start(one)
}
