package values

import "wpptrace/bpf/wire"

// mostQueued is how many bytes of states are kept whose paths have not come: there may be many
// where the kernel counts repeats of a hit.
const mostQueued = 64 << 20

// A queue is what hits have sent, in their order, as records have it.
type queue struct {
	data    []byte
	taken   int // bytes of data
	next    int // where what is behind the first one begins, if that is parsed; else 0
	state   wire.State
	damaged uint64 // bytes of records that could not be read
}

// add adds the states of a record. Where they are too many, those that are there are dropped.
func (q *queue) add(raw []byte) {
	switch {
	case len(q.data)-q.taken+len(raw) > mostQueued:
		q.data, q.taken, q.next = q.data[:0], 0, 0
	case q.taken > len(q.data)/2:
		n := copy(q.data, q.data[q.taken:])
		q.next = max(q.next-q.taken, 0)
		q.data, q.taken = q.data[:n], 0
	}
	q.data = append(q.data, raw...)
}

// first returns the first one, which is good until another is asked for; nil: there is none.
func (q *queue) first() *wire.State {
	if q.next > 0 {
		return &q.state
	}
	if q.taken == len(q.data) {
		return nil
	}
	rest, err := q.state.Parse(q.data[q.taken:])
	if err != nil {
		q.damaged += uint64(len(q.data) - q.taken)
		q.taken = len(q.data)
		return nil
	}
	q.next = len(q.data) - len(rest)
	return &q.state
}

// pop lets go of the first one. What first has returned stays good.
func (q *queue) pop() { q.taken, q.next = q.next, 0 }
