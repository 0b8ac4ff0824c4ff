package values

import (
	"errors"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
)

// ErrNone is the error of a snapshot that has paths alone.
var ErrNone = errors.New("it has no values: wpptrace values records them")

// Known counts executed instructions by the least sure of what they wrote and accessed.
type Known struct {
	Instructions, Confirmed, Unconfirmed, Unknown uint64
	// Of Unknown, by the first of these that is true: where memory is accessed is not known; what
	// is read there is not; what is written to a register or to memory is not.
	Address, Memory, Result uint64
	// Places has the instructions of which something is unknown.
	Places map[Instruction]uint64
	// NotEmulated counts those that are not emulated: all that they write is unknown.
	NotEmulated map[machine.Cause]uint64
}

// An Instruction is a place in the code.
type Instruction struct {
	Routine int    // index in Snapshot.Routines
	Addr    uint64 // link-time
}

// Count replays all threads and counts. It fails with ErrNone where there are no values.
func Count(s *wpp.Snapshot) (k *Known, err error) {
	defer wpp.Recover(&err)
	if !Has(s) {
		return nil, ErrNone
	}
	k = newKnown()
	for i := range s.Threads {
		for e, err := range Instructions(s, i) {
			if err != nil {
				return nil, err
			}
			k.add(e)
		}
	}
	return k, nil
}

func newKnown() *Known {
	return &Known{Places: map[Instruction]uint64{}, NotEmulated: map[machine.Cause]uint64{}}
}

// Has reports whether a snapshot has values.
func Has(s *wpp.Snapshot) bool {
	for range s.SectionsOf(wet.CodeKind) {
		return true
	}
	return false
}

func (k *Known) add(e *wet.Executed) {
	k.Instructions++
	if e.Code.Op == machine.Opaque {
		k.NotEmulated[e.Code.Cause]++
	}
	least, address, memory := machine.Confirmed, true, true
	for i := range e.Accesses {
		a := &e.Accesses[i]
		address = address && a.At != machine.Unknown
		memory = memory && (a.Write || a.Known != machine.Unknown)
		least &= a.At & a.Known
	}
	for _, r := range e.Written {
		least &= r.Known
	}
	switch least {
	case machine.Confirmed:
		k.Confirmed++
		return
	case machine.Unconfirmed:
		k.Unconfirmed++
		return
	}
	k.Unknown++
	k.Places[Instruction{e.Routine, e.Addr}]++
	switch {
	case !address:
		k.Address++
	case !memory:
		k.Memory++
	default:
		k.Result++
	}
}
