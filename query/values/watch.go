package values

import (
	"errors"
	"fmt"
	"iter"
	"math"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/variables"
)

// A WatchQuery asks for the accesses to some bytes of memory.
type WatchQuery struct {
	Addr       uint64
	Size       int      // in bytes
	Variables  []*Asked // in their place: wherever they are in memory
	WritesOnly bool
	TID        int // of the thread; 0: all
}

// A Watched is an access to bytes that are watched.
type Watched struct {
	TID      int
	Executed *wet.Executed
	Access   *machine.Access
	Asked    *Asked // the variable; nil: bytes were asked for
	// the number of the activation that has the variable, among those of its routine in the
	// snapshot; 0: it is global, or the recording began amid the activation
	Instance uint64
}

// Missed counts what Watch does not know.
type Missed struct {
	Unknown int // accesses of which it is not known where they were
	// whether a variable was anywhere in memory at all: else there is nothing to watch
	WasInMemory bool
}

// Watch yields the accesses to some bytes, one thread after the other, each in order. A local
// variable is watched from where debug information has it in memory until its activation ends, in
// its own thread; a global one always. What it yields is good until the next; an error is the last.
// missed is right once all were yielded. It fails with ErrNone where there are no values, and
// panics as Instructions does.
func Watch(s *wpp.Snapshot, q WatchQuery, missed *Missed) iter.Seq2[Watched, error] {
	return func(yield func(Watched, error) bool) {
		if err := watch(s, q, missed, yield); err != nil && !errors.Is(err, errEnough) {
			yield(Watched{}, err)
		}
	}
}

func watch(s *wpp.Snapshot, q WatchQuery, missed *Missed,
	yield func(Watched, error) bool) error {
	if !Has(s) {
		return ErrNone
	}
	found := false
	instances := map[int]uint64{}
	for i := range s.Threads {
		if q.TID != 0 && s.Threads[i].TID != q.TID {
			continue
		}
		found = true
		segments, err := wet.Segments(s, i)
		if err != nil {
			return err
		}
		w := &watching{tid: s.Threads[i].TID, query: &q, missed: missed, yield: yield}
		var o wet.Observer = w
		if len(q.Variables) > 0 {
			o = newLocating(w, instances)
		} else {
			w.places = []watchedPlace{{addr: q.Addr, size: uint64(q.Size)}}
		}
		for k := range segments {
			if err := segments[k].Replay(0, math.MaxUint64, o); err != nil {
				return err
			}
		}
	}
	if !found {
		return fmt.Errorf("watch: the snapshot has no thread %d", q.TID)
	}
	return nil
}

// A watchedPlace is bytes that are watched; of none, while they are nowhere.
type watchedPlace struct {
	addr, size uint64
	asked      *Asked
	instance   uint64
}

// watching looks at the accesses of a thread.
type watching struct {
	tid    int
	query  *WatchQuery
	missed *Missed
	places []watchedPlace
	yield  func(Watched, error) bool
}

// Executed is for a replay: see wet.Observer.
func (w *watching) Executed(e *wet.Executed) error {
	for j := range e.Accesses {
		a := &e.Accesses[j]
		if w.query.WritesOnly && !a.Write {
			continue
		}
		if a.At == machine.Unknown {
			w.missed.Unknown++
			continue
		}
		for i := range w.places {
			p := &w.places[i]
			if a.Addr < p.addr+p.size && p.addr < a.Addr+uint64(max(a.Size, 1)) &&
				!w.yield(Watched{w.tid, e, a, p.asked, p.instance}, nil) {
				return errEnough
			}
		}
	}
	return nil
}

// locating finds where variables are, for watching. It is a wet.Watcher.
type locating struct {
	*watching
	instances   map[int]uint64 // activations so far, by routine
	global      []*Asked
	local       map[int][]*Asked // by routine
	activations []located        // the innermost last
}

// located is an activation of a routine with variables that are watched.
type located struct {
	routine int
	// pointer, where it began; 2^64-1: not known, and it is over when another one runs
	stack    uint64
	instance uint64
	entry    *Entry
	first    int // index in watching.places, of the first variable's
}

func newLocating(w *watching, instances map[int]uint64) *locating {
	x := &locating{watching: w, instances: instances, local: map[int][]*Asked{}}
	for _, a := range w.query.Variables {
		if r := a.Variable.Routine; r != variables.Global {
			x.local[r] = append(x.local[r], a)
			continue
		}
		x.global = append(x.global, a)
		x.places = append(x.places, watchedPlace{asked: a})
	}
	return x
}

// Before is for a replay: see wet.Watcher.
func (x *locating) Before(b *wet.Before) error {
	for i, a := range x.global {
		if p := &x.places[i]; p.size == 0 || len(a.offsets) > 1 {
			x.place(p, b, nil)
		}
	}
	if n := len(x.activations); n > 0 && x.activations[n-1].stack == math.MaxUint64 &&
		(b.Enters || x.activations[n-1].routine != b.Routine) {
		x.end(n - 1)
	}
	stack, k := b.General(machine.RSP)
	if k != machine.Unknown {
		for n := len(x.activations); n > 0 && x.activations[n-1].stack < stack; n-- {
			x.end(n - 1)
		}
	}
	list := x.local[b.Routine]
	if list == nil {
		return nil
	}
	if b.Enters {
		x.instances[b.Routine]++
	}
	n := len(x.activations)
	switch {
	case b.Enters:
		if k == machine.Unknown {
			x.end(0) // nothing is known of them
			stack = math.MaxUint64
		}
		x.begin(located{b.Routine, stack, x.instances[b.Routine], EntryAt(b), 0}, list)
	default:
		for n > 0 && x.activations[n-1].routine != b.Routine {
			n--
		}
		switch {
		case n > 0:
			x.end(n)
		case k == machine.Unknown:
			return nil
		default: // the recording began amid it
			x.begin(located{routine: b.Routine, stack: stack}, list)
		}
	}
	now := &x.activations[len(x.activations)-1]
	for i := range list {
		x.place(&x.places[now.first+i], b, now.entry)
	}
	return nil
}

func (x *locating) begin(a located, list []*Asked) {
	a.first = len(x.places)
	x.activations = append(x.activations, a)
	for _, asked := range list {
		x.places = append(x.places, watchedPlace{asked: asked, instance: a.instance})
	}
}

// end ends the activations from one on.
func (x *locating) end(n int) {
	if n < len(x.activations) {
		x.places = x.places[:x.activations[n].first]
		x.activations = x.activations[:n]
	}
}

// place finds where a variable is before an instruction. Where that is not known, it is where it
// was: else an access that it is computed for would be missed.
func (x *locating) place(p *watchedPlace, b *wet.Before, entry *Entry) {
	if !p.asked.Has(b.Addr) {
		return
	}
	addr, size, k := p.asked.Address(b.Addr, b, entry)
	if k != machine.Unknown && size > 0 {
		p.addr, p.size = addr, uint64(size)
		x.missed.WasInMemory = true
	}
}
