package overhead

import "time"

// A window is to begin while the process does something: begun while it sleeps, it would show what
// the process does when it wakes up, and nothing else. Of one that nearly always sleeps it begins
// all the same.
const (
	glance = 2 * time.Millisecond // how often it is looked whether the process still sleeps,
	// or so seldom that looking takes no more than this share of the time
	glanceShare  = 0.05
	longestSleep = time.Second
	mostTries    = 8
	leastLoad    = 0.1 // CPUs: of a process that uses less, another try would find it asleep, too
)

// A waking is the wait for a process to be awake when a window begins.
type waking struct {
	// since when the budget has allowed a window that is not open yet; zero: it is not waited for
	ready time.Time
	look  time.Duration // how long it is until it is looked whether the process still sleeps
	tries int           // how often the next window has been opened, and has not begun
	// windows that began while the process slept, or had just woken up for all that is known
	asleep uint64
}

// waits reports whether a window waits for the process to wake up.
func (w *waking) waits() bool { return !w.ready.IsZero() }

// isDue decides whether to open a window, of those that the budget allows, or to wait for the
// process to wake up, which takes longestSleep at most from the first call on.
func (w *waking) isDue(sleeps func() bool) bool {
	now := time.Now()
	if w.ready.IsZero() {
		w.ready = now
	}
	asleep := sleeps()
	w.look = max(glance, time.Duration(float64(time.Since(now))/glanceShare))
	if asleep && now.Sub(w.ready) < longestSleep {
		return false
	}
	w.ready = time.Time{}
	return true
}

// begins decides whether the window that has been opened begins, or is closed, for the process has
// gone to sleep meanwhile and another one is cheap: mostTries times at most. One that nearly always
// sleeps, and is seen awake, has as a rule woken up since the first of the probes stood.
func (w *waking) begins(asleep bool, load float64, isCheap bool) bool {
	if asleep && load >= leastLoad && w.tries < mostTries && isCheap {
		w.tries++
		return false
	}
	if w.tries = 0; asleep || load < leastLoad {
		w.asleep++
	}
	return true
}
