package values

import (
	"math"
	"slices"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/variables"
	"wpptrace/query"
)

// Taken is a value that a variable has taken.
type Taken struct {
	Asked *Asked
	// Instance is the number of the activation among those of the variable's routine in the
	// snapshot, from 1; 0: the variable is global, or the recording began amid the activation.
	Instance uint64
	TID      int
	Before   *wet.Before // the instruction before which it has the value
	Value    uint64      // see Asked.At
	Known    machine.Knowledge
}

// EachTaken gives each value that some variables take to found, in the order of execution, threads
// one after the other: the first in each activation of the variable's routine, and then each time
// that it changes, or is not known any more. Where debug information has a variable nowhere, it has
// no value; of one in memory that has not been given its first, it is what was there before. What
// is given is good until found returns, whose error ends it. A segment begins with nothing known of
// memory. It takes the time of a replay of all of these threads, and the memory that one segment
// has touched.
func EachTaken(s *wpp.Snapshot, list []*Asked, tids []int,
	found func(*Taken) error) (err error) {
	defer wpp.Recover(&err)
	if !Has(s) {
		return ErrNone
	}
	threads, err := query.Threads(s, tids)
	if err != nil {
		return err
	}
	instances := map[int]uint64{}
	for i := range s.Threads {
		if !slices.Contains(threads, &s.Threads[i]) {
			continue
		}
		segments, err := wet.Segments(s, i)
		if err != nil {
			return err
		}
		f := newFollowed(list, s.Threads[i].TID, instances, found)
		for k := range segments {
			if err := segments[k].Replay(0, math.MaxUint64, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// followed are variables of a thread that is replayed.
type followed struct {
	tid       int
	routines  map[int]*followedRoutine
	global    followedRoutine
	instances map[int]uint64 // activations so far, by routine
	found     func(*Taken) error
}

// A followedRoutine is a routine whose variables are followed, or none, for global ones.
type followedRoutine struct {
	asked       []*Asked
	activations []activation // the innermost last
}

// An activation is one of a routine, with what its variables were last.
type activation struct {
	stack    uint64 // pointer, where it began
	instance uint64
	entry    *Entry      // nil: it is not known when it began
	last     []lastValue // by variable
}

type lastValue struct {
	isTaken, isKnown bool
	value            uint64
}

func newFollowed(list []*Asked, tid int, instances map[int]uint64,
	found func(*Taken) error) *followed {
	f := &followed{tid: tid, routines: map[int]*followedRoutine{},
		instances: instances, found: found}
	for _, a := range list {
		r, v := &f.global, a.Variable
		if v.Routine != variables.Global {
			if f.routines[v.Routine] == nil {
				f.routines[v.Routine] = &followedRoutine{}
			}
			r = f.routines[v.Routine]
		}
		r.asked = append(r.asked, a)
	}
	f.global.begin(math.MaxUint64, 0, nil)
	for _, r := range f.routines {
		r.begin(math.MaxUint64, 0, nil)
	}
	return f
}

func (r *followedRoutine) begin(stack, instance uint64, entry *Entry) {
	r.activations = append(r.activations,
		activation{stack, instance, entry, make([]lastValue, len(r.asked))})
}

// Executed is for a replay: see wet.Observer.
func (f *followed) Executed(*wet.Executed) error { return nil }

// Before is for a replay: see wet.Watcher.
func (f *followed) Before(b *wet.Before) error {
	if r := f.routines[b.Routine]; r != nil {
		f.arrive(r, b)
		if err := f.look(r, b); err != nil {
			return err
		}
	}
	return f.look(&f.global, b)
}

// arrive finds the activation that runs: of those that have ended the stack pointer is where they
// began, or above.
func (f *followed) arrive(r *followedRoutine, b *wet.Before) {
	stack, k := b.General(machine.RSP)
	if k == machine.Unknown {
		stack = 0
	}
	has := func(a *activation) bool {
		return a.stack == math.MaxUint64 || stack < a.stack || stack == a.stack && !b.Enters
	}
	for n := len(r.activations); !has(&r.activations[n-1]); n = len(r.activations) {
		r.activations = r.activations[:n-1]
	}
	if !b.Enters {
		return
	}
	f.instances[b.Routine]++
	if k == machine.Unknown { // nothing is known of the activations around it
		r.activations, stack = r.activations[:0], math.MaxUint64
	}
	r.begin(stack, f.instances[b.Routine], EntryAt(b))
}

// look looks at the variables of the activation that runs.
func (f *followed) look(r *followedRoutine, b *wet.Before) error {
	a := &r.activations[len(r.activations)-1]
	for i, asked := range r.asked {
		value, k, has := asked.At(b.Addr, b, a.entry)
		if !has {
			continue
		}
		last := &a.last[i]
		now := lastValue{true, k != machine.Unknown, value}
		if *last == now {
			continue
		}
		*last = now
		if err := f.found(&Taken{asked, a.instance, f.tid, b, value, k}); err != nil {
			return err
		}
	}
	return nil
}
