package record

import (
	"errors"
	"time"

	"wpptrace/internal/remedy"
	"wpptrace/loader/attach"
)

const (
	// forksPatience is how long a window that is open may go on until copies of its probes go out
	// of others: most windows are over before, and what goes out of the process goes out of these.
	forksPatience = 100 * time.Millisecond
	// forksRest is how long nothing is taken out of others, in times of what that took the last
	// time: a process that forks all the time is held up a twentieth of its time at most.
	forksRest = 19
)

// forks are the processes that one has started; nil: they are looked after elsewhere. None of them
// is recorded; copies of its probes go out of those that have some.
type forks struct {
	session *attach.Session
	windows *windows
	handle  func(Event)
	why     error // that copies stay in; nil: they go out

	noted   bool          // that there are some
	cleared uint32        // had copies, which are out
	looked  time.Time     // the last time, when all were out
	since   time.Time     // that some have some, since some time after; zero: none has
	next    time.Time     // not before then
	longest time.Duration // that one had copies, at most
}

// errNoPower says that the guard has given up what it takes to put probes anywhere.
var errNoPower = errors.New("probes that stand all the time are put in once, and nothing is kept " +
	"that could put in more")

// newForks begins to look after them. mayProbe says that the guard can still put probes in.
func newForks(s *attach.Session, w *windows, mayProbe bool, handle func(Event)) *forks {
	f := &forks{session: s, windows: w, handle: handle, looked: time.Now()}
	if !mayProbe {
		f.why = remedy.Errorf(remedy.Windows, "%w", errNoPower)
	}
	return f
}

// keep takes copies of probes out of processes that have been forked since the last time. Where
// that cannot be it says so, once.
func (f *forks) keep() error {
	if f == nil {
		return nil
	}
	now, at := f.session.Forks(), time.Now()
	f.note(now)
	switch {
	case now.Copies == f.cleared:
		f.looked = at
		return nil
	case f.since.IsZero():
		f.since = f.looked
		if f.why != nil {
			f.handle(CopiesStay{f.why})
		}
	}
	if f.why != nil || at.Before(f.next) || f.windows.isOpenSince(at.Add(-forksPatience)) {
		return nil
	}
	err := f.session.ClearCopies()
	if errors.Is(err, attach.ErrCopiesStay) {
		f.why = err
		f.handle(CopiesStay{err})
		return nil
	}
	if err != nil {
		return err
	}
	end := time.Now()
	f.longest = max(f.longest, end.Sub(f.since))
	f.cleared, f.looked, f.since = now.Copies, at, time.Time{}
	f.next = end.Add(forksRest * end.Sub(at))
	return nil
}

func (f *forks) note(now attach.Forks) {
	if !f.noted && now.Started > 0 {
		f.noted = true
		f.handle(Forked{})
	}
}

// end says how many there were, when the probes are out, and so are all copies.
func (f *forks) end() {
	if f == nil {
		return
	}
	now := f.session.Forks()
	f.note(now)
	if f.since.IsZero() {
		f.since = f.looked
	}
	if now.Copies != f.cleared {
		f.longest = max(f.longest, time.Since(f.since))
	}
	if now.Started > 0 {
		f.handle(ForksCounted{Started: int(now.Started), Copies: int(now.Copies),
			Longest: f.longest})
	}
}
