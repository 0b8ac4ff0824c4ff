package coding

// A coder writes or reads binary decisions. probability is that of 1, in 65536ths, from 1 to 65535. bit returns the decision: the one
// given when it writes, the one read when it reads, so that one model serves both and they cannot disagree.
type coder interface {
	bit(decision, probability uint32) uint32
}

// split divides the interval from low to high in the proportion of a probability: 1 gets what is up to the point returned, 0 the rest.
func split(low, high, probability uint32) uint32 {
	return low + uint32(uint64(high-low)*uint64(probability)>>16)
}

// A writer is an arithmetic encoder without carries: the interval's leading bytes are written as soon as its ends agree on them.
type writer struct {
	low, high uint32
	out       []byte
}

func newWriter(out []byte) *writer { return &writer{high: 1<<32 - 1, out: out} }

func (w *writer) bit(decision, probability uint32) uint32 {
	middle := split(w.low, w.high, probability)
	if decision == 1 {
		w.high = middle
	} else {
		w.low = middle + 1
	}
	for (w.low^w.high)>>24 == 0 {
		w.out = append(w.out, byte(w.high>>24))
		w.low <<= 8
		w.high = w.high<<8 | 0xff
	}
	return decision
}

// finish returns the bytes, with enough of them at the end to tell the last interval.
func (w *writer) finish() []byte {
	return append(w.out, byte(w.low>>24), byte(w.low>>16), byte(w.low>>8), byte(w.low))
}

// A reader is the decoder of what a writer writes. Behind the end of the bytes it reads zeros and counts them: what is made of such is not
// to be believed.
type reader struct {
	low, high, code uint32
	in              []byte
	missing         int
}

func newReader(in []byte) *reader {
	r := &reader{high: 1<<32 - 1, in: in}
	for range 4 {
		r.shift()
	}
	return r
}

func (r *reader) shift() {
	r.code <<= 8
	if len(r.in) == 0 {
		r.missing++
		return
	}
	r.code |= uint32(r.in[0])
	r.in = r.in[1:]
}

func (r *reader) bit(_, probability uint32) (decision uint32) {
	middle := split(r.low, r.high, probability)
	if r.code <= middle {
		decision, r.high = 1, middle
	} else {
		r.low = middle + 1
	}
	for (r.low^r.high)>>24 == 0 {
		r.low <<= 8
		r.high = r.high<<8 | 0xff
		r.shift()
	}
	return decision
}
