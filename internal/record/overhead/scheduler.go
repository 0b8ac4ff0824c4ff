package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"wpptrace/loader/attach"
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
	asleep uint64        // of them and the one that is open, those that began while the process slept, or had just woken up for all that is known
	tries  int           // how often the next one has been opened, and has not begun
	barred int           // how often somebody else's breakpoints have kept it from that
	calm   func()        // of the window that is open: it is to be closed in time, and what that takes of the machine the budget bounds too

	clock     target.Times  // of the process, when its use was accounted for last
	hits      toll          // likewise
	count     uint64        // likewise: how many hits
	at        time.Time     // when its use was accounted for last
	opening   opening       // of the window that is open
	since     time.Time     // of the window that is open, or of the rest between two: when it began
	began     time.Duration // CPU time that the process had used then
	load      float64       // CPUs that the process uses while no probe stands
	change    time.Duration // what putting probes in or out has cost it, the last time
	owed      time.Duration // the least debt since the window that is open was opened
	all       tracedUse     // since the probes went in first
	inWindows tracedUse     // of that
	inChanges tracedUse     // of that: while probes go in or out
	changing  bool          // they do
	rating    *rating       // nil: there is none
}

// A tracedUse is what a process has used, of it the toll of hits, and how long that took.
type tracedUse struct {
	target.Times
	hits toll
	long time.Duration
}

func (u *tracedUse) add(v tracedUse) {
	u.CPU, u.User, u.hits, u.long = u.CPU+v.CPU, u.User+v.User, u.hits.plus(v.hits), u.long+v.long
}

func (u tracedUse) minus(v tracedUse) tracedUse {
	return tracedUse{u.Times.Sub(v.Times), u.hits.minus(v.hits), u.long - v.long}
}

// own is what hits, by calibration, have left of the CPU time.
func (u tracedUse) own() float64 { return max(float64(u.CPU-u.hits.cost), 0) }

// An opening is what hits there had been, and their toll, when a window was opened.
type opening struct {
	hits  toll
	count uint64
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
// gone to sleep meanwhile and to open another is cheap: mostTries times at most. One that nearly always
// sleeps, and is seen awake, has as a rule woken up since the first of the probes stood.
func (p *pace) settle(asleep bool) (begins bool) {
	if asleep && p.load >= leastLoad && p.tries < mostTries && p.change <= p.window {
		p.tries++
		return false
	}
	if p.tries = 0; asleep || p.load < leastLoad {
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
	free := p.free()
	usual := func(long time.Duration) float64 { return free.own() / float64(max(free.long, 1)) * float64(long) }
	without := free.own() + min(p.inChanges.own(), usual(p.inChanges.long))
	doubtful := windows < certain || e.own > odd*usual(p.inWindows.long)
	doubtful = doubtful && !known && float64(p.inWindows.hits.cost) > notable*float64(p.inWindows.CPU)
	if p.mostlyHits() && !known || e.vague() || doubtful {
		within := min(e.own+mostDoubts*e.doubt, e.cpu)
		most = within / (within + without)
	}
	return windows, e.own / (e.own + without), most
}

// Where hits take a notable share of the CPU time in windows, and what they leave there is odd times
// what the process uses else, they may be dearer than calibrated: of a program that slept, single-
// stepped ones left up to 800 times that. So they may be where windows are too few to be certain: of
// one that ran 327 times slower, they left 420 times what the only window was.
const (
	notable = 0.25
	odd     = 3
	certain = 3
)

// mostDoubts is how many times the doubt something is off at most: one doubt it is often.
const mostDoubts = 3

// free is what was used while no probe stood, but for rare sites.
func (p *pace) free() tracedUse { return p.all.minus(p.inWindows).minus(p.inChanges) }

// overhead is what tracing has taken, as a share of the process's own CPU time: which that was while
// no probe stood is certain.
func (p *pace) overhead() float64 {
	return p.budget.Overhead(time.Duration(p.free().own()))
}

// mostlyHits reports whether hits take more of the time in windows than all else, so that what they
// leave tells little.
func (p *pace) mostlyHits() bool { return 2*p.inWindows.hits.cost > p.inWindows.CPU }

// begin notes that a window is open.
func (p *pace) begin() {
	if p != nil {
		p.calm, p.opened, p.opening = guard.Prompt(), time.Now(), opening{p.hits, p.count}
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
	now := time.Now()
	more := tracedUse{used.Sub(p.clock), hits.minus(p.hits), now.Sub(p.at)}
	p.clock, p.hits, p.count, p.at = used, hits, r.gauge.hits, now
	p.all.add(more)
	switch {
	case p.changing:
		p.inChanges.add(more)
	case !p.opened.IsZero():
		p.inWindows.add(more)
	}
	probes := more.hits.cost + more.hits.doubt
	p.budget.Account(govern.Use{Own: more.CPU - probes, Probes: probes})
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
	began, hits, count := p.at, p.hits, p.count
	wasOpen := !p.opened.IsZero()
	p.changing = true
	err := change()
	r.account()
	if p.changing = false; wasOpen {
		p.apportion(hits, count)
	}
	if errors.Is(err, attach.ErrBreakpoint) && !r.session.Attached() { // none of ours went in
		return err
	}
	lost := load*float64(p.at.Sub(began)) - float64(p.hits.minus(hits).cost)
	most := max(1, load) * float64(len(r.program.plan.Sites)) * float64(mostWait)
	p.change = time.Duration(min(max(0, lost), most))
	p.budget.Account(govern.Use{Probes: p.change})
	p.turn()
	return err
}

// apportion divides the toll of hits since a window was opened between the window, up to whose end
// there were count of all and hits was the toll, and taking its probes out: which of them were
// single-stepped is known when they have been read.
func (p *pace) apportion(hits toll, count uint64) {
	all := p.hits.minus(p.opening.hits)
	share := float64(count-p.opening.count) / float64(max(p.count-p.opening.count, 1))
	of := toll{time.Duration(share * float64(all.cost)), time.Duration(share * float64(all.doubt))}
	late := of.minus(hits.minus(p.opening.hits))
	p.inWindows.hits, p.inChanges.hits = p.inWindows.hits.plus(late), p.inChanges.hits.minus(late)
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
	r.log.Debug("a window has ended", "windows", r.pace.closed, "overhead", percentage(r.pace.overhead()))
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

// openWindow puts the probes in again, and lets the window begin.
func (j *job) openWindow(ctx context.Context) error {
	p := j.pace
	if p.tries == 0 { // the rest between two tries is too short to tell
		p.load = p.rate()
	}
	switch err := j.accountChange(p.load, j.attachAgain); {
	case !j.session.Attached() && p.mayTryAgain(err):
		return nil
	case err != nil:
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

// mostBarred is how often a window is tried in a row that somebody else's breakpoints keep from opening: those of one in
// windows of its own soon go.
const mostBarred = 500

// mayTryAgain reports whether a window may open later which somebody else's breakpoints have kept from it.
func (p *pace) mayTryAgain(err error) bool {
	if !errors.Is(err, attach.ErrBreakpoint) {
		p.barred = 0
		return false
	}
	p.barred++
	return p.barred < mostBarred
}

// tellPace says once that windows have begun, and why.
func (j *job) tellPace() {
	p := j.pace
	if p == nil || p.closed == 0 || j.paceTold {
		return
	}
	j.paceTold = true
	j.say("to trace all of it costs more than --overhead %v%% of its CPU time: it is traced in windows of %v from here on%s; --overhead 0 --max-slowdown 0 traces all, however slow", j.overhead, p.window, p.next(j.left()))
}

// left is how long the recording goes on yet; 0: nobody knows.
func (j *job) left() time.Duration {
	if j.limit == 0 {
		return 0
	}
	return max(j.limit-time.Since(j.began), 1)
}

// next says when the next window may begin, at the load that the process has while no probe stands,
// of a recording that goes on for so long, 0 if nobody knows; nothing where that is soon.
func (p *pace) next(left time.Duration) string {
	const least, soon = 0.01, time.Second
	switch wait := time.Duration(float64(p.budget.Debt()) / max(p.load, least)); {
	case wait <= soon:
		return ""
	case left > 0 && wait > left:
		return fmt.Sprintf(", the next in some %.0f s at its present load, when -d is over", wait.Seconds())
	default:
		return fmt.Sprintf(", the next in some %.0f s", wait.Seconds())
	}
}

func percentage(share float64) string {
	const exponential = 9.995 // with three digits
	if share >= exponential {
		return fmt.Sprintf("%.0f%%", 100*share)
	}
	return fmt.Sprintf("%.3g%%", 100*share)
}
