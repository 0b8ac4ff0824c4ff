package values

import (
	"errors"
	"fmt"
	"math"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
)

// ErrNone is the error of a snapshot that has paths alone.
var ErrNone = errors.New("it has no values: wpptrace values -F ROUTINES -- COMMAND, or -p PID, " +
	"records them")

// ErrNothingRan is the error of a thread, or of a snapshot, of which there might be values.
var ErrNothingRan = errors.New("none of the traced routines ran")

// Known counts executed instructions by the least sure of what they wrote and accessed.
type Known struct {
	Instructions, Confirmed, Unconfirmed, Unknown uint64
	// Causes counts those of Unknown by cause.
	Causes [Causes]uint64
	// Places counts them by instruction and cause.
	Places map[Place]uint64
	// NotEmulated counts those that are not emulated: all that they write is unknown.
	NotEmulated map[machine.Cause]uint64
}

// An Instruction is a place in the code.
type Instruction struct {
	Routine int    // index in Snapshot.Routines
	Addr    uint64 // link-time
}

// A Place is an instruction of which something is not known, for a cause.
type Place struct {
	Instruction
	Cause
}

// Count replays all threads and counts. It fails with ErrNone where there are no values.
func Count(s *wpp.Snapshot) (k *Known, err error) {
	defer wpp.Recover(&err)
	if !Has(s) {
		return nil, ErrNone
	}
	k = newKnown()
	for i := range s.Threads {
		segments, err := wet.Segments(s, i)
		if err != nil {
			return nil, err
		}
		c := counting{k, newCauses()}
		for j := range segments {
			if err := segments[j].Replay(0, math.MaxUint64, c); err != nil {
				return nil, fmt.Errorf("replay thread %d: %w", s.Threads[i].TID, err)
			}
		}
	}
	return k, nil
}

func newKnown() *Known {
	return &Known{Places: map[Place]uint64{}, NotEmulated: map[machine.Cause]uint64{}}
}

// A counting counts the executed instructions of a thread: see wet.Watcher.
type counting struct {
	known  *Known
	causes *causes
}

func (c counting) Before(b *wet.Before) error {
	c.causes.before(b)
	return nil
}

func (c counting) Executed(e *wet.Executed) error {
	c.known.add(e, c.causes.executed(e))
	return nil
}

// Has reports whether a snapshot has values.
func Has(s *wpp.Snapshot) bool {
	for range s.SectionsOf(wet.CodeKind) {
		return true
	}
	return false
}

// add counts an executed instruction; cause is why something of it is not known, if that is so.
func (k *Known) add(e *wet.Executed, cause Cause) {
	k.Instructions++
	if e.Code.Op == machine.Opaque {
		k.NotEmulated[e.Code.Cause]++
	}
	least := machine.Confirmed
	for i := range e.Accesses {
		least &= e.Accesses[i].At & e.Accesses[i].Known
	}
	for _, r := range e.Written {
		least &= r.Known
	}
	switch least {
	case machine.Confirmed:
		k.Confirmed++
	case machine.Unconfirmed:
		k.Unconfirmed++
	default:
		k.Unknown++
		if cause == noCause {
			cause = Unread
		}
		k.Causes[cause]++
		k.Places[Place{Instruction{e.Routine, e.Addr}, cause}]++
	}
}
