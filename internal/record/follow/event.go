package follow

import (
	"time"

	"wpptrace/internal/record"
)

// An Event is something that happens while processes are recorded: one of the types below. Attached
// comes before any Began, as NotFollowed does. Of each process, Began comes before Recorded, and Of
// around them; Unrecorded comes instead. Progress comes until Ended; recordings that are over after
// that are Recorded all the same, or Failed.
type Event interface{ event() }

func (Attached) event()    {}
func (Began) event()       {}
func (NotFollowed) event() {}
func (Unrecorded) event()  {}
func (Of) event()          {}
func (Recorded) event()    {}
func (Failed) event()      {}
func (Ended) event()       {}
func (Progress) event()    {}

// Attached says that the probes stand in the first process, or that it is not to be recorded.
type Attached struct{}

// Began says that a process is recorded.
type Began struct {
	PID  int
	Name string
	Path string // where its snapshot goes
}

// NotFollowed says that the first process had started others before, which are not recorded.
type NotFollowed struct{ PIDs []int }

// Unrecorded says that a process runs untraced, and why. It comes once for each reason: Result
// counts the others.
type Unrecorded struct {
	PID  int
	Name string
	Err  error
}

// Of is an event of the recording of one of several processes. That debug information of a program
// is missing comes once, however many processes run it.
type Of struct {
	PID   int
	Name  string
	Event record.Event
}

// Recorded says that the recording of a process is over.
type Recorded struct {
	PID    int
	Name   string
	Result *record.Result // its snapshot need not have been written
}

// Failed says that something went wrong with the recording of a process, where another error is
// that of all: the first one.
type Failed struct{ Err error }

// Ended says why all recordings end.
type Ended struct{ Reason record.Reason }

// Progress comes several times a second.
type Progress struct {
	Duration   time.Duration
	Processes  int    // that are recorded now
	Recordings int    // that are over
	Lost       uint64 // events of those
}

// A Result is what has become of all recordings.
type Result struct {
	Recordings int
	Losses     record.Losses
	Unrecorded []Reason
	Missed     uint32 // processes that were not followed: there were too many at the same time
}

// A Reason is why some processes were not recorded.
type Reason struct {
	Err       error
	Processes int
}
