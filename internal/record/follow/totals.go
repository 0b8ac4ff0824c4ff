package follow

import (
	"cmp"
	"context"
	"errors"

	"wpptrace/internal/record"
)

// totals sum up the recordings that are over, and the processes that are not recorded.
type totals struct {
	recordings int
	losses     record.Losses
	unrecorded []Reason // in the order in which they came up
	err        error    // the first
}

// add adds a recording that has been written.
func (t *totals) add(l record.Losses) {
	t.recordings++
	t.losses.Events += l.Events
	t.losses.Places += l.Places
	t.losses.Metrics.LostByWhom += l.Metrics.LostByWhom
	t.losses.Metrics.Dropped += l.Metrics.Dropped
	t.losses.Metrics.NoStorage += l.Metrics.NoStorage
}

// leaveOut counts a process that is not recorded, and reports whether it is the first for that
// reason.
func (t *totals) leaveOut(why error) (first bool) {
	for i := range t.unrecorded {
		if t.unrecorded[i].Err.Error() == why.Error() {
			t.unrecorded[i].Processes++
			return false
		}
	}
	t.unrecorded = append(t.unrecorded, Reason{why, 1})
	return true
}

func (t *totals) result(missed uint32) *Result {
	return &Result{Recordings: t.recordings, Losses: t.losses, Unrecorded: t.unrecorded,
		Missed: missed}
}

// leaveOut says why a process runs untraced, once for each reason.
func (r *recorder) leaveOut(pid int, name string, why error) {
	if r.totals.leaveOut(why) {
		r.handle(Unrecorded{pid, name, why})
	}
}

// account takes a recording out that has ended.
func (r *recorder) account(e ending) {
	one, p := e.recording, e.recording.recorder.Process()
	r.running.remove(one)
	err := e.err
	if e.result != nil {
		err = errors.Join(err, e.result.Losses.Err)
		if e.result.Written {
			r.totals.add(e.result.Losses)
		}
		r.handle(Recorded{p.PID, p.Name, e.result})
	}
	one.recorder.Close()
	if p != r.first {
		p.Close()
	}
	r.shared.tidy(r.running.recorders())
	switch {
	case r.totals.err == nil:
		r.totals.err = err
	case err != nil && !errors.Is(err, context.Canceled):
		r.handle(Failed{err}) // Run returns the first error
	}
}

// letGo has a process go on that stands.
func (r *recorder) letGo(pid int) {
	r.totals.err = cmp.Or(r.totals.err, r.follower.Resume(pid))
}
