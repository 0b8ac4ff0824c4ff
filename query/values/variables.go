package values

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/variables"
	"wpptrace/query"
	"wpptrace/query/names"
)

// Taken is a value that a variable has taken.
type Taken struct {
	Variable *variables.Variable
	// Instance is the number of the activation among those of the variable's routine in the
	// snapshot, from 1; 0: the variable is global, or the recording began amid the activation.
	Instance uint64
	TID      int
	Before   *wet.Before // the instruction before which it has the value
	Value    uint64      // the bytes of the variable, zeroes above
	Known    machine.Knowledge
}

// VariablesNamed are the variables that a text stands for, NAME or ROUTINE.NAME: of one routine
// several may have a name, in different blocks of its source. It fails where there is none.
func VariablesNamed(s *wpp.Snapshot, text string) (list []*variables.Variable, err error) {
	if !Has(s) {
		return nil, ErrNone
	}
	all, err := variables.Of(s)
	if err != nil {
		return nil, err
	}
	pick := func(name string, of []int) {
		for i := range all {
			v := &all[i]
			if v.Name == name && (of == nil || slices.Contains(of, v.Routine)) {
				list = append(list, v)
			}
		}
	}
	if pick(text, nil); len(list) > 0 {
		return list, nil
	}
	if routine, name, ok := cutLast(text, '.'); ok {
		of, err := names.Of(s).Routines(routine)
		if err != nil {
			return nil, fmt.Errorf("find variable %s: %w", names.Printable(text), err)
		}
		pick(name, of)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("find variable %s: the snapshot has no place of one: it has numbers "+
			"and pointers of traced routines that were built with -g, and not optimized out", names.Printable(text))
	}
	return list, nil
}

// EachTaken gives each value that some variables take to found, in the order of execution, threads
// one after the other: the first in each activation of the variable's routine, and then each time
// that it changes, or is not known any more. Where debug information has a variable nowhere, it has
// no value; of one in memory that has not been given its first, it is what was there before. What
// is given is good until found returns, whose error ends it. A segment begins with nothing known of
// memory. It takes the time of a replay of all of these
// threads, and the memory that one segment has touched.
func EachTaken(s *wpp.Snapshot, list []*variables.Variable, tids []int,
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
	variables   []*variables.Variable
	activations []activation // the innermost last
}

// An activation is one of a routine, with what its variables were last.
type activation struct {
	stack    uint64 // pointer, where it began
	instance uint64
	last     []lastValue // by variable
}

type lastValue struct {
	isTaken, isKnown bool
	value            uint64
}

func newFollowed(list []*variables.Variable, tid int, instances map[int]uint64,
	found func(*Taken) error) *followed {
	f := &followed{tid: tid, routines: map[int]*followedRoutine{},
		instances: instances, found: found}
	for _, v := range list {
		r := &f.global
		if v.Routine != variables.Global {
			if f.routines[v.Routine] == nil {
				f.routines[v.Routine] = &followedRoutine{}
			}
			r = f.routines[v.Routine]
		}
		r.variables = append(r.variables, v)
	}
	f.global.begin(math.MaxUint64, 0)
	for _, r := range f.routines {
		r.begin(math.MaxUint64, 0)
	}
	return f
}

func (r *followedRoutine) begin(stack, instance uint64) {
	r.activations = append(r.activations,
		activation{stack, instance, make([]lastValue, len(r.variables))})
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
	r.begin(stack, f.instances[b.Routine])
}

// look looks at the variables of the activation that runs.
func (f *followed) look(r *followedRoutine, b *wet.Before) error {
	a := &r.activations[len(r.activations)-1]
	for i, v := range r.variables {
		value, k, has := ValueAt(v, b.Addr, b)
		if !has {
			continue
		}
		last := &a.last[i]
		now := lastValue{true, k != machine.Unknown, value}
		if *last == now {
			continue
		}
		*last = now
		err := f.found(&Taken{v, a.instance, f.tid, b, value, k})
		if err != nil {
			return err
		}
	}
	return nil
}

// A Moment is what registers and memory hold at some time: see wet.Before.
type Moment interface {
	General(n int) (uint64, machine.Knowledge)
	Vector(n int) (*[32]byte, *[32]machine.Knowledge)
	BiasOf(image int) uint64
	Read(addr uint64, to []byte) machine.Knowledge
}

// ValueAt is what a variable has before the instruction at a link-time address. has is false where
// it is nowhere there: code of which it is no variable, or that has optimized it out.
func ValueAt(v *variables.Variable, addr uint64, at Moment) (value uint64, k machine.Knowledge,
	has bool) {
	p := placeAt(v, addr)
	if p == nil {
		return 0, machine.Unknown, false
	}
	value, k = valueAt(v, p, at)
	return value, k, true
}

// placeAt is where a variable is before an instruction; nil: nowhere.
func placeAt(v *variables.Variable, addr uint64) *variables.Place {
	for i := range v.Places {
		if p := &v.Places[i]; p.Lo <= addr && addr < p.Hi {
			return p
		}
	}
	return nil
}

// valueAt is what a variable has that is at a place.
func valueAt(v *variables.Variable, p *variables.Place, b Moment) (uint64, machine.Knowledge) {
	var bytes [8]byte
	k := machine.Unknown
	switch base, known := baseOf(v, p, b); p.Where {
	case variables.Memory:
		if known != machine.Unknown {
			k = known & b.Read(base+uint64(p.Offset), bytes[:v.Size])
		}
	case variables.Register, variables.Number:
		k = known
		binary.LittleEndian.PutUint64(bytes[:], base+uint64(p.Offset))
	case variables.Vector:
		data, sure := b.Vector(int(p.Offset))
		copy(bytes[:], data[:v.Size])
		k = machine.Confirmed
		for _, x := range sure[:v.Size] {
			k &= x
		}
	}
	if k == machine.Unknown {
		return 0, k
	}
	clear(bytes[v.Size:])
	return binary.LittleEndian.Uint64(bytes[:]), k
}

func baseOf(v *variables.Variable, p *variables.Place, b Moment) (uint64, machine.Knowledge) {
	switch p.Base {
	case variables.NoBase:
		return 0, machine.Confirmed
	case variables.LoadBase:
		return b.BiasOf(v.Image), machine.Confirmed
	}
	return b.General(int(p.Base) - 1)
}
