package plan

import (
	"cmp"
	"math"
	"slices"

	"wpptrace/loader/cfg"
)

type edge struct{ from, to int }

// A graph is a routine's CFG as optimal tracing sees it (Ball and Larus 1994): calls lead to their continuations, every way out to EXIT, and EXIT to
// ENTRY, one node with it where an activation must not be silent.
type graph struct {
	r      *Routine
	edges  []edge
	covers [][]int // by block: the edges that a probe there tells of
}

// enter and leave are the nodes ENTRY and EXIT.
func (g *graph) enter() int { return len(g.r.Blocks) }
func (g *graph) leave() int {
	if g.r.Silent {
		return len(g.r.Blocks) + 1
	}
	return g.enter()
}

func newGraph(r *Routine) *graph {
	n := len(r.Blocks)
	g := &graph{r: r, covers: make([][]int, n)}
	in := make([]int, n)
	from := make([]int, n+1) // of the edges, by block
	for v := range r.Blocks {
		from[v] = len(g.edges)
		for _, w := range r.successors(v) {
			if w == exit {
				w = g.leave()
			} else {
				in[w]++
			}
			g.edges = append(g.edges, edge{v, w})
		}
	}
	from[n] = len(g.edges)
	for _, b := range r.entries() {
		g.edges = append(g.edges, edge{g.enter(), b})
		in[b]++
	}
	for _, b := range r.Pads {
		in[b]++
	}
	for i, e := range g.edges {
		if e.from < n {
			p, ok := r.seat(e.from)
			if ok && (p.edges || from[e.from+1]-from[e.from] == 1) {
				g.covers[e.from] = append(g.covers[e.from], i)
			}
		}
		if e.to < n && in[e.to] == 1 {
			g.covers[e.to] = append(g.covers[e.to], i)
		}
	}
	for b := range r.Blocks {
		if t := r.Blocks[b].Table; t != nil && t.Check >= 0 && r.mayTell(b) {
			for i := from[b]; i < from[b+1]; i++ {
				g.covers[t.Check] = append(g.covers[t.Check], i)
			}
		}
	}
	return g
}

// A choice is what cheapest chose, and for what: leaving out a routine changes little for most others.
type choice struct {
	must   []bool
	silent bool
	on     []bool
}

// cheapest takes probes off, the dear ones first, as long as the edges that no probe tells of form a forest: then there is just one silent way from a word
// to the next. Of some orders it takes what comes out cheapest.
func (r *Routine) cheapest(must []bool) {
	if c := &r.chosen; c.on == nil || c.silent != r.Silent || !slices.Equal(c.must, must) {
		*c = choice{must, r.Silent, r.choose(must)}
	}
	for b, on := range r.chosen.on {
		if on {
			r.probe(b)
		}
	}
}

func (r *Routine) choose(must []bool) []bool {
	g := newGraph(r)
	prices := make([]float64, len(r.Blocks))
	for b := range prices {
		prices[b] = r.price(b)
	}
	least := math.Inf(1)
	var best []bool
	for _, weigh := range []func(b int) float64{
		func(b int) float64 { return prices[b] },
		func(b int) float64 { return prices[b] / max(1, float64(len(r.successors(b)))-0.5) },
		func(b int) float64 { return prices[b] / float64(max(1, len(g.covers[b]))) },
	} {
		on := g.reduce(must, weigh)
		sum := 0.0
		for b := range on {
			if on[b] {
				sum += min(prices[b], math.MaxFloat32)
			}
		}
		if sum < least {
			best, least = on, sum
		}
	}
	return best
}

// reduce returns the blocks that keep their probes.
func (g *graph) reduce(must []bool, weigh func(b int) float64) []bool {
	n := len(g.r.Blocks)
	on, count := make([]bool, n), make([]int, len(g.edges))
	order := make([]int, 0, n)
	for b := range n {
		if _, ok := g.r.seat(b); !ok && !must[b] {
			continue
		}
		on[b] = true
		for _, e := range g.covers[b] {
			count[e]++
		}
		if !must[b] {
			order = append(order, b)
		}
	}
	weights := make([]float64, n)
	for _, b := range order {
		weights[b] = weigh(b)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weights[b], weights[a]) })
	f := newForest(n + 2)
	for i, e := range g.edges {
		if count[i] == 0 {
			f.join(e)
		}
	}
	f.keep()
	drop := func(b int) {
		for _, e := range g.covers[b] {
			count[e]--
		}
		on[b] = false
		for _, e := range g.covers[b] {
			if count[e] == 0 && !f.join(g.edges[e]) {
				f.undo()
				for _, e := range g.covers[b] {
					count[e]++
				}
				on[b] = true
				return
			}
		}
		f.keep()
	}
	for _, b := range g.r.between() { // what parts a switch from its bounds check must not speak
		if on[b] && !must[b] {
			drop(b)
		}
	}
	for _, b := range order {
		if on[b] {
			drop(b)
		}
	}
	return on
}

// between lists the blocks on the ways from bounds checks to their switches.
func (r *Routine) between() (list []int) {
	for b := range r.Blocks {
		if r.mayTell(b) {
			list = append(list, r.chain(b)...)
		}
	}
	return list
}

// mayTell reports whether the bounds check of the switch at b could tell its case.
func (r *Routine) mayTell(b int) bool {
	t := r.Blocks[b].Table
	if t == nil || t.Check < 0 || len(t.Targets) == 0 {
		return false
	}
	p, ok := r.seat(t.Check)
	return ok && p.edges && r.chain(b) != nil
}

// chain lists the blocks from the bounds check of the switch at b, that not included, to the switch: nil if other ways part or join.
func (r *Routine) chain(b int) []int {
	t := r.Blocks[b].Table
	check := &r.Blocks[t.Check]
	if check.End != cfg.Jcc || check.Succ[0] == check.Succ[1] {
		return nil
	}
	for _, next := range check.Succ {
		var way []int
		for v := next; v >= 0 && len(way) < len(r.Blocks); v = r.Blocks[v].Succ[0] {
			way = append(way, v)
			if v == b {
				return way
			}
			if len(r.Blocks[v].Succ) != 1 {
				break
			}
		}
	}
	return nil
}

// A forest is a set of edges without a circle, whichever way they are followed: a disjoint-set structure whose last joins can be undone.
type forest struct {
	parent, size []int
	joined       []int // the roots that were joined to others since the last keep
}

func newForest(nodes int) *forest {
	f := &forest{parent: make([]int, nodes), size: make([]int, nodes)}
	for i := range nodes {
		f.parent[i], f.size[i] = i, 1
	}
	return f
}

func (f *forest) root(n int) int {
	for f.parent[n] != n {
		n = f.parent[n]
	}
	return n
}

// join adds an edge. It reports false if it would close a circle.
func (f *forest) join(e edge) bool {
	a, b := f.root(e.from), f.root(e.to)
	if a == b {
		return false
	}
	if f.size[a] > f.size[b] {
		a, b = b, a
	}
	f.parent[a] = b
	f.size[b] += f.size[a]
	f.joined = append(f.joined, a)
	return true
}

func (f *forest) keep() { f.joined = f.joined[:0] }

func (f *forest) undo() {
	for i := len(f.joined) - 1; i >= 0; i-- {
		a := f.joined[i]
		f.size[f.parent[a]] -= f.size[a]
		f.parent[a] = a
	}
	f.joined = f.joined[:0]
}
