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

// Hits asks the kernel for the hits of a thread, those not reported yet included. It fails for a thread that is gone, or has made none, and before
// Linux 6.9 for all but a process's first thread. Cost: three system calls.
func (s *Session) Hits(tid int) (Hits, error) {
	flags := 0
	if tid != s.process.PID {
		flags = unix.PIDFD_THREAD
	}
	fd, err := unix.PidfdOpen(tid, flags)
	if err != nil {
		return Hits{}, fmt.Errorf("open thread %d: %w", tid, err)
	}
	defer unix.Close(fd)
	var t bpf.TracerThread
	if err := s.objects.Threads.Lookup(int32(fd), &t); err != nil {
		return Hits{}, fmt.Errorf("look up thread %d: %w", tid, err)
	}
	return Hits{Made: t.Batch.Hits, Repeating: t.Repeats, Site: wire.Word(t.Last).Site()}, nil
}
