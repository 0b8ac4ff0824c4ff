package values

import (
	"errors"
	"math"

	"wpptrace/compress/wet"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/faults"
)

// FaultOf is the instruction that a thread, an index in s.Threads, faulted at, which ended the
// process; nil: there is none. It began, and did not come to its end: see wet.Segment.Begun. It
// takes the time of a replay of the thread's last segment.
func FaultOf(s *wpp.Snapshot, thread int) (e *wet.Executed, err error) {
	defer wpp.Recover(&err)
	list, err := faults.Of(s)
	if err != nil {
		return nil, err
	}
	for _, f := range list {
		if f.Thread != thread {
			continue
		}
		segments, err := wet.Segments(s, thread)
		if err != nil || len(segments) == 0 {
			return nil, err
		}
		return segments[len(segments)-1].Begun(f.Routine, f.Addr)
	}
	return nil, nil
}

// lastOf is what one of some threads did last: a fault, in the first that has one, or else what the
// first of them that has values executed.
func lastOf(s *wpp.Snapshot, threads []int) (e *wet.Executed, isFault bool, thread int, err error) {
	for _, thread := range threads {
		if e, err := FaultOf(s, thread); e != nil || err != nil {
			return e, true, thread, err
		}
	}
	for _, thread := range threads {
		segments, err := wet.Segments(s, thread)
		for i := len(segments) - 1; i >= 0 && err == nil && e == nil; i-- {
			last := latest{}
			if err = segments[i].Replay(0, math.MaxUint64, &last); last.has {
				e = &last.last
			}
		}
		if e != nil || err != nil {
			return e, false, thread, err
		}
	}
	return nil, false, 0, errors.New("find end: no instruction was executed of which values were " +
		"recorded")
}

// latest keeps what it was told last.
type latest struct {
	last wet.Executed
	has  bool
}

// Executed is for who replays: see wet.Observer.
func (x *latest) Executed(e *wet.Executed) error {
	written, accesses := append(x.last.Written[:0], e.Written...), x.last.Accesses[:0]
	for i := range e.Accesses {
		accesses = append(accesses, e.Accesses[i].Clone())
	}
	x.last, x.has = *e, true
	x.last.Written, x.last.Accesses = written, accesses
	return nil
}
