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
	g.covers = grouped(len(r.Blocks), g.told())
	return g
}

// outOf are the edges out of block b: from and up to, not including.
func (g *graph) outOf(b int32) (from, to int32) { return g.out[b], g.out[b+1] }

// told are the edges that a probe tells of, by its block: the one edge into it and, as it tells which
// way a jump goes, or where there is one way only, those out of it. A probe of a switch's bounds check
// may tell which way the switch goes.
func (g *graph) told() iter.Seq2[int32, int32] {
	n := int32(len(g.r.Blocks))
	in := make([]int32, n+2)
	for _, e := range g.edges {
		in[e.to]++
	}
	for _, b := range g.r.Pads { // an exception is a way in, too
		in[b]++
	}
	tells := make([]bool, n+1) // by node, ENTRY last
	for b := range n {
		p, ok := g.r.seat(int(b))
		from, to := g.outOf(b)
		tells[b] = ok && (p.edges || to-from == 1)
	}
	return func(yield func(block, edge int32) bool) {
		for i, e := range g.edges {
			if tells[e.from] && !yield(e.from, int32(i)) || e.to < n && in[e.to] == 1 && !yield(e.to, int32(i)) {
				return
			}
		}
		for b := range n {
			if !g.r.mayTell(int(b)) {
				continue
			}
			check := int32(g.r.Blocks[b].Table.Check)
			from, to := g.outOf(b)
			for i := from; i < to; i++ {
				if !yield(check, i) {
					return
				}
			}
		}
	}
}

// A covering looks for the cheapest probes that, with those that must be, tell of all edges of a
// routine but a forest. What is here is the same whichever loops are to run without a probe.
type covering struct {
	*graph
	must    []bool
	prices  []float64
	between []int     // blocks that must not speak
	orders  [][]int32 // of blocks, to try dropping their probes in
}

func newCovering(r *Routine, must []bool) *covering {
	c := &covering{graph: newGraph(r), must: must, prices: make([]float64, len(r.Blocks))}
	for b := range c.prices {
		c.prices[b] = r.price(b)
	}
	for _, b := range r.between() { // what parts a switch from its bounds check
		if !must[b] {
			c.between = append(c.between, b)
		}
	}
	for weigh := range c.weights() {
		c.orders = append(c.orders, c.order(weigh))
	}
	return c
}

// cheapest returns the blocks of the cheapest set that it comes upon.
func (c *covering) cheapest() (best []bool) {
	all := newReduction(c.graph, c.must)
	for _, b := range c.between {
		all.drop(b)
	}
	least := math.Inf(1)
	var d reduction
	for _, order := range c.orders {
		d.become(all)
		for _, b := range order {
			d.drop(int(b))
		}
		sum := 0.0
		for b, on := range d.on {
			if on {
				sum += min(c.prices[b], math.MaxFloat32)
			}
		}
		if sum < least {
			best, least = append(best[:0], d.on...), sum
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

// weights weigh blocks for the orders to try, each in another way. They are the same at every call.
func (c *covering) weights() iter.Seq[func(b int) float64] {
	return func(yield func(func(b int) float64) bool) {
		for _, weigh := range []func(b int) float64{
			func(b int) float64 { return c.prices[b] },
			func(b int) float64 { return c.prices[b] / max(1, float64(len(c.r.successors(b)))-0.5) },
			func(b int) float64 { return c.prices[b] / float64(max(1, c.covers.count(b))) },
		} {
			if !yield(weigh) {
				return
			}
		}
		if !c.r.measured || c.r.entry < 1 {
			return
		}
		random := rand.New(rand.NewPCG(c.r.Addr, 0))
		for range randomOrders {
			if !yield(func(b int) float64 { return c.prices[b] * math.Exp(spread*random.NormFloat64()) }) {
				return
			}
		}
	}
}

// order are the blocks that may have a probe and need not, the heaviest first.
func (c *covering) order(weigh func(b int) float64) []int32 {
	type weighed struct {
		weight float64
		block  int32
	}
	list := make([]weighed, 0, len(c.must))
	for b := range c.must {
		if _, ok := c.r.seat(b); ok && !c.must[b] {
			list = append(list, weighed{weigh(b), int32(b)})
		}
	}
	slices.SortFunc(list, func(a, b weighed) int {
		switch {
		case a.weight > b.weight:
			return -1
		case a.weight < b.weight:
			return 1
		}
		return int(a.block - b.block)
	})
	blocks := make([]int32, len(list))
	for i, w := range list {
		blocks[i] = w.block
	}
	return blocks
}

// A reduction drops probes as long as the edges that none tells of form a forest.
type reduction struct {
	*graph
	on     []bool  // by block: has a probe
	told   []int32 // by edge: how many probes tell of it
	silent forest  // the edges of which none does
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

// become makes it a copy of another one.
func (d *reduction) become(other *reduction) {
	d.graph = other.graph
	d.on = append(d.on[:0], other.on...)
	d.told = append(d.told[:0], other.told...)
	d.silent.become(&other.silent)
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
	if !r.switches[b] {
		return false
	}
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

// groups are numbers by what they belong to.
type groups struct {
	end    []int32 // by key: of its values
	values []int32
}

// grouped groups values by key, from 0 to n-1, in the order in which they come. It goes through the
// pairs of both twice.
func grouped(n int, pairs iter.Seq2[int32, int32]) groups {
	g := groups{end: make([]int32, n)}
	for key := range pairs {
		g.end[key]++
	}
	sum := int32(0)
	for key, count := range g.end {
		g.end[key], sum = sum, sum+count
	}
	g.values = make([]int32, sum)
	for key, value := range pairs {
		g.values[g.end[key]] = value
		g.end[key]++
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

func newForest(nodes int) forest {
	f := forest{parent: make([]int32, nodes), size: make([]int32, nodes)}
	for i := range nodes {
		f.parent[i], f.size[i] = int32(i), 1
	}
	return f
}

func (f *forest) become(other *forest) {
	f.parent = append(f.parent[:0], other.parent...)
	f.size = append(f.size[:0], other.size...)
	f.joined = f.joined[:0]
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
