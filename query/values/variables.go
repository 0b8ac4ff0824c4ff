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
	Instance  uint64
	TID       int
	wet.Place        // the instruction before which it has the value
	Addr      uint64 // of that, link-time
	Value     uint64 // see Asked.At
	Known     machine.Knowledge
}

// EachTaken gives each value that some variables take to found, in the order of execution, threads
// one after the other: the first in each activation of the variable's routine, and then each time
// that it changes, or is not known any more. What is not known for a while is known where it can
// only have been what it is next: see gap. Where debug information has a variable nowhere, it has
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
		if err := f.hide(s); err != nil {
			return err
		}
		for k := range segments {
			if err := segments[k].Replay(0, math.MaxUint64, f); err != nil {
				return err
			}
		}
		if err := f.end(); err != nil {
			return err
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
	symbol    uint64   // of the last instruction
	gaps      []*gap   // those that are open
	waiting   []*event // in their order: the first of them waits for the end of a gap
}

// A followedRoutine is a routine whose variables are followed, or none, for global ones.
type followedRoutine struct {
	asked       []*Asked
	hidden      []bool       // by variable: see Frame.Hides
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
	isTaken, isKnown bool // ever, and last
	value            uint64
	gap              *gap // nil: it is known, or has not been looked at
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

// hide finds the variables whose address no code takes.
func (f *followed) hide(s *wpp.Snapshot) error {
	code, err := wet.CodeOf(s)
	if err != nil {
		return err
	}
	f.global.hidden = make([]bool, len(f.global.asked))
	for routine, r := range f.routines {
		frame := FrameOf(code, routine)
		for _, a := range r.asked {
			r.hidden = append(r.hidden, frame.Hides(a))
		}
	}
	return nil
}

// Executed is for a replay: see wet.Observer.
func (f *followed) Executed(e *wet.Executed) error {
	for _, g := range f.gaps {
		g.executed(e)
	}
	return nil
}

// Before is for a replay: see wet.Watcher.
func (f *followed) Before(b *wet.Before) error {
	isLost := b.Lost || b.Symbol > f.symbol+1 // a mark is between
	f.symbol = b.Symbol
	for _, g := range f.gaps {
		g.before(b, isLost)
	}
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
		f.leave(&r.activations[n-1], true)
		r.activations = r.activations[:n-1]
	}
	if !b.Enters {
		return
	}
	f.instances[b.Routine]++
	if k == machine.Unknown { // nothing is known of the activations around it
		for i := range r.activations {
			f.leave(&r.activations[i], false)
		}
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
		now := Taken{asked, a.instance, f.tid, b.Place, b.Addr, value, k}
		switch {
		case k == machine.Unknown && last.gap != nil:
			last.gap.goOn(f, &now)
		case k == machine.Unknown && (last.isKnown || !last.isTaken):
			f.open(last, &now, b, a.entry, r.hidden[i])
		case k == machine.Unknown: // and it has been for too long
		case last.gap != nil:
			f.close(last, &now, b, a.entry)
		case !last.isKnown || last.value != value:
			f.add(&event{taken: now, isSettled: true})
			*last = lastValue{isTaken: true, isKnown: true, value: value}
		}
	}
	return f.give()
}
