package attach

import (
	"fmt"

	"golang.org/x/sys/unix"

	"wpptrace/bpf"
	"wpptrace/bpf/wire"
)

// Hits are those that a thread has made.
type Hits struct {
	Made      uint64 // since Enable
	Repeating uint64 // of them, those of the site that was hit last, in a row and not reported yet
	Site      int    // the index in the plan of that site; means nothing if Repeating is 0
}

// Hits asks the kernel for the hits of a thread, those not reported yet included. It fails for a
// thread that has made none, for some that are gone, and before Linux 6.9 for some where threads
// are many. Cost: a system call, or four for a thread that has no slot.
func (s *Session) Hits(tid int) (Hits, error) {
	t, err := s.thread(tid)
	if err != nil {
		return Hits{}, err
	}
	return Hits{Made: t.Batch.Hits, Repeating: t.Repeats, Site: wire.Event(t.Last).Site()}, nil
}

// thread reads what the BPF program remembers of a thread: in its slot or, if another has that, in
// its task storage.
func (s *Session) thread(tid int) (t bpf.TracerThread, err error) {
	if err := s.objects.Slots.Lookup(uint32(tid)%s.objects.Slots.MaxEntries(), &t); err == nil && t.Batch.Tid == uint32(tid) {
		return t, nil
	}
	flags := 0
	if tid != s.process.PID {
		flags = unix.PIDFD_THREAD
	}
	fd, err := unix.PidfdOpen(tid, flags)
	if err != nil {
		return t, fmt.Errorf("open thread %d: %w", tid, err)
	}
	defer unix.Close(fd)
	if err := s.objects.Threads.Lookup(int32(fd), &t); err != nil {
		return t, fmt.Errorf("look up thread %d: %w", tid, err)
	}
	return t, nil
}
