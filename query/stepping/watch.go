package stepping

import (
	"math"
	"slices"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
)

// A Watch is some bytes of memory. Moves end at instructions that write there, and at those that
// find there what nobody has been seen to write: other threads, or code that is not traced, have.
type Watch struct {
	Addr uint64
	Size int
}

// A Write is an instruction that writes bytes that are watched.
type Write struct {
	Watch int  // index in Watches
	Found bool // it only reads there what others must have written
	insn  int
}

// writes are those of a segment.
type writes struct {
	segment int
	list    []Write
	unsure  []int // instructions that write, and it is not known where
}

// WritesHere are the writes of the instruction that comes next to what is watched.
func (x *State) WritesHere() (list []Write, err error) {
	defer wpp.Recover(&err)
	w, err := x.writesOf(x.at.Segment)
	if err != nil {
		return nil, err
	}
	return w.at(x.at.Insn), nil
}

// Unsure is how many instructions the last move has passed that write, and it is not known where,
// while anything was watched.
func (x *State) Unsure() int { return x.unsure }

// Behind is what is known behind the instruction that comes next.
func (x *State) Behind() (m *Moment, err error) {
	defer wpp.Recover(&err)
	now, err := x.step(x.at)
	if err != nil {
		return nil, err
	}
	b, err := x.segments.list[x.at.Segment].Before(uint64(x.at.Insn) + 1)
	if err != nil {
		return nil, err
	}
	behind := Position{x.at.Segment, x.at.Insn + 1}
	return x.moment(x.placeOf(now), behind, now.frame, b, b)
}

// SetWatches has moves end where some bytes are written.
func (x *State) SetWatches(list []Watch) {
	if !slices.Equal(x.watches, list) {
		x.watches, x.written = slices.Clone(list), [2]*writes{}
	}
}

func (w *writes) at(insn int) []Write {
	from, _ := slices.BinarySearchFunc(w.list, insn, func(a Write, n int) int { return a.insn - n })
	to := from
	for to < len(w.list) && w.list[to].insn == insn {
		to++
	}
	return w.list[from:to]
}

// isWritten reports whether the instruction at a position writes what is watched.
func (x *State) isWritten(at Position) (bool, error) {
	if len(x.watches) == 0 {
		return false, nil
	}
	w, err := x.writesOf(at.Segment)
	if err != nil {
		return false, err
	}
	if _, ok := slices.BinarySearch(w.unsure, at.Insn); ok {
		x.unsure++
	}
	return len(w.at(at.Insn)) > 0, nil
}

// writesOf are the writes of a segment to what is watched.
func (x *State) writesOf(segment int) (*writes, error) {
	for i, w := range x.written {
		if w != nil && w.segment == segment {
			x.written[0], x.written[i] = w, x.written[0]
			return w, nil
		}
	}
	w := &watching{watches: x.watches, held: make([][]byte, len(x.watches)),
		known: make([][]bool, len(x.watches))}
	w.into.segment = segment
	for i := range x.watches {
		w.held[i], w.known[i] = make([]byte, x.watches[i].Size), make([]bool, x.watches[i].Size)
	}
	if len(x.watches) > 0 {
		if err := x.segments.list[segment].Replay(0, math.MaxUint64, w); err != nil {
			return nil, err
		}
	}
	x.written[0], x.written[1] = &w.into, x.written[0]
	return &w.into, nil
}

// watching finds who writes, in a replay.
type watching struct {
	watches []Watch
	held    [][]byte // what was written or read there last
	known   [][]bool
	insn    int
	into    writes
}

// Executed is for the replay: see wet.Observer.
func (w *watching) Executed(e *wet.Executed) error {
	for i := range e.Accesses {
		a := &e.Accesses[i]
		if a.Write && (a.At == machine.Unknown || a.Size == 0) {
			w.into.unsure = append(w.into.unsure, w.insn)
		}
		if a.At == machine.Unknown {
			continue
		}
		for k := range w.watches {
			w.access(k, a)
		}
	}
	w.insn++
	return nil
}

// access takes an access to bytes some of which may be watched.
func (w *watching) access(watch int, a *machine.Access) {
	at, data := w.watches[watch], a.Data()
	touched, found := false, false
	for i := range at.Size {
		n := at.Addr + uint64(i) - a.Addr
		if n >= uint64(len(data)) {
			continue
		}
		held, known := &w.held[watch][i], &w.known[watch][i]
		touched = true
		found = found || a.Known != machine.Unknown && *known && *held != data[n]
		*held, *known = data[n], a.Known != machine.Unknown
	}
	if touched && (a.Write || found) {
		w.into.list = append(w.into.list, Write{watch, !a.Write, w.insn})
	}
}
