package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"wpptrace/loader/govern"
	"wpptrace/loader/guard"
	"wpptrace/loader/target"
)

// A pace keeps a recording within its budget: probes stand all the time where that is cheap enough,
// else in windows as far apart as the budget asks.
type pace struct {
	budget *govern.Budget
	window time.Duration
	opened time.Time     // zero: no probe stands
	ready  time.Time     // since when the budget has allowed a window that is not open yet, for the process sleeps; zero: it is not waited for
	look   time.Duration // how long it is until it is looked whether it still does
	closed uint64        // windows
	asleep uint64        // of them and the one that is open, those that began while the process slept
	tries  int           // how often the next one has been opened, and has not begun
	calm   func()        // of the window that is open: it is to be closed in time, and what that takes of the machine the budget bounds too

	clock     target.Times  // of the process, when its use was accounted for last
	hits      time.Duration // likewise
	at        time.Time     // when that was
	since     time.Time     // of the window that is open, or of the rest between two: when it began
	began     time.Duration // CPU time that the process had used then
	load      float64       // CPUs that the process uses while no probe stands
	change    time.Duration // what putting probes in or out has cost it, the last time
	owed      time.Duration // the least debt since the window that is open was opened
	all       tracedUse     // since the probes went in first
	inWindows tracedUse     // of that
	rating    *rating       // nil: there is none
}

// A tracedUse is what a process has used, and of it the cost of hits by calibration.
type tracedUse struct {
	target.Times
	hits time.Duration
}

func (u *tracedUse) add(used target.Times, hits time.Duration) {
	u.CPU, u.User, u.hits = u.CPU+used.CPU, u.User+used.User, u.hits+hits
}

// newPace begins to account for a process that has used so much so far, and uses load of a CPU,
// before any probe stands in it.
func newPace(share float64, window time.Duration, used target.Times, load float64) *pace {
	return &pace{budget: govern.New(share), window: window, clock: used, at: time.Now(), load: load}
}

// turn notes that a window has been opened, or closed.
func (p *pace) turn() { p.since, p.began, p.owed = p.at, p.clock.CPU, p.budget.Debt() }

// deeper reports whether the hits of the window that is open run into debt, or deeper into that
// which putting its probes in has left. While that is being paid off, taking them out would only
// cost more.
func (p *pace) deeper() bool {
	const slack = 100 * time.Millisecond // of the process's own CPU time: a burst of hits
	debt := p.budget.Debt()
	p.owed = min(p.owed, debt)
	return debt > 0 && (p.owed == 0 || debt > p.owed+slack)
}

// rate is how many CPUs the process has used since the last turn.
func (p *pace) rate() float64 {
	const least = time.Millisecond // of less, nothing can be told
	return float64(p.clock.CPU-p.began) / float64(max(p.at.Sub(p.since), least))
}

// pause is how long nothing need be decided: a window lasts as long as it is to, and between them
// nothing is to be done before the debt can have been earned.
func (p *pace) pause() time.Duration {
	if p == nil {
		return tick
	}
	if !p.ready.IsZero() {
		return p.look
	}
	if !p.opened.IsZero() {
		if left := time.Until(p.opened.Add(p.window)); left > 0 {
			return min(tick, left)
		}
		return min(tick, p.window)
	}
	earned := p.budget.Debt() / time.Duration(runtime.NumCPU())
	return min(max(earned, tick), longestPause)
}

// longestPause is how long a signal may wait while no probe stands.
const longestPause = 50 * time.Millisecond

// A window is to begin while the process does something: begun while it sleeps, it would show what
// the process does when it wakes up, and nothing else. Of one that nearly always sleeps it begins
// all the same.
const (
	glance       = 2 * time.Millisecond // how often it is looked whether the process still sleeps,
	glanceShare  = 0.05                 // or so seldom that looking takes no more than this share of the time
	longestSleep = time.Second
	mostTries    = 8
	leastLoad    = 0.1 // CPUs: of a process that uses less, another try would find it asleep, too
)

// awaken decides whether to open a window, of those that the budget allows, or to wait for the
// process to wake up, which takes longestSleep at most from the first call on.
func (p *pace) awaken(sleeps func() bool) (open bool) {
	now := time.Now()
	if p.ready.IsZero() {
		p.ready = now
	}
	asleep := sleeps()
	if p.look = max(glance, time.Duration(float64(time.Since(now))/glanceShare)); asleep && now.Sub(p.ready) < longestSleep {
		return false
	}
	p.ready = time.Time{}
	return true
}

// settle decides whether the window that has been opened begins, or is closed, for the process has
// gone to sleep meanwhile and to open another is cheap: mostTries times at most.
func (p *pace) settle(asleep bool) (begins bool) {
	if asleep && p.load >= leastLoad && p.tries < mostTries && p.change <= p.window {
		p.tries++
		return false
	}
	if p.tries = 0; asleep {
		p.asleep++
	}
	return true
}

// sampled is how many windows there were, none if all was traced, and which share of the process's
// own CPU time they were; most is what that may be, where it is in doubt, else 0.
func (p *pace) sampled(n nature) (windows uint64, share, most float64) {
	if p == nil || p.closed == 0 {
		return 0, 0, 0
	}
	windows = p.closed
	if !p.opened.IsZero() {
		windows++
	}
	e := n.estimate(p.inWindows.Times, p.inWindows.hits)
	rated, known := p.rating.estimate(p.inWindows.CPU)
	if known = known && p.mostlyHits(); known { // then what they leave is in more doubt than it seems
		e = rated
	}
	without := max(float64(p.all.CPU-p.inWindows.CPU-(p.all.hits-p.inWindows.hits)), 0)
	if p.mostlyHits() && !known || e.vague() {
		within := min(e.own+e.doubt, e.cpu)
		most = within / (within + without)
	}
	return windows, e.own / (e.own + without), most
}

// mostlyHits reports whether hits take more of the time in windows than all else, so that what they
// leave tells little.
func (p *pace) mostlyHits() bool { return 2*p.inWindows.hits > p.inWindows.CPU }

// begin notes that a window is open.
func (p *pace) begin() {
	if p != nil {
		p.calm, p.opened = guard.Prompt(), time.Now()
	}
}

// end notes that the window is closed.
func (p *pace) end() {
	p.relax()
	p.closed, p.opened = p.closed+1, time.Time{}
}

// relax gives up the precedence of a window that is open: nothing that follows is urgent.
func (p *pace) relax() {
	if !p.opened.IsZero() {
		p.calm()
	}
}

// keepPace closes the window, or opens one, as the budget has it.
func (j *job) keepPace(ctx context.Context) error {
	p := j.pace
	if p == nil {
		return nil
	}
	j.account()
	switch open := !p.opened.IsZero(); {
	case open && p.deeper() && time.Since(p.opened) >= p.window:
		return j.closeWindow(ctx)
	case !open && p.budget.Overdrawn():
		p.ready = time.Time{}
	case !open && p.awaken(j.process.Sleeping):
		return j.openWindow(ctx)
	}
	return nil
}

// account charges the budget with what the process has used since the last time, and with the most
// that its hits may have cost.
func (r *recording) account() {
	p := r.pace
	hits := r.gauge.charge(r.hits()) // first: no hit is charged to a time before it
	used, err := r.used()
	if err != nil {
		return // it has exited
	}
	newUsed, newHits := used.Sub(p.clock), hits-p.hits
	p.clock, p.hits, p.at = used, hits, time.Now()
	p.all.add(newUsed, newHits)
	if !p.opened.IsZero() {
		p.inWindows.add(newUsed, newHits)
	}
	probes := newHits + time.Duration(hitDoubt*float64(newHits))
	p.budget.Account(govern.Use{Own: newUsed.CPU - probes, Probes: probes})
}

// accountChange puts probes in or takes them out, of a process that would use so many CPUs without
// that, and charges the budget with it. Each probe takes the lock of its memory, which it waits for
// where it runs on another CPU, and interrupts it, for a page changes: it hardly gets on meanwhile,
// so all that it would have done is taken for lost, up to the most that so many probes have been
// seen to cost. The use up to then has been accounted for. Without a budget there is nothing to
// charge.
func (r *recording) accountChange(load float64, change func() error) error {
	p := r.pace
	if p == nil {
		return change()
	}
	began, hits := p.at, p.hits
	err := change()
	r.account()
	lost := load*float64(p.at.Sub(began)) - float64(p.hits-hits)
	most := max(1, load) * float64(len(r.program.plan.Sites)) * float64(mostWait)
	p.change = time.Duration(min(max(0, lost), most))
	p.budget.Account(govern.Use{Probes: p.change})
	p.turn()
	return err
}

// mostWait is what putting a probe in, or out, has been seen to cost a process that runs on another
// CPU.
const mostWait = 70 * time.Microsecond

// closeWindow takes the probes out. What the threads do from here on is not known.
func (r *recording) closeWindow(ctx context.Context) error {
	load := min(r.pace.load, r.pace.rate()) // it may do less than it did before
	err := r.accountChange(load, func() error {
		err := r.detach(ctx)
		if err == nil {
			r.pace.end()
		}
		return err
	})
	if err != nil {
		return err
	}
	r.log.Debug("a window has ended", "windows", r.pace.closed, "overhead", percentage(r.pace.budget.Overhead()))
	if err := r.leaveThreads(); err != nil {
		return err
	}
	return r.rateWindows()
}

// leaveThreads says of each thread that what comes next is not known, and lets go of those that
// have ended.
func (r *recording) leaveThreads() error {
	if err := r.addLosses(); err != nil { // while threads that have ended can still be told so
		return err
	}
	live := map[uint32]bool{}
	ids, err := r.process.Threads()
	if err != nil && r.process.Alive() {
		return err
	}
	for _, id := range ids {
		live[uint32(id)] = true
	}
	for _, t := range r.all {
		switch {
		case t.words == nil:
		case !live[t.id] || r.threads[t.id] != t:
			t.end()
		default:
			t.leave()
		}
	}
	return nil
}

// openWindow puts the probes in again, and lets the window begin.
func (j *job) openWindow(ctx context.Context) error {
	p := j.pace
	if p.tries == 0 { // the rest between two tries is too short to tell
		p.load = p.rate()
	}
	if err := j.accountChange(p.load, j.attachAgain); err != nil {
		return err
	}
	if !p.settle(j.process.Sleeping()) {
		return j.accountChange(p.load, func() error { return j.detach(ctx) })
	}
	if err := j.session.Enable(false); err != nil {
		return err
	}
	p.begin()
	return nil
}

// tellPace says once that windows have begun, and why.
func (j *job) tellPace() {
	p := j.pace
	if p == nil || p.closed == 0 || j.paceTold {
		return
	}
	j.paceTold = true
	j.say("to trace all of it costs more than --overhead %v%% of its CPU time: it is traced in windows of %v from here on; --overhead 0 traces all", j.overhead, p.window)
}

func percentage(share float64) string { return fmt.Sprintf("%.3g%%", 100*share) }
