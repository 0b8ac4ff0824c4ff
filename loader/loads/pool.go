package loads

// A pool has values that are used again, all at once: python3's plan allocated 4 GB without it.
type pool[T any] struct {
	slabs [][]T
	n     int // that are used
}

const slab = 64

// get returns a value, as whoever had it before has left it.
func (p *pool[T]) get() *T {
	if p.n/slab == len(p.slabs) {
		p.slabs = append(p.slabs, make([]T, slab))
	}
	x := &p.slabs[p.n/slab][p.n%slab]
	p.n++
	return x
}

// way returns an empty way.
func (f *follower) way() *way {
	w := f.ways.get()
	*w = way{loads: w.loads[:0], passed: w.passed[:0]}
	return w
}

// copy returns a state for another way: neither changes the other's lists.
func (f *follower) copy(s *state) *state {
	t := f.states.get()
	*t = *s
	t.stores = t.stores[:len(t.stores):len(t.stores)]
	t.calls = t.calls[:len(t.calls):len(t.calls)]
	t.cases = t.cases[:len(t.cases):len(t.cases)]
	return t
}

// registers returns a copy of a state's.
func (f *follower) registers(s *state) *[16]value {
	regs := f.files.get()
	*regs = s.regs
	return regs
}
