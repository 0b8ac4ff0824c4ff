package overhead

import (
	"runtime"
	"time"

	"wpptrace/compress/wpp/counted"
	"wpptrace/loader/attach"
	"wpptrace/loader/target"
)

// A Scheduler keeps a recording within its budget: probes stand all the time where that costs
// little enough, else in windows as far apart as the budget asks. It knows no process: callers
// charge what one has used, and it decides when a window opens and closes. One goroutine uses it at
// a time.
type Scheduler struct {
	budget   *budget
	account  account
	controls *Controls // nil: there are none
	window   time.Duration

	mostHeld time.Duration // for a window, with its changes
	in       time.Duration // how long the probes that went in last have held the process up
	standing int           // how many these were
	outEach  time.Duration // how long one that comes out holds it up
	begun    bool          // probes have gone in for a window
	heldUp   time.Duration // how long a window with its changes has, at most

	opened  time.Time // zero: no probe stands
	opening Reading   // when it was opened
	closing Change    // the last that took its probes out
	out     Reading   // when they were
	closed  uint64    // windows
	since   Reading   // when the window that is open, or the rest between two, began
	owed    time.Duration
	load    float64       // CPUs that the process uses while no probe stands
	change  time.Duration // what putting probes in or out has cost the process, the last time
	changes bool          // probes go in or out
	waking  waking
	barred  int // how often in a row somebody else's breakpoints have kept a window from opening
}

// NewScheduler begins to account for a process that has used so much so far, and uses load of a
// CPU, before any probe stands in it. share is what probes may take of the process's own CPU time;
// a window lasts as l has it; controls may be nil.
func NewScheduler(share float64, l Limits, used target.Times, load float64,
	controls *Controls) *Scheduler {
	begun := account{last: Reading{At: time.Now(), Used: used}}
	return &Scheduler{budget: newBudget(share), window: l.Window, mostHeld: l.Stall, account: begun,
		load: load, controls: controls, outEach: usualOut}
}

// Limits say how long windows last that cost more than the budget earns meanwhile.
type Limits struct {
	// Window is how long one lasts, unless Stall makes it shorter.
	Window time.Duration
	// Stall is how long one, with its probes going in and coming out, may hold the process up. One
	// lasts for 4 ms all the same.
	Stall time.Duration
}

const (
	leastWindow = 4 * time.Millisecond
	usualOut    = 20 * time.Microsecond // what a probe takes to come out
)

// Begin notes that the recording begins: what was used before is no part of it. It has been
// charged.
func (s *Scheduler) Begin() { s.account.begin() }

// IsOpen reports whether a window is open.
func (s *Scheduler) IsOpen() bool { return !s.opened.IsZero() }

// Opened is when the window that is open was opened.
func (s *Scheduler) Opened() time.Time { return s.opened }

// Closed is the number of windows that have been closed.
func (s *Scheduler) Closed() uint64 { return s.closed }

// Asleep is how many windows began while the process slept, or had just woken up for all that is
// known.
func (s *Scheduler) Asleep() uint64 { return s.waking.asleep }

// Overhead is what tracing has taken, as a share of the process's own CPU time: which that was
// while no probe stood is certain.
func (s *Scheduler) Overhead() float64 {
	return s.budget.overhead(time.Duration(s.account.free().own()))
}

// Sampled is how many windows there were, none if all was traced, and which share of the process's
// own CPU time they were.
func (s *Scheduler) Sampled(k KernelShare) (windows uint64, share Sampled) {
	if s.closed == 0 {
		return 0, Sampled{}
	}
	windows = s.closed
	if s.IsOpen() {
		windows++
	}
	return windows, s.account.sampled(windows, k, s.controls)
}

// Counts are what was counted between windows; nil: nothing was.
func (s *Scheduler) Counts() *counted.Counts {
	_, own := s.account.rest()
	return s.controls.Counts(time.Duration(own))
}

// LeastInWindows is about how much of the process's own CPU time windows have been at least.
func (s *Scheduler) LeastInWindows() time.Duration {
	const least = 0.02 // of the CPU time
	in := &s.account.inWindows
	return time.Duration(max(in.own(), least*float64(in.CPU)))
}

// Wait is when the next window may begin, at the load that the process has while no probe stands.
func (s *Scheduler) Wait() time.Duration {
	const least = 0.01
	return time.Duration(float64(s.budget.debt()) / max(s.load, least))
}

// Charge charges the budget with what the process has used since the last reading, and with the
// most that its hits may have cost.
func (s *Scheduler) Charge(now Reading) {
	var part *tracedUse
	switch {
	case s.changes:
		part = &s.account.inChanges
	case s.IsOpen():
		part = &s.account.inWindows
	}
	more := s.account.add(now, part)
	probes := more.hits.Cost + more.hits.doubt
	s.budget.account(use{Own: more.CPU - probes, Probes: probes})
}

// turn notes that a window has been opened, or closed.
func (s *Scheduler) turn() { s.since, s.owed = s.account.last, s.budget.debt() }

// rate is how many CPUs the process has used since the last turn.
func (s *Scheduler) rate() float64 {
	const least = time.Millisecond // less says nothing
	used := s.account.last.Used.CPU - s.since.Used.CPU
	return float64(used) / float64(max(s.account.last.At.Sub(s.since.At), least))
}

// A Change is that probes go in, or out.
type Change struct {
	began   Reading
	wasOpen bool
}

// BeginChange notes that probes begin to go in or out. What was used up to then has been charged.
func (s *Scheduler) BeginChange() Change {
	s.changes = true
	return Change{s.account.last, s.IsOpen()}
}

// EndChange notes that they have. What was used meanwhile has been charged.
func (s *Scheduler) EndChange(c Change) {
	if s.changes = false; c.wasOpen {
		s.closing, s.out = c, s.account.last
	}
}

// probeCost is the most that putting a probe in, or out, has been seen to cost a process that runs
// on another CPU, and comes to others of them all the time; coldCost, to none of them.
const (
	probeCost = 70 * time.Microsecond
	coldCost  = 12 * time.Microsecond
)

// ChargeChange charges the budget with a change of probes, in a process that would use load CPUs
// without that. Each probe takes the lock of its memory, which it waits for where it runs on
// another CPU, and interrupts it, for a page changes: it hardly gets on meanwhile, so all that it
// would have done is taken for lost, up to the most that so many probes have been seen to cost, but
// for the cost of hits, which is charged.
func (s *Scheduler) ChargeChange(c Change, load float64, change attach.Changes) {
	hits := s.account.last.Hits.Minus(c.began.Hits).Cost
	most := max(1, load) * float64(change.Probes) * float64(probeCost)
	lost := load*float64(change.Took) - float64(hits)
	s.change = time.Duration(min(max(0, lost), most))
	s.budget.account(use{Probes: s.change})
	if s.turn(); c.wasOpen {
		s.outEach = change.Took / time.Duration(max(change.Probes, 1))
		hits := c.began.Hits.Minus(s.opening.Hits).Cost
		s.heldUp = max(s.heldUp, s.in+min(hits, c.began.At.Sub(s.opening.At))+change.Took)
	} else {
		s.in, s.standing, s.begun = change.Took, change.Probes, true
	}
}

// ChargeCold charges the budget with cold probes that have gone in, or come out: the process gets
// on meanwhile, slowly.
func (s *Scheduler) ChargeCold(change attach.Changes) {
	const pace = 0.5 // of a process that comes to none of them
	lost := min((1-pace)*float64(change.Took), float64(change.Probes)*float64(coldCost))
	s.budget.account(use{Probes: time.Duration(min(s.load, 1) * lost)})
}

// ChargeForks charges the budget with the CPU time of others that the process has forked, and that
// have copies of the probes of the window that is open: how much of it their hits have taken is not
// known.
func (s *Scheduler) ChargeForks(used time.Duration) { s.budget.owe(used) }

// MayChange reports whether the budget allows cold probes to go in, or to come out.
func (s *Scheduler) MayChange() bool { return !s.budget.overdrawn() }

// changing is how long the process is held up by the probes of a window that go in and come out.
func (s *Scheduler) changing() time.Duration {
	return s.in + time.Duration(s.standing)*s.outEach
}

// length is how long a window lasts: with what its probes take to go in and to come out it is not
// to hold the process up for longer than it may be.
func (s *Scheduler) length() time.Duration {
	return min(s.window, max(s.mostHeld-s.changing(), leastWindow))
}

// LoadBeforeOpening is the load of the process before a window opens.
func (s *Scheduler) LoadBeforeOpening() float64 {
	if s.begun && s.waking.tries == 0 { // the rest between two tries is too short to know
		s.load = s.rate()
	}
	return s.load
}

// LoadBeforeClosing is the load of the process in a window that closes: it may do less than it did
// before.
func (s *Scheduler) LoadBeforeClosing() float64 { return min(s.load, s.rate()) }

// HeldUp is how long a window has held the process up so far, at most: while its probes went in and
// out, and for what its hits took in between.
func (s *Scheduler) HeldUp() time.Duration { return s.heldUp }

// Load is the load of the process before the window that is open.
func (s *Scheduler) Load() float64 { return s.load }

// Open notes that a window is open.
func (s *Scheduler) Open() {
	s.opened, s.opening, s.barred = time.Now(), s.account.last, 0
}

// Close notes that the window is closed: its probes are out.
func (s *Scheduler) Close() { s.closed, s.opened = s.closed+1, time.Time{} }

// Settle notes that what the window that was closed last has reported has been read, and charged:
// which of its hits were single-stepped is known now. They took no more than the CPU time that was
// used while its probes stood.
func (s *Scheduler) Settle() {
	hits := s.account.apportion(s.opening, s.closing.began, s.out)
	used := s.out.Used.CPU - s.opening.Used.CPU
	if over := hits.Cost + hits.doubt - used; over > 0 {
		s.budget.account(use{Own: over, Probes: -over})
	}
	s.turn()
}

// longestPause is how long a signal may wait while no probe stands.
const longestPause = 50 * time.Millisecond

// Pause is how long nothing need be decided, of a recording that looks up every tick: a window
// lasts as long as it is to, and between them nothing is to be done before the debt can have been
// earned.
func (s *Scheduler) Pause(tick time.Duration) time.Duration {
	if s.waking.waits() {
		return s.waking.look
	}
	if s.IsOpen() {
		if left := time.Until(s.opened.Add(s.length())); left > 0 {
			return min(tick, left)
		}
		return min(tick, s.length())
	}
	if !s.begun {
		return 0
	}
	earned := s.budget.debt() / time.Duration(runtime.NumCPU())
	return min(max(earned, tick), longestPause)
}

// A Decision is what to do about windows.
type Decision int

// The decisions: Stay leaves probes as they are.
const (
	Stay Decision = iota
	OpenWindow
	CloseWindow
)

// Decide says whether a window is to be opened or closed now. sleeps reports whether the process
// sleeps, and may be called.
func (s *Scheduler) Decide(sleeps func() bool) Decision {
	switch {
	case s.IsOpen() && time.Since(s.opened) >= s.length() && (s.deeper() || s.holdsUp()):
		return CloseWindow
	case s.IsOpen():
	case s.budget.overdrawn() && s.begun: // the first window is not waited for
		s.waking.ready = time.Time{}
	case s.waking.isDue(sleeps):
		return OpenWindow
	}
	return Stay
}

// Outlasts reports whether a window is open and has gone on for longer than one that holds the
// process up: nothing about it is urgent.
func (s *Scheduler) Outlasts() bool {
	return s.IsOpen() && time.Since(s.opened) > 2*s.length() && !s.holdsUp()
}

// holdsUp reports whether the hits of the window that is open take more of the CPU time than all
// else: however much the budget has saved, the process is not to be held up for longer.
func (s *Scheduler) holdsUp() bool {
	last := &s.account.last
	return 2*last.Hits.Minus(s.opening.Hits).Cost > last.Used.Sub(s.opening.Used).CPU
}

// deeper reports whether the hits of the window that is open run into debt, or deeper into that
// which putting its probes in has left. While that is being paid off, taking them out would only
// cost more.
func (s *Scheduler) deeper() bool {
	slack := time.Duration(float64(s.length()) / s.budget.share / 4) // a burst of hits
	debt := s.budget.debt()
	s.owed = min(s.owed, debt) // the least debt since the window was opened
	return debt > 0 && (s.owed == 0 || debt > s.owed+slack)
}

// Begins decides whether the window whose probes stand begins, or is closed, for the process has
// gone to sleep meanwhile and to open another is cheap.
func (s *Scheduler) Begins(asleep bool) bool {
	return s.waking.begins(asleep, s.load, s.changing() <= s.length()/2)
}

// mostBarred is how often a window is tried in a row that somebody else's breakpoints keep from
// opening: those of one in windows of its own soon go.
const mostBarred = 500

// MayTryAgain reports whether a window may open later that somebody else's breakpoints have kept
// from opening now.
func (s *Scheduler) MayTryAgain() bool {
	s.barred++
	return s.barred < mostBarred
}

// DueControls lists the sites that are to be counted now, between windows, and for how long, if a
// hit costs so much then; none where that is not due, not needed, or not worth its cost.
func (s *Scheduler) DueControls(hit time.Duration) ([]int, time.Duration) {
	if s.controls == nil || !s.controls.isDue(time.Now()) || !s.account.notableHits() {
		return nil, 0
	}
	if s.closed > s.controls.chosen {
		s.controls.chosen = s.closed
		s.controls.choose()
	}
	return s.controls.due(s.account.all.hits.Cost, hit)
}

// NotCounted notes that sites could not be counted now.
func (s *Scheduler) NotCounted() { s.controls.postpone() }

// Counted notes what came of counting sites: so many hits of each, which have cost so much of the
// CPU time that the process used, by calibration, and for how long probes that went in and out for
// that have held it up. What was used up to now has been charged.
func (s *Scheduler) Counted(sites []int, hits []uint64, used, cost time.Duration,
	change attach.Changes) {
	s.ChargeCold(change)
	s.turn()
	lost := min(change.Took, 2*time.Duration(change.Probes)*coldCost) // some are hot
	s.controls.add(sites, hits, used, time.Duration(colderHit*float64(cost)), lost)
}
