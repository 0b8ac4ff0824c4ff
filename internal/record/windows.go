package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"wpptrace/internal/record/overhead"
	"wpptrace/loader/attach"
	"wpptrace/loader/guard"
	"wpptrace/loader/plan"
	"wpptrace/loader/target"
)

// Windows keep a recording within its budget.
type windows struct {
	*overhead.Scheduler
	calm func() // of the window that is open: it is to be closed in time, and what that takes of the machine the budget bounds too
}

// pause is how long nothing need be decided.
func (w *windows) pause() time.Duration {
	if w == nil {
		return tick
	}
	return w.Pause(tick)
}

// begin notes that a window is open.
func (w *windows) begin() {
	if w != nil {
		w.calm = guard.Prompt()
		w.Open()
	}
}

// end notes that the window is closed.
func (w *windows) end() {
	w.relax()
	w.Close()
}

// relax gives up the precedence of a window that is open: nothing that follows is urgent.
func (w *windows) relax() {
	if w.IsOpen() {
		w.calm()
	}
}

// sampled is none of a recording without a budget.
func (w *windows) sampled(k overhead.KernelShare) (windows uint64, share, most float64) {
	if w == nil {
		return 0, 0, 0
	}
	return w.Sampled(k)
}

// rareOf are the rare sites of a recording, nil if there are none.
func rareOf(w *windows) *overhead.RareSites {
	if w == nil {
		return nil
	}
	return w.Rare()
}

// keepPace closes the window, or opens one, as the budget has it.
func (j *job) keepPace(ctx context.Context) error {
	if j.windows == nil {
		return nil
	}
	j.account()
	switch j.windows.Decide(j.process.Sleeping) {
	case overhead.CloseWindow:
		return j.closeWindow(ctx)
	case overhead.OpenWindow:
		return j.openWindow(ctx)
	}
	return nil
}

// account charges the budget with what the process has used since the last time.
func (r *recording) account() {
	hits := r.meter.Charge(r.hits()) // first: no hit is charged to a time before it
	used, err := r.used()
	if err != nil {
		return // it has exited
	}
	r.windows.Charge(overhead.Reading{At: time.Now(), Used: used, Hits: hits, N: r.meter.Hits()})
}

// accountChange puts probes in or takes them out, of a process that would use so many CPUs without
// that, and charges the budget with it. The use up to then has been accounted for. Without a budget
// there is nothing to charge.
func (r *recording) accountChange(load float64, change func() error) error {
	w := r.windows
	if w == nil {
		return change()
	}
	c := w.BeginChange()
	err := change()
	r.account()
	w.EndChange(c)
	if errors.Is(err, attach.ErrBreakpoint) && !r.session.Attached() { // none of ours went in
		return err
	}
	w.ChargeChange(c, load, len(r.program.plan.Sites))
	return err
}

// closeWindow takes the probes out. What the threads do from here on is not known.
func (r *recording) closeWindow(ctx context.Context) error {
	err := r.accountChange(r.windows.LoadBeforeClosing(), func() error {
		err := r.detach(ctx)
		if err == nil {
			r.windows.end()
		}
		return err
	})
	if err != nil {
		return err
	}
	r.log.Debug("a window has ended", "windows", r.windows.Closed(), "overhead", percentage(r.windows.Overhead()))
	if err := r.leaveThreads(); err != nil {
		return err
	}
	return r.countRareSites()
}

// leaveThreads says of each thread that what comes next is not known, and lets go of those that
// have ended.
func (r *recording) leaveThreads() error {
	if err := r.addLosses(); err != nil { // while it is known of threads that have ended
		return err
	}
	strays, err := r.strays()
	if err != nil {
		return err
	}
	for _, t := range strays {
		t.end()
	}
	for _, t := range r.all {
		if t.words != nil {
			t.leave()
		}
	}
	return nil
}

// countRareSites counts rare sites for a while after a window, where that is needed, and worth its
// cost.
func (r *recording) countRareSites() error {
	w, sites := r.windows, r.program.plan.Parts[0].Sites
	due := w.DueRareSites(sites)
	if len(due) == 0 || r.session.Unguarded() {
		return nil
	}
	list := make([]plan.Site, len(due))
	for i, site := range due {
		list[i] = sites[site]
	}
	var before, after target.Times
	hits, err := r.session.Count(list, func() (err error) {
		if before, err = r.used(); err != nil {
			return err
		}
		r.process.Wait(w.Rare().Time())
		after, err = r.used()
		return err
	})
	if errors.Is(err, attach.ErrBreakpoint) { // another's, which will be gone the next time
		return nil
	}
	if err != nil {
		return err
	}
	r.account()
	used, cost := after.Sub(before).CPU, time.Duration(hits)*r.meter.Unreported()
	r.log.Debug("rare sites were counted between windows", "sites", len(list), "hits", hits, "used", used, "for hits", cost)
	w.Counted(hits, used, cost)
	return nil
}

// openWindow puts the probes in again, and lets the window begin.
func (j *job) openWindow(ctx context.Context) error {
	w := j.windows
	switch err := j.accountChange(w.LoadBeforeOpening(), j.attachAgain); {
	case !j.session.Attached() && w.MayTryAgain(errors.Is(err, attach.ErrBreakpoint)):
		return nil
	case err != nil:
		return err
	}
	if !w.Begins(j.process.Sleeping()) {
		return j.accountChange(w.Load(), func() error { return j.detach(ctx) })
	}
	if err := j.session.Enable(false); err != nil {
		return err
	}
	w.begin()
	return nil
}

// tellPace says once that windows have begun, and why.
func (j *job) tellPace() {
	w := j.windows
	if w == nil || w.Closed() == 0 || j.paceTold {
		return
	}
	j.paceTold = true
	j.say("to trace all of it costs more than --overhead %v%% of its CPU time: it is traced in windows of %v from here on%s; --overhead 0 --max-slowdown 0 traces all, however slow", j.overhead, w.Window(), nextWindowText(w.Wait(), j.left()))
}

// left is how long the recording goes on yet; 0: nobody knows.
func (j *job) left() time.Duration {
	if j.limit == 0 {
		return 0
	}
	return max(j.limit-time.Since(j.began), 1)
}

// nextWindowText says when the next window may begin, of a recording that goes on for so long, 0 if
// nobody knows; nothing where that is soon.
func nextWindowText(wait, left time.Duration) string {
	const soon = time.Second
	switch {
	case wait <= soon:
		return ""
	case left > 0 && wait > left:
		return fmt.Sprintf(", the next in some %.0f s at its present load, when -d is over", wait.Seconds())
	default:
		return fmt.Sprintf(", the next in some %.0f s", wait.Seconds())
	}
}
