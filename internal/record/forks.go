package record

import (
	"errors"
	"time"

	"wpptrace/internal/record/overhead"
	"wpptrace/internal/remedy"
	"wpptrace/loader/attach"
)

const (
	// longWindow is how long a window has been open that the budget will hardly close soon: copies
	// of what is in for a moment only go out of others with the probes themselves.
	longWindow = time.Second
	// clearedAtOnce is of how many probes copies go out at once: nothing is read of the process
	// meanwhile, and it forks between two of them.
	clearedAtOnce = 100
	// Then nothing goes out for as long as that took; when copies of all probes are out, for that
	// many times as long as all of that took, so that of a process that forks all the time they go
	// out for a twentieth of the time.
	restBetween = 1
	restBehind  = 19
)

// forks are the processes that one has started; nil: they are looked after elsewhere. None of them
// is recorded; copies of its probes go out of those that have some.
type forks struct {
	session *attach.Session
	windows *windows
	handle  func(Event)
	why     error // that copies stay in; nil: they go out

	noted    bool                  // that there are some
	clearing uint32                // had copies when those began to go out that go out now
	cleaned  map[int]time.Duration // these, as far as they live, with what they used
	done     int                   // probes whose copies are out of these
	took     time.Duration         // and what that took
	cleared  uint32                // had copies, all of which are out
	looked   time.Time             // before those began to have some that have some yet
	since    time.Time             // that some have some, since some time after; zero: none has
	next     time.Time             // not before then
	longest  time.Duration         // that one had copies, at most
	paying   overhead.Payers
	closed   uint64 // windows, when it was looked last who pays
}

// errNoPower says that the guard has given up what it takes to put probes anywhere.
var errNoPower = errors.New("probes that stand all the time are put in once, and nothing is kept " +
	"that could put in more")

// newForks begins to look after them. mayProbe says that the guard can still put probes in.
func newForks(s *attach.Session, w *windows, mayProbe bool, handle func(Event)) *forks {
	f := &forks{session: s, windows: w, handle: handle, looked: time.Now()}
	f.paying.Exempt(f.now())
	if !mayProbe {
		f.why = remedy.Errorf(remedy.Windows, "%w", errNoPower)
	}
	return f
}

// now is what those that there are have used; nothing where there is no budget that it would be
// charged to.
func (f *forks) now() map[int]time.Duration {
	if f.windows == nil {
		return nil
	}
	return f.windows.threads.process.ForkTimes()
}

// charge charges the budget with what those use that have copies of probes. A window that is over
// has taken the copies of its probes along.
func (f *forks) charge() {
	if f.windows == nil {
		return
	}
	schedule := f.windows.schedule
	if n := schedule.Closed(); n != f.closed {
		f.closed = n
		f.paying.Exempt(f.now())
	} else if schedule.IsOpen() {
		schedule.ChargeForks(f.paying.More(f.now()))
	}
}

// keep takes copies of probes out of processes that have been forked since the last time. Where
// that cannot be it says so, once.
func (f *forks) keep() error {
	if f == nil {
		return nil
	}
	now, at := f.session.Forks().Count(), time.Now()
	f.note(now)
	if now.Copies == f.cleared {
		f.looked = at
		return nil
	}
	if f.charge(); f.since.IsZero() {
		f.since = f.looked
		if f.why != nil {
			f.handle(CopiesStay{f.why})
		}
	}
	if f.why != nil || at.Before(f.next) || f.windows.isOpenSince(at.Add(-longWindow)) {
		return nil
	}
	if f.done == 0 {
		f.clearing, f.looked = now.Copies, at
		f.cleaned = f.now()
	}
	n, err := f.session.Forks().ClearCopies(f.done, clearedAtOnce)
	if errors.Is(err, attach.ErrCopiesStay) {
		f.why = err
		f.handle(CopiesStay{err})
		return nil
	}
	if err != nil {
		return err
	}
	f.clearedSome(n, at, time.Now())
	return nil
}

// clearedSome notes that copies of n probes more are out, which took from then to now.
func (f *forks) clearedSome(n int, then, now time.Time) {
	f.done, f.took = f.done+n, f.took+now.Sub(then)
	if f.next = now.Add(restBetween * now.Sub(then)); n == clearedAtOnce {
		return
	}
	f.longest = max(f.longest, now.Sub(f.since))
	f.next = now.Add(restBehind * f.took)
	f.cleared, f.since = f.clearing, time.Time{}
	f.paying.Exempt(f.cleaned)
	f.done, f.took = 0, 0
}

func (f *forks) note(now attach.ForkCount) {
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
	now := f.session.Forks().Count()
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
