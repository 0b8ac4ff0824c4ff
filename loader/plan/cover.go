package plan

import (
	"iter"
	"math"
	"math/rand/v2"
	"slices"

	"wpptrace/loader/cfg"
)

type edge struct{ from, to int32 }

// A graph is a routine's CFG as optimal tracing sees it (Ball and Larus 1994): calls lead to their
// continuations, every way out to EXIT, and EXIT to ENTRY, one node with it where an activation
// must not be silent.
type graph struct {
	r      *Routine
	edges  []edge  // those out of a block one after another, by the numbers of the blocks, then those from ENTRY
	out    []int32 // by block: the first of those out of it; one more at the end
	covers groups  // by block: the edges that a probe there tells of
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
	g := &graph{r: r, edges: make([]edge, 0, 2*len(r.Blocks)), out: make([]int32, len(r.Blocks)+1)}
	for v := range r.Blocks {
		g.out[v] = int32(len(g.edges))
		for _, w := range r.successors(v) {
			if w == v && r.probed[v].silent {
				continue
			}
			if w == exit {
				w = g.leave()
			}
			g.edges = append(g.edges, edge{int32(v), int32(w)})
		}
	}
	g.out[len(r.Blocks)] = int32(len(g.edges))
	for _, b := range r.entries {
		g.edges = append(g.edges, edge{int32(g.enter()), int32(b)})
	}
	g.covers = grouped(len(r.Blocks), g.coverTables(g.coverEnds()))
	return g
}

// outOf are the edges out of block b: from and up to, not including.
func (g *graph) outOf(b int32) (from, to int32) { return g.out[b], g.out[b+1] }

// coverEnds: a probe tells of the one edge into its block and, as it tells which way a jump goes,
// or where there is one way only, of those out of it.
func (g *graph) coverEnds() (list []pair) {
	n := int32(len(g.r.Blocks))
	in := make([]int32, n+2)
	for _, e := range g.edges {
		in[e.to]++
	}
	for _, b := range g.r.Pads { // an exception is a way in, too
		in[b]++
	}
	list = make([]pair, 0, 2*len(g.edges))
	for i, e := range g.edges {
		if e.from < n {
			p, ok := g.r.seat(int(e.from))
			if from, to := g.outOf(e.from); ok && (p.edges || to-from == 1) {
				list = append(list, pair{e.from, int32(i)})
			}
		}
		if e.to < n && in[e.to] == 1 {
			list = append(list, pair{e.to, int32(i)})
		}
	}
	return list
}

// coverTables: a probe of a switch's bounds check may tell which way the switch goes.
func (g *graph) coverTables(list []pair) []pair {
	for b := range g.r.Blocks {
		if !g.r.mayTell(b) {
			continue
		}
		check := int32(g.r.Blocks[b].Table.Check)
		from, to := g.outOf(int32(b))
		for i := from; i < to; i++ {
			list = append(list, pair{check, i})
		}
	}
	return list
}

// cover returns blocks whose probes, with those that must be, tell of all edges but a forest: the
// cheapest set that it comes upon.
func (r *Routine) cover(must []bool) (best []bool) {
	g := newGraph(r)
	prices := make([]float64, len(r.Blocks))
	for b := range prices {
		prices[b] = r.price(b)
	}
	all := newReduction(g, must)
	for _, b := range r.between() { // what parts a switch from its bounds check must not speak
		if !must[b] {
			all.drop(b)
		}
	}
	least := math.Inf(1)
	for weigh := range r.orders(g, prices) {
		d := all.clone()
		for _, w := range d.order(must, weigh) {
			d.drop(w.block)
		}
		on, sum := d.on, 0.0
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

// Orders that are tried at random, where frequencies are measured: estimates are not worth the
// time.
const (
	randomOrders = 60
	spread       = 0.7 // standard deviation of the logarithm of what prices are multiplied by
)

// orders are the orders to try dropping probes in, the heaviest first. They are the same at every
// call.
func (r *Routine) orders(g *graph, prices []float64) iter.Seq[func(b int) float64] {
	return func(yield func(func(b int) float64) bool) {
		for _, weigh := range []func(b int) float64{
			func(b int) float64 { return prices[b] },
			func(b int) float64 { return prices[b] / max(1, float64(len(r.successors(b)))-0.5) },
			func(b int) float64 { return prices[b] / float64(max(1, g.covers.count(b))) },
		} {
			if !yield(weigh) {
				return
			}
		}
		if !r.measured || r.entry < 1 {
			return
		}
		random := rand.New(rand.NewPCG(r.Addr, 0))
		for range randomOrders {
			if !yield(func(b int) float64 { return prices[b] * math.Exp(spread*random.NormFloat64()) }) {
				return
			}
		}
	}
}

// A reduction drops probes as long as the edges that none tells of form a forest.
type reduction struct {
	*graph
	on     []bool  // by block: has a probe
	told   []int32 // by edge: how many probes tell of it
	silent *forest // the edges of which none does
}

func newReduction(g *graph, must []bool) *reduction {
	n := len(g.r.Blocks)
	d := &reduction{graph: g, on: make([]bool, n), told: make([]int32, len(g.edges)), silent: newForest(n + 2)}
	for b := range n {
		if _, ok := g.r.seat(b); (ok || must[b]) && !g.r.probed[b].silent {
			d.on[b] = true
			for _, e := range g.covers.of(b) {
				d.told[e]++
			}
		}
	}
	for i, e := range g.edges {
		if d.told[i] == 0 {
			d.silent.join(e)
		}
	}
	d.silent.keep()
	return d
}

func (d *reduction) clone() *reduction {
	return &reduction{d.graph, slices.Clone(d.on), slices.Clone(d.told), d.silent.clone()}
}

type weighed struct {
	block  int
	weight float64
}

// order are the blocks whose probes may be dropped, the heaviest first.
func (d *reduction) order(must []bool, weigh func(b int) float64) []weighed {
	list := make([]weighed, 0, len(d.on))
	for b := range d.on {
		if d.on[b] && !must[b] {
			list = append(list, weighed{b, weigh(b)})
		}
	}
	slices.SortFunc(list, func(a, b weighed) int {
		switch {
		case a.weight > b.weight:
			return -1
		case a.weight < b.weight:
			return 1
		}
		return a.block - b.block
	})
	return list
}

// drop takes the probe off a block, unless it has none or the edges that only this one tells of
// would close a circle.
func (d *reduction) drop(b int) {
	if !d.on[b] {
		return
	}
	covers := d.covers.of(b)
	for _, e := range covers {
		d.told[e]--
	}
	for _, e := range covers {
		if d.told[e] == 0 && !d.silent.join(d.edges[e]) {
			d.silent.undo()
			for _, e := range covers {
				d.told[e]++
			}
			return
		}
	}
	d.on[b] = false
	d.silent.keep()
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

// chain lists the blocks from the bounds check of the switch at b, that not included, to the
// switch: nil if other ways part or join.
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

// A pair is a number and another one that belongs to it.
type pair struct{ key, value int32 }

// groups are numbers by what they belong to.
type groups struct {
	end    []int32 // by key: of its values
	values []int32
}

// grouped groups the values by key, from 0 to n-1, in the order of the list.
func grouped(n int, list []pair) groups {
	g := groups{make([]int32, n), make([]int32, len(list))}
	for _, p := range list {
		g.end[p.key]++
	}
	sum := int32(0)
	for key, count := range g.end {
		g.end[key], sum = sum, sum+count
	}
	for _, p := range list {
		g.values[g.end[p.key]] = p.value
		g.end[p.key]++
	}
	return g
}

// of are the values that belong to a key.
func (g *groups) of(key int) []int32 { return g.values[g.begin(key):g.end[key]] }

// count is how many of returns.
func (g *groups) count(key int) int { return int(g.end[key] - g.begin(key)) }

func (g *groups) begin(key int) int32 {
	if key == 0 {
		return 0
	}
	return g.end[key-1]
}

// A forest is a set of edges without a circle, whichever way they are followed: a disjoint-set
// structure whose last joins can be undone.
type forest struct {
	parent, size []int32
	joined       []int32 // the roots that were joined to others since the last keep
}

func newForest(nodes int) *forest {
	f := &forest{parent: make([]int32, nodes), size: make([]int32, nodes)}
	for i := range nodes {
		f.parent[i], f.size[i] = int32(i), 1
	}
	return f
}

func (f *forest) clone() *forest {
	return &forest{parent: slices.Clone(f.parent), size: slices.Clone(f.size)}
}

func (f *forest) root(n int32) int32 {
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
