package bounds

import (
	"cmp"
	"iter"
	"slices"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/overlapped"
	"wpptrace/internal/saturating"
)

// Alone is the degree of bounds from counts of paths alone: of loops the same as degree 0.
const Alone = -1

// An Answer bounds the interesting paths of one place.
type Answer struct {
	Place
	Degree  int // the greatest useful one here, by what ran
	Pairs   uint64
	Exact   uint64 // of the pairs, those whose bounds are equal, those that did not run included
	LeftOut string // why there are no bounds
	Flow

	group  *group
	bounds []Bound
}

// A Flow is how often all interesting paths of some places ran together. Sums stop at 2^64-1.
type Flow struct {
	Definite, Potential uint64 // the sums of lower and of upper bounds
	Real                uint64 // that of the truth, where it is known
	Outside             uint64 // how many pairs have a truth that is not within their bounds
}

// Add adds up flows.
func (f *Flow) Add(g Flow) {
	f.Definite = saturating.Add(f.Definite, g.Definite)
	f.Potential = saturating.Add(f.Potential, g.Potential)
	f.Real = saturating.Add(f.Real, g.Real)
	f.Outside += g.Outside
}

// A Row is an interesting path.
type Row struct {
	// blocks, of the routines of the place; at a back edge those in the loop
	First, Second []int
	Lower, Upper  uint64
	Truth         uint64 // where it is known
}

// Answers iterates over the places in their order, with bounds by overlapping paths of degree k, or
// by path counts Alone. Of a degree above that of the profile, answers are those for that. It takes
// time and memory in proportion to the rows of one place at a time.
func (m *Model) Answers(k int) iter.Seq[*Answer] {
	return func(yield func(*Answer) bool) {
		for _, g := range m.groups {
			if !yield(m.answer(g, min(k, m.Profile.Degree))) {
				return
			}
		}
	}
}

// IsTruthKnown reports whether answers have the truth.
func (m *Model) IsTruthKnown() bool { return m.known }

func (m *Model) answer(g *group, k int) *Answer {
	a := &Answer{Place: g.Place, Degree: g.degree, group: g,
		Pairs: saturating.Mul(uint64(len(g.first.parts)), uint64(len(g.second.parts)))}
	if a.LeftOut = g.leftOut; a.LeftOut != "" {
		return a
	}
	bounds, err := m.equations(g, k).Solve()
	if err != nil {
		a.LeftOut = err.Error()
		return a
	}
	a.bounds = bounds
	a.Exact = a.Pairs
	found := 0
	for _, b := range bounds {
		n, ok := g.truth[[2]int32{b.First, b.Second}]
		if ok {
			found++
		}
		if b.Lower < b.Upper {
			a.Exact--
		}
		a.Definite = saturating.Add(a.Definite, b.Lower)
		a.Potential = saturating.Add(a.Potential, b.Upper)
		a.Real = saturating.Add(a.Real, n)
		if m.known && (n < b.Lower || n > b.Upper) {
			a.Outside++
		}
	}
	if found < len(g.truth) {
		a.addOthers()
	}
	return a
}

// addOthers adds what ran although the bounds rule it out: in another run.
func (a *Answer) addOthers() {
	have := map[[2]int32]bool{}
	for _, b := range a.bounds {
		have[[2]int32{b.First, b.Second}] = true
	}
	for key, n := range a.group.truth {
		if !have[key] {
			a.bounds = append(a.bounds, Bound{First: key[0], Second: key[1]})
			a.Real = saturating.Add(a.Real, n)
			a.Outside++
		}
	}
	slices.SortFunc(a.bounds, func(x, y Bound) int {
		return cmp.Or(cmp.Compare(x.First, y.First), cmp.Compare(x.Second, y.Second))
	})
}

// Rows iterates over the pairs that may have run, and those that did. Blocks are shared.
func (a *Answer) Rows() iter.Seq[Row] {
	return func(yield func(Row) bool) {
		for _, b := range a.bounds {
			if !yield(Row{First: a.group.first.parts[b.First].blocks,
				Second: a.group.second.parts[b.Second].blocks, Lower: b.Lower, Upper: b.Upper,
				Truth: a.group.truth[[2]int32{b.First, b.Second}]}) {
				return
			}
		}
	}
}

// equations returns a group's counts of some degree.
func (m *Model) equations(g *group, k int) *Group {
	e := &Group{}
	for _, p := range g.first.parts {
		e.First = append(e.First, p.ran)
	}
	for _, q := range g.second.parts {
		e.Second = append(e.Second, q.ran)
	}
	if k < 0 && g.Kind != overlapped.OverLoop {
		e.Alone = true
		for _, n := range g.counts {
			e.Calls = saturating.Add(e.Calls, n)
		}
		return e
	}
	_, second := g.Routines()
	shape, numbers := m.Profile.ShapeOf(second), map[string]int{}
	number := func(blocks []int) int {
		key := spell(shape.Extend(blocks, max(k, 0)))
		n, ok := numbers[key]
		if !ok {
			n = len(numbers)
			numbers[key] = n
		}
		return n
	}
	for _, q := range g.second.parts {
		e.Extension = append(e.Extension, number(q.blocks))
	}
	sums := map[[2]int]uint64{}
	for c, n := range g.counts {
		at := [2]int{c.first, number(unspell(c.extension))}
		sums[at] = saturating.Add(sums[at], n)
	}
	for at, n := range sums {
		e.Counts = append(e.Counts, Count{at[0], at[1], n})
	}
	slices.SortFunc(e.Counts, func(a, b Count) int {
		if a.First != b.First {
			return a.First - b.First
		}
		return a.Extension - b.Extension
	})
	return e
}

// TakeTruth has answers say how often each interesting path ran by a model of whole program paths:
// the same, or one of another snapshot of the same program. What that has of paths that did not run
// here is left out, and it is returned how often it ran. Places are left out of whose routines that
// one does not say what ran.
func (m *Model) TakeTruth(from *Model) (elsewhere uint64) {
	m.known = true
	to := newMapping(from.Snapshot, m.Snapshot)
	at := map[Place]*group{}
	ran := to.knownIn(from)
	for _, g := range m.groups {
		g.truth = map[[2]int32]uint64{}
		at[g.Place] = g
		if first, second := g.Routines(); g.leftOut == "" && !(ran(first) && ran(second)) {
			g.leftOut = "the other recording does not have what ran there"
		}
	}
	for _, p := range from.unsure {
		place, ok := to.place(p)
		if target := at[place]; ok && !to.same && target != nil && target.leftOut == "" {
			target.leftOut = "the other recording does not say how activations began there"
		}
	}
	for _, g := range from.groups {
		place, ok := to.place(g.Place)
		target := at[place]
		if ok && target != nil && target.leftOut == "" && g.leftOut != "" {
			target.leftOut = "in the other recording: " + g.leftOut
		}
		for c, n := range g.counts {
			var key [2]int32
			if !ok || target == nil || !to.find(target, g, c, &key) {
				elsewhere = saturating.Add(elsewhere, n)
				continue
			}
			target.truth[key] = saturating.Add(target.truth[key], n)
		}
	}
	return elsewhere
}

// find finds the paths of a pair among those of a group.
func (x *mapping) find(target, from *group, c counted, key *[2]int32) bool {
	first, second := from.Routines()
	p, known := x.blocks(first, from.first.parts[c.first].blocks)
	q, also := x.blocks(second, unspell(c.extension))
	if !known || !also {
		return false
	}
	i, known := target.first.at[spell(p)]
	j, also := target.second.at[spell(q)]
	*key = [2]int32{int32(i), int32(j)}
	return known && also
}

// A mapping says which routines and blocks of a snapshot are which of another one.
type mapping struct {
	from     *wpp.Snapshot
	same     bool
	routines []int            // -1: it has none
	byAddr   []map[uint64]int // of the other one's routines: blocks by address
}

func newMapping(from, to *wpp.Snapshot) *mapping {
	x := &mapping{from: from, same: from == to}
	if x.same {
		return x
	}
	type key struct {
		image string
		entry uint64
	}
	image := func(s *wpp.Snapshot, i int) string {
		if id := s.Images[i].BuildID; id != nil {
			return string(id)
		}
		return s.Images[i].Name
	}
	routines := map[key]int{}
	for i := range to.Routines {
		r := &to.Routines[i]
		routines[key{image(to, r.Image), r.Entry}] = i
		blocks := make(map[uint64]int, len(r.Blocks))
		for b := range r.Blocks {
			blocks[r.Blocks[b].Addr] = b
		}
		x.byAddr = append(x.byAddr, blocks)
	}
	for i := range from.Routines {
		r := &from.Routines[i]
		at, ok := routines[key{image(from, r.Image), r.Entry}]
		if !ok {
			at = -1
		}
		x.routines = append(x.routines, at)
	}
	return x
}

// knownIn returns what reports whether a model has how often paths of a routine ran, of those that
// the mapping leads to: it has not of routines that were not traced, or have no shape.
func (x *mapping) knownIn(from *Model) func(routine int) bool {
	if x.same {
		return func(int) bool { return true }
	}
	known := map[int]bool{}
	for i, at := range x.routines {
		r := &x.from.Routines[i]
		known[at] = r.LeftOut == "" && (len(r.Blocks) == 0 || from.Profile.ShapeOf(i) != nil)
	}
	return func(routine int) bool { return known[routine] }
}

func (x *mapping) blocks(routine int, blocks []int) ([]int, bool) {
	if x.same {
		return blocks, true
	}
	to := x.routines[routine]
	if to < 0 {
		return nil, false
	}
	mapped := make([]int, len(blocks))
	for i, b := range blocks {
		at, ok := x.byAddr[to][x.from.Routines[routine].Blocks[b].Addr]
		if !ok {
			return nil, false
		}
		mapped[i] = at
	}
	return mapped, true
}

func (x *mapping) place(p Place) (Place, bool) {
	if x.same {
		return p, true
	}
	block, ok := x.blocks(p.Routine, []int{p.Block})
	if !ok {
		return p, false
	}
	p.Routine, p.Block = x.routines[p.Routine], block[0]
	if p.Callee >= 0 {
		p.Callee = x.routines[p.Callee]
		ok = p.Callee >= 0
	}
	return p, ok
}
