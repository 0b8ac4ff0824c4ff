package record

import (
	"context"
	"errors"
	"time"

	"wpptrace/compress/wpp/counted"
	"wpptrace/internal/record/division"
	"wpptrace/internal/record/overhead"
	"wpptrace/loader/attach"
	"wpptrace/loader/guard"
	"wpptrace/loader/target"
)

// windows put the probes of a recording in and take them out, as its budget has it. Of a recording
// without a budget they are nil, and its probes stand all the time.
type windows struct {
	schedule *overhead.Scheduler
	division *division.Division
	usage    *usage
	threads  *threads
	sampling *sampling
	attach   func() error // puts the probes in again, in libraries too
	handle   func(Event)
	// calm gives up the precedence that wpptrace has while a window is open: it is to be closed in
	// time, and what that takes of the machine the budget bounds too.
	calm func()
}

// pause is how long nothing need be decided.
func (w *windows) pause() time.Duration {
	if w == nil {
		return tick
	}
	return min(w.schedule.Pause(tick), w.division.Pause())
}

// begin notes that a window is open.
func (w *windows) begin() {
	if w != nil {
		w.calm = guard.RaisePriority()
		w.schedule.Open()
	}
}

// relax gives up the precedence of a window that is open: nothing that follows is urgent.
func (w *windows) relax() {
	if w != nil && w.schedule.IsOpen() {
		w.calm()
	}
}

// isOpenSince reports whether a window is open that was opened after then.
func (w *windows) isOpenSince(then time.Time) bool {
	return w != nil && w.schedule.IsOpen() && w.schedule.Opened().After(then)
}

// haveBegun reports whether a window has been closed: not all is traced.
func (w *windows) haveBegun() bool { return w != nil && w.schedule.Closed() > 0 }

// areToCome reports whether no window has been opened so far: nothing was traced.
func (w *windows) areToCome() bool {
	return w != nil && w.schedule.Closed() == 0 && !w.schedule.IsOpen()
}

// keep closes the window, or opens one, as the budget has it.
func (w *windows) keep(ctx context.Context) error {
	if w == nil {
		return nil
	}
	w.charge()
	if !w.schedule.IsOpen() {
		if err := w.divide(); err != nil || !w.division.MayOpen() {
			return err
		}
	}
	switch w.schedule.Decide(w.threads.process.Sleeping) {
	case overhead.CloseWindow:
		return w.close(ctx)
	case overhead.OpenWindow:
		return w.open(ctx)
	}
	switch {
	case w.schedule.Outlasts():
		w.relax()
	case !w.schedule.IsOpen() && w.haveBegun():
		return w.count()
	}
	return nil
}

// charge charges the budget with what the process has used since the last time.
func (w *windows) charge() {
	if w == nil {
		return
	}
	if now, known := w.usage.reading(); known {
		w.schedule.Charge(now)
	}
}

// change puts probes in or takes them out, of a process that would use load CPUs without that, and
// charges the budget with it. The use up to then has been charged.
func (w *windows) change(load float64, change func() error) error {
	if w == nil {
		return change()
	}
	c := w.schedule.BeginChange()
	held := w.threads.session.Groups().Changes()
	err := change()
	w.charge()
	w.schedule.EndChange(c)
	if errors.Is(err, attach.ErrBreakpoint) && !w.threads.session.Attached() {
		// none of ours went in
		return err
	}
	w.schedule.ChargeChange(c, load, w.threads.session.Groups().Changes().Since(held))
	return err
}

// divide finds out which sites are hot. It is no part of a window.
func (w *windows) divide() error {
	if !w.division.IsDone() {
		w.sampling.pause()
		defer w.sampling.resume()
	}
	err := w.division.Keep()
	w.charge()
	return err
}

// close takes the probes out. What the threads do from here on is not known.
func (w *windows) close(ctx context.Context) error {
	left := w.change(w.schedule.LoadBeforeClosing(), w.threads.session.Pause)
	w.relax()
	w.schedule.Close()
	if err := w.threads.takeRest(ctx, left); err != nil {
		return err
	}
	w.charge()
	w.schedule.Settle()
	w.handle(WindowClosed{w.schedule.Closed(), w.schedule.Overhead()})
	if err := w.threads.leave(); err != nil {
		return err
	}
	err := w.division.Cool(w.schedule.LeastInWindows())
	w.sampling.resume()
	return err
}

// open puts the probes in again, and lets the window begin.
func (w *windows) open(ctx context.Context) error {
	session := w.threads.session
	w.sampling.pause()
	if err := w.change(w.schedule.LoadBeforeOpening(), w.attach); err != nil {
		if errors.Is(err, attach.ErrBreakpoint) && !session.Attached() &&
			w.schedule.MayTryAgain() {
			w.sampling.resume()
			return nil
		}
		return err
	}
	if !w.schedule.Begins(w.threads.process.Sleeping()) {
		err := w.change(w.schedule.Load(),
			func() error { return w.threads.takeRest(ctx, w.threads.session.Pause()) })
		w.sampling.resume()
		return err
	}
	if err := session.Enable(false); err != nil {
		return err
	}
	w.begin()
	w.handle(WindowOpened{})
	return nil
}

// count counts some sites for a while between windows, where that is due. It is no part of one.
func (w *windows) count() error {
	session := w.threads.session
	list, long := w.schedule.DueControls(w.usage.meter.Cost().Emulated)
	if len(list) == 0 || session.GuardDead() {
		return nil
	}
	w.sampling.pause()
	defer w.sampling.resume()
	held := session.Groups().Changes()
	var before, after target.Times
	// the CPU time of a process is known by the clock tick while it runs, and to the ns where this
	// one has taken its CPU: as it may at the end, so at the beginning
	settle := func() error {
		w.threads.process.Wait(time.Millisecond)
		return nil
	}
	hits, err := session.Groups().Count(list, settle, func() (err error) {
		if before, err = w.usage.used(); err != nil {
			return err
		}
		w.threads.process.Wait(long)
		after, err = w.usage.used()
		return err
	})
	if errors.Is(err, attach.ErrBreakpoint) { // another's, which will be gone the next time
		w.schedule.NotCounted()
		return nil
	}
	if err != nil {
		return err
	}
	w.charge()
	all := uint64(0)
	for _, n := range hits {
		all += n
	}
	used := after.Sub(before).CPU
	cost := time.Duration(all) * w.usage.meter.Unreported()
	w.handle(SitesCounted{len(list), all, used, cost})
	w.schedule.Counted(list, hits, used, cost, session.Groups().Changes().Since(held))
	return nil
}

// heldUp is whether a window is open that may hold the process up, and for how long one has so far,
// at most.
func (w *windows) heldUp() (open bool, most time.Duration) {
	if w == nil {
		return false, 0
	}
	return w.schedule.IsOpen() && !w.schedule.Outlasts(), w.schedule.HeldUp()
}

// sampled is how many windows there were and which share of the process's own CPU time.
func (w *windows) sampled() (windows uint64, share overhead.Sampled) {
	if w == nil {
		return 0, overhead.Sampled{}
	}
	return w.schedule.Sampled(w.usage.meter.KernelShare)
}

// counts are what was counted between windows; nil: nothing was.
func (w *windows) counts() *counted.Counts {
	if w == nil {
		return nil
	}
	return w.schedule.Counts()
}
