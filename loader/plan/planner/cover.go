package planner

import (
	"math"
	"math/rand/v2"
	"slices"

	"wpptrace/internal/grouped"
	"wpptrace/loader/plan/planner/circles"
)

type edge struct{ from, to int32 }

// A graph is a routine's CFG as optimal tracing sees it (Ball and Larus 1994): calls lead to their
// continuations, every way out to EXIT, and EXIT to ENTRY, one node with it where an activation
// must not be without an event.
type graph struct {
	r *routine
	// those out of a block one after another, by the numbers of the blocks, then those from ENTRY
	edges  []edge
	out    []int32       // by block: the first of those out of it; one more at the end
	covers grouped.Lists // by block: the edges that a probe there covers
}

// entryNode and exitNode are ENTRY and EXIT.
func (g *graph) entryNode() int { return len(g.r.Blocks) }
func (g *graph) exitNode() int {
	if g.r.standing.probeFree {
		return len(g.r.Blocks) + 1
	}
	return g.entryNode()
}

func newGraph(r *routine) *graph {
	g := &graph{r: r, edges: make([]edge, 0, 2*len(r.Blocks)), out: make([]int32, len(r.Blocks)+1)}
	for v := range r.Blocks {
		g.out[v] = int32(len(g.edges))
		for _, w := range r.Blocks[v].After() {
			if w == exit {
				w = g.exitNode()
			}
			g.edges = append(g.edges, edge{int32(v), int32(w)})
		}
	}
	g.out[len(r.Blocks)] = int32(len(g.edges))
	for _, b := range r.entries {
		g.edges = append(g.edges, edge{int32(g.entryNode()), int32(b)})
	}
	g.findCovers()
	return g
}

// outOf are the edges out of block b: from and up to, not including.
func (g *graph) outOf(b int32) (from, to int32) { return g.out[b], g.out[b+1] }

// findCovers finds the edges that a probe covers, by its block: the one edge into it and, as it
// decides which way a jump goes, or where there is one way only, those out of it. A probe of a
// switch's bounds check may decide which way the switch goes.
func (g *graph) findCovers() {
	n := int32(len(g.r.Blocks))
	in := make([]int32, n+2)
	for _, e := range g.edges {
		in[e.to]++
	}
	for _, b := range g.r.Pads { // an exception is a way in, too
		in[b]++
	}
	covers := make([]bool, n+1) // by node, ENTRY last
	var switches []int32
	for b := range n {
		p, ok := g.r.costs.point(int(b))
		from, to := g.outOf(b)
		covers[b] = ok && (p.edges || to-from == 1)
		if g.r.switches.mayBeKnown(int(b)) {
			switches = append(switches, b)
		}
	}
	g.covers = grouped.By(int(n), func(add func(block, edge int32)) {
		for i, e := range g.edges {
			if covers[e.from] {
				add(e.from, int32(i))
			}
			if e.to < n && in[e.to] == 1 {
				add(e.to, int32(i))
			}
		}
		for _, b := range switches {
			from, to := g.outOf(b)
			for i := from; i < to; i++ {
				add(int32(g.r.Blocks[b].Table.Check), i)
			}
		}
	})
}

// A covering looks for the cheapest probes that, with those that must be, cover all edges of a
// routine but a forest. What it holds is the same whichever loops are to run without a probe.
type covering struct {
	r      *routine
	graph  *graph
	must   []bool
	prices []float64
	// blocks between a switch and its bounds check, whose probes are dropped first: they would part
	// the two
	between []int
	orders  [][]int32 // to try dropping the others in
}

// A weighed is a block with its weight in an order.
type weighed struct {
	weight float64
	block  int32
}

func newCovering(r *routine, must []bool) *covering {
	c := &covering{r: r, graph: newGraph(r), must: must, prices: make([]float64, len(r.Blocks))}
	for b := range c.prices {
		c.prices[b] = r.costs.price(b)
	}
	for _, b := range r.switches.between() {
		if !must[b] {
			c.between = append(c.between, b)
		}
	}
	c.findOrders()
	return c
}

// Orders that are tried at random, where frequencies are measured: estimates are not worth the
// time.
const (
	randomOrders   = 60
	priceDeviation = 0.7 // standard deviation of the logarithm of what prices are multiplied by
)

// findOrders finds the orders to try. They are the same at every call.
func (c *covering) findOrders() {
	list := c.droppable()
	add := func(weigh func(b int) float64) { c.orders = append(c.orders, byWeight(list, weigh)) }
	add(func(b int) float64 { return c.prices[b] })
	add(func(b int) float64 {
		return c.prices[b] / max(1, float64(len(c.r.Blocks[b].After()))-0.5)
	})
	add(func(b int) float64 { return c.prices[b] / float64(max(1, c.graph.covers.Count(b))) })
	if !c.r.costs.isMeasured() {
		return
	}
	random := rand.New(rand.NewPCG(c.r.Addr, 0))
	drawn := make([]float64, len(c.prices))
	for range randomOrders {
		for b, price := range c.prices {
			drawn[b] = price * math.Exp(priceDeviation*random.NormFloat64())
		}
		add(func(b int) float64 { return drawn[b] })
	}
}

// droppable are the blocks that may have a probe and need not.
func (c *covering) droppable() []weighed {
	list := make([]weighed, 0, len(c.must))
	for b := range c.must {
		if _, ok := c.r.costs.point(b); ok && !c.must[b] {
			list = append(list, weighed{block: int32(b)})
		}
	}
	return list
}

// byWeight are the blocks of a list, which it sorts, the heaviest first.
func byWeight(list []weighed, weigh func(b int) float64) []int32 {
	for i := range list {
		list[i].weight = weigh(int(list[i].block))
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

// cheapest returns the blocks of the cheapest probes that it comes upon, some loops having none.
func (c *covering) cheapest(loops []int) (best []bool) {
	on := make([]bool, len(c.must))
	for b, must := range c.must {
		_, ok := c.r.costs.point(b)
		on[b] = ok || must
	}
	for _, b := range loops {
		on[b] = false
	}
	all := newReduction(c.graph, on)
	for _, b := range c.between {
		all.drop(b)
	}
	least := math.Inf(1)
	var d reduction
	for _, order := range c.orders {
		d.copyFrom(all)
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

// A reduction drops probes as long as the edges that none covers form a forest.
type reduction struct {
	graph     *graph
	on        []bool         // by block: has a probe
	covered   []int32        // by edge: how many probes cover it
	uncovered circles.Forest // the edges of which none does
}

// newReduction begins with probes on some blocks.
func newReduction(g *graph, on []bool) *reduction {
	d := &reduction{graph: g, on: on, covered: make([]int32, len(g.edges)),
		uncovered: circles.NewForest(len(on) + 2)}
	for b := range on {
		if on[b] {
			for _, e := range g.covers.Of(b) {
				d.covered[e]++
			}
		}
	}
	for i, e := range g.edges {
		if d.covered[i] == 0 {
			d.uncovered.Join(e.from, e.to)
		}
	}
	d.uncovered.Keep()
	return d
}

func (d *reduction) copyFrom(other *reduction) {
	d.graph = other.graph
	d.on = append(d.on[:0], other.on...)
	d.covered = append(d.covered[:0], other.covered...)
	d.uncovered.CopyFrom(&other.uncovered)
}

// drop takes the probe off a block, unless it has none or the edges that only this one covers
// would close a circle.
func (d *reduction) drop(b int) {
	if !d.on[b] {
		return
	}
	covers := d.graph.covers.Of(b)
	for _, e := range covers {
		d.covered[e]--
	}
	for _, e := range covers {
		if d.covered[e] > 0 {
			continue
		}
		if e := d.graph.edges[e]; !d.uncovered.Join(e.from, e.to) {
			d.uncovered.Undo()
			for _, e := range covers {
				d.covered[e]++
			}
			return
		}
	}
	d.on[b] = false
	d.uncovered.Keep()
}
