package slice

import (
	"fmt"

	"wpptrace/compress/wet"
	"wpptrace/compress/wpp"
	"wpptrace/query/values"
)

// DefaultMost is how many instructions a slice looks at, unless a query says otherwise: 2 GB.
const DefaultMost = 50_000_000

// A window is the segments of a thread's values that a slice is found in: all, unless these have
// too many instructions.
type window struct {
	segments []wet.Segment
	// positions in the thread's stream between which they are, where that is not all of it
	from, to *uint64
}

// windowOf is the segments around an execution that have so many instructions at most: for what it
// depends on those before it, else those behind it. Of those that have the execution, two are
// looked at whatever they have, and it fails where there are more that are too long.
func windowOf(s *wpp.Snapshot, q *Query, x *values.Execution) (w window, err error) {
	all, err := wet.Segments(s, x.Thread)
	if err != nil || len(all) == 0 {
		return w, err
	}
	most := q.Most
	if most == 0 {
		most = DefaultMost
	}
	lengths := make(map[uint32]uint64)
	counts := make([]uint64, len(all))
	total := uint64(0)
	for i := range all {
		for _, r := range all[i].Ran() {
			counts[i] += r.Times * lengthOf(s, lengths, r.Symbol)
		}
		total += counts[i]
	}
	if total <= most {
		return window{segments: all}, nil
	}
	first, last := 0, len(all)-1
	if len(x.Ran) > 0 {
		first, last = segmentOf(all, x.Ran[0].At), segmentOf(all, x.Ran[len(x.Ran)-1].At)
	}
	if x.Fault != nil {
		last = len(all) - 1
	}
	from, to := first, last+1
	sum := uint64(0)
	for i := from; i < to; i++ {
		sum += counts[i]
	}
	for ; !q.Forward && from > 0 && sum+counts[from-1] <= most; from-- {
		sum += counts[from-1]
	}
	for ; q.Forward && to < len(all) && sum+counts[to] <= most; to++ {
		sum += counts[to]
	}
	w.segments = all[from:to]
	if from > 0 && !q.Forward {
		w.from = new(all[from].First())
	}
	if to < len(all) && q.Forward {
		w.to = new(all[to].First())
	}
	if sum > most && len(w.segments) > 2 {
		return w, fmt.Errorf("slice: the execution goes on for %d instructions: more than --most %d",
			sum, most)
	}
	return w, nil
}

// segmentOf is the index of the segment that has a place.
func segmentOf(all []wet.Segment, at wet.Place) int {
	for i := len(all) - 1; i > 0; i-- {
		if start, ok := all[i].Start(); ok && start.Compare(at) <= 0 {
			return i
		}
	}
	return 0
}

// lengthOf is how many instructions a symbol has.
func lengthOf(s *wpp.Snapshot, known map[uint32]uint64, sym uint32) uint64 {
	n, ok := known[sym]
	if !ok && !s.Symbols[sym].IsMark {
		for range s.Instructions(sym) {
			n++
		}
		known[sym] = n
	}
	return n
}
