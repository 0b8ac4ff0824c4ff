package paths

import (
	"fmt"
	"math"
	"slices"
	"sort"
)

// A Preferential numbers some paths of a routine, the interesting ones, compactly (Vaswani, Nori
// and Chilimbi 2007): each has an identifier of its own, from 0 to below Range, which is little
// more than how many they are, however many paths the routine has. Other paths get identifiers too,
// and some of them those of interesting ones: the Ball-Larus number, which is summed up beside,
// tells them apart. It is read-only and safe for concurrent use.
type Preferential struct {
	n       *Numbering
	weights []int64 // by slot; 0 where no interesting path goes: section 3.2 leaves it open
	paths   []Identified
	size    int64
}

// Weights are what an edge adds to the two numbers of a path, and, summed up along a path, these
// numbers.
type Weights struct {
	Number uint64 // after Ball and Larus
	ID     int64  // the identifier
}

// Plus is what both add.
func (w Weights) Plus(v Weights) Weights { return Weights{w.Number + v.Number, w.ID + v.ID} }

// An Identified is an interesting path: its number and its identifier.
type Identified = Weights

// Prefer numbers the interesting paths, which are given by their numbers, in any order. It fails
// where the routine has no such path, or more paths than an identifier has values. Cost: O(E I) for
// E edges and I interesting paths; more exactly, linear in the different beginnings of these and in
// the routine.
func (n *Numbering) Prefer(interesting []uint64) (*Preferential, error) {
	if n.Total > math.MaxInt64 {
		return nil, fmt.Errorf("number interesting paths: the routine has %d possible paths, and "+
			"identifiers are below 2^63", n.Total)
	}
	sorted := slices.Compact(slices.Sorted(slices.Values(interesting)))
	p := &Preferential{n: n, weights: make([]int64, n.slots())}
	t, err := p.prefixes(sorted)
	if err != nil {
		return nil, fmt.Errorf("number interesting paths: %w", err)
	}
	t.weigh(p.weights)
	p.size = t.list[0].cis()
	for i, id := range t.identify(p.weights) {
		p.paths = append(p.paths, Identified{sorted[i], id})
	}
	slices.SortFunc(p.paths, func(a, b Identified) int { return int(a.ID - b.ID) })
	return p, nil
}

// Range is how many identifiers there are: those of interesting paths are below, each of a path of
// its own. It is at least the number of these and at most the number of paths along edges that some
// interesting path takes.
func (p *Preferential) Range() int64 { return p.size }

// Paths are the interesting paths by their identifiers. They must not be changed.
func (p *Preferential) Paths() []Identified { return p.paths }

// Compactness is the paper's measure (section 3): identifiers for each interesting path. 1 is
// perfect, which not all graphs admit (lemma 3), and what no paths have.
func (p *Preferential) Compactness() float64 {
	if len(p.paths) == 0 {
		return 1
	}
	return float64(p.size) / float64(len(p.paths))
}

// Begin returns the initial values of a path that starts at the block in that way; ok is false when
// none does.
func (p *Preferential) Begin(block int, kind Start) (w Weights, ok bool) {
	i := p.n.start(block, kind)
	if i < 0 {
		return Weights{}, false
	}
	return Weights{p.n.starts[i].first, p.weights[i]}, true
}

// Step walks the edge between two blocks, as Numbering.Step does: either the path goes on and w is
// to be added to what it has, or w completes it.
func (p *Preferential) Step(from, to int) (w Weights, ends bool, end End, next Start) {
	e := p.n.edge(from, to)
	if e == nil {
		return Weights{}, true, EndCut, StartResume
	}
	slot := p.n.slotBetween(from, to)
	if e.ends {
		slot = p.n.exitSlot(from, e.inc)
	}
	return Weights{e.inc, p.weights[slot]}, e.ends, e.end, e.next
}

// Finish returns what completes a path that ends with the block in that way, which has to be one of
// the block's ends (zero otherwise).
func (p *Preferential) Finish(block int, end End) Weights {
	i, ok := p.n.nodes[block].findExit(end)
	if !ok {
		return Weights{}
	}
	return Weights{i, p.weights[p.n.exitSlot(block, i)]}
}

// Encode returns the two numbers of a path.
func (p *Preferential) Encode(path Path) (Weights, error) {
	number, err := p.n.Encode(path)
	if err != nil {
		return Weights{}, err
	}
	w := Weights{Number: number}
	for _, slot := range p.n.slotsOf(path) {
		w.ID += p.weights[slot]
	}
	return w, nil
}

// slots is how many edges the graph of paths has. Their slots are, in this order, those of the
// starts; of the exits of each block, as many as it may have; of the edges between blocks, of which
// those that end paths are not used.
func (n *Numbering) slots() int { return n.edgeSlot(len(n.edges)) }

func (n *Numbering) exitSlot(block int, exit uint64) int {
	return len(n.starts) + maxExits*block + int(exit)
}

func (n *Numbering) edgeSlot(edge int) int { return n.exitSlot(len(n.nodes), 0) + edge }

// slotBetween returns the slot of the edge between two blocks, which must be one.
func (n *Numbering) slotBetween(from, to int) int {
	i := sort.Search(len(n.edgesOf(from)), func(i int) bool {
		return int(n.edgesOf(from)[i].to) >= to
	})
	return n.edgeSlot(int(n.nodes[from].edges.from) + i)
}

// slotsOf returns the slots of a path's edges, which must be one of the routine.
func (n *Numbering) slotsOf(p Path) []int {
	slots := []int{n.start(p.Blocks[0], p.Start)}
	for i, to := range p.Blocks[1:] {
		slots = append(slots, n.slotBetween(p.Blocks[i], to))
	}
	last := p.Blocks[len(p.Blocks)-1]
	exit, _ := n.nodes[last].findExit(p.End)
	return append(slots, n.exitSlot(last, exit))
}
