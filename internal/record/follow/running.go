package follow

import (
	"context"

	"wpptrace/internal/record"
)

// A recording is that of one program in one process.
type recording struct {
	recorder *record.Recorder
	snapshot chan struct{} // asks for one
}

// An ending is what has become of a recording.
type ending struct {
	recording *recording
	result    *record.Result
	err       error // beside a result that was written, it is of something else
}

// running are the recordings that have not ended: they record, or write.
type running struct {
	all   map[*recording]bool
	byPID map[int]*recording
	over  chan ending
	ctx   context.Context // done: all are to end
	end   context.CancelCauseFunc
}

func newRunning(most int) *running {
	ctx, end := context.WithCancelCause(context.Background())
	return &running{all: map[*recording]bool{}, byPID: map[int]*recording{},
		over: make(chan ending, most+1), ctx: ctx, end: end}
}

func (s *running) count() int { return len(s.all) }

// start has a recording run on a goroutine of its own.
func (s *running) start(one *recording) {
	s.all[one], s.byPID[one.recorder.Process().PID] = true, one
	go func() {
		result, err := one.recorder.Record(s.ctx)
		s.over <- ending{one, result, err}
	}()
}

// remove takes a recording out that has ended.
func (s *running) remove(one *recording) {
	delete(s.all, one)
	if pid := one.recorder.Process().PID; s.byPID[pid] == one {
		delete(s.byPID, pid)
	}
}

// busy counts the recordings that record: the others write.
func (s *running) busy() (n int) {
	for one := range s.all {
		select {
		case <-one.recorder.Out():
		default:
			n++
		}
	}
	return n
}

// requestSnapshots asks all for a snapshot.
func (s *running) requestSnapshots() {
	for one := range s.all {
		select {
		case one.snapshot <- struct{}{}:
		default: // one is asked for already
		}
	}
}

// recorders are those of all.
func (s *running) recorders() map[*record.Recorder]bool {
	list := map[*record.Recorder]bool{}
	for one := range s.all {
		list[one.recorder] = true
	}
	return list
}
