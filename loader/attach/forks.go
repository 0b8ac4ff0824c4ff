package attach

import (
	"errors"
	"fmt"
)

// Forks are the processes that a session's one has started since Attach. None of them is traced.
// They are used by one goroutine at a time, that of the session.
type Forks struct{ session *Session }

// Forks returns the processes that the session's one starts.
func (s *Session) Forks() Forks { return Forks{s} }

// A ForkCount is how many there are.
type ForkCount struct {
	Started uint32 // all
	// Copies are those whose memory is a copy, with the probes that stood, as that of fork is, not
	// of vfork or posix_spawn.
	Copies uint32
}

// Count counts them. Cost: some us.
func (f Forks) Count() (n ForkCount) {
	_ = f.session.objects.Forked.Get(&n.Started) // a variable of a loaded program can be read
	_ = f.session.objects.Copied.Get(&n.Copies)
	return n
}

// ErrCopiesStay says that copies of probes cannot be taken out, so that they stay in for as long as
// the probes of which they are copies.
var ErrCopiesStay = errors.New("the copies of probes stay in")

// ErrProbesAstray says that probes may have gone out of the process itself. Nothing is reported any
// more.
var ErrProbesAstray = errors.New("its first thread ended while copies of probes were taken out, " +
	"of which the kernel takes it for one then")

// ClearCopies takes the copies of probes out of the processes that have them: of at most so many
// probes, from the first-th on that stands. It returns of how many; fewer than most, if there are
// no more. The kernel does that, whatever these processes do meanwhile: where a second user of a
// probe goes, it looks in whose memory anybody wants one. It knows the process by the memory of its
// first thread, so that what shares that memory keeps its probes, and a process whose first thread
// has ended is refused.
//
// errors.Is says ErrCopiesStay where nothing was done, ErrProbesAstray where the recording is to
// end. Cost: that of putting these probes in and of taking them out again, some 100 us a probe and
// 30 ms, most of which is the kernel's waiting. Meanwhile no process of the machine forks but
// between two probes.
func (f Forks) ClearCopies(first, most int) (n int, err error) {
	s := f.session
	if err := f.mayClear(); err != nil {
		return 0, fmt.Errorf("process %d (%s) has been forked: %w: %w", s.process.PID,
			s.process.Name, ErrCopiesStay, err)
	}
	err = s.objects.Clearing.Set(uint32(1))
	if err == nil && !f.headless() {
		n, err = s.images.clearCopies(s.guard, first, most)
	}
	if f.headless() {
		err = ErrProbesAstray
	}
	if err = errors.Join(err, s.objects.Clearing.Set(uint32(0))); err != nil {
		return 0, fmt.Errorf("take the copies of probes out of what process %d (%s) has forked: "+
			"%w", s.process.PID, s.process.Name, err)
	}
	return n, nil
}

// mayClear says why no copies can be taken out.
func (f Forks) mayClear() error {
	s := f.session
	if err := s.images.mechanism.SupportsClearing(); err != nil {
		return err
	}
	if f.headless() {
		return errors.New("its first thread has ended")
	}
	var early uint32
	if err := s.objects.EndsEarly.Get(&early); err != nil || early != 0 {
		return err
	}
	threads, err := s.process.Threads()
	if err == nil && len(threads) > 1 {
		err = errors.New("it has several threads, of which the first may end: it takes Linux " +
			"6.16 to see that in time")
	}
	return err
}

// headless reports whether the process's first thread has ended, and others have not.
func (f Forks) headless() bool {
	var v uint32
	return f.session.objects.Headless.Get(&v) == nil && v != 0
}
