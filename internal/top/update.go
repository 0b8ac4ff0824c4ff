package top

import (
	"time"

	"wpptrace/compress/wpp"
	"wpptrace/internal/record"
)

// An Opening is what is known of a recording before it begins.
type Opening struct {
	Process  string        // what the process is called
	Interval time.Duration // between two updates
	Budget   float64       // what tracing may take of the process's own CPU time; 0: no limit
	MaxStall time.Duration // that a window may hold the process up for
	Selected bool          // routines were selected by name
}

// An update is what the viewer is sent.
type update struct {
	Opening  *Opening // of the first one alone
	Status   status
	Messages []string // lines that were printed since the last update
	Snapshot *packed  // nil: that of the last update still holds
	Last     bool     // the recording is over
	Trouble  string   // why there is no snapshot; "": nothing is amiss
}

// A status is the figures of a recording.
type status struct {
	Began    bool
	Duration time.Duration
	Windows  uint64 // 0: all is traced
	Paths    uint64
	Lost     uint64        // events
	Overhead float64       // with a budget: what tracing has taken of the process's own CPU time
	HeldUp   time.Duration // with windows: the longest that one has held the process up, at most
	SlowDown string        // while all is traced: what is known of it
}

func statusOf(s record.Status) status {
	to := status{true, s.Duration, s.Windows, s.Paths, s.Lost, s.Overhead, s.HeldUp, ""}
	if s.SlowDownKnown {
		to.SlowDown = s.SlowDown.String()
	}
	return to
}

// end is the status of a recording that is over.
func (s *status) end(last *wpp.Snapshot) {
	f := &last.Figures
	s.Began, s.Duration, s.Lost, s.Paths = true, f.Duration, f.Lost, 0
	if s.Windows = f.Windows; s.Windows > 0 {
		s.Overhead = f.SlowDown - 1
	}
	for i := range last.Threads {
		s.Paths += last.Threads[i].Grammar.Length(0)
	}
}
