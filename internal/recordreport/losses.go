package recordreport

import (
	"fmt"

	"wpptrace/internal/memory"
	"wpptrace/internal/record"
)

// notInMemory says where the events were lost that attach.Metrics.Dropped counts, and what to do.
const notInMemory = "where the kernel could not read what a jump of the program was about to " +
	"read, in a page that was not in memory (swapped out, or never touched before): record again, or " +
	"leave the routine out with -N"

// Losses says what was lost, where, and what to do, and whether something was, or may have been.
// ring is the size of the ring buffer; stops says that the process was to be stopped while that is
// full.
func Losses(l record.Losses, ring memory.Size, stops bool) (line string, lost bool) {
	if l.Err != nil {
		return fmt.Sprintf("lost: unknown (%v)", l.Err), true
	}
	m, events := &l.Metrics, l.Events
	switch {
	case events > 0:
		unknown := ""
		if m.LostByWhom > 0 {
			unknown = " or more, too many threads to know of each what it lost"
		}
		why, or := "", ", or --on-overflow stop"
		if stops {
			why, or = ", and the process was not to be stopped, somebody let it go on (a "+
				"debugger, strace, SIGCONT), or thousands of threads ended at once", ""
		}
		places := fmt.Sprintf("lost: %d events in %d places%s", events, l.Places, unknown)
		full := fmt.Sprintf("where the ring buffer was full%s: use a larger --ring-size than %v%s",
			why, ring, or)
		switch {
		case m.Dropped >= events:
			return fmt.Sprintf("%s, %s", places, notInMemory), true
		case m.Dropped > 0:
			return fmt.Sprintf("%s: %d %s; the others %s", places, m.Dropped, notInMemory,
				full), true
		}
		return fmt.Sprintf("%s, %s", places, full), true
	case m.NoStorage > 0:
		return fmt.Sprintf("lost: %d events for which the kernel had no memory", m.NoStorage), true
	}
	return "lost: 0 events", false
}
