package plan

import (
	"cmp"
	"iter"
	"math"
	"math/rand/v2"
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

func (r *Routine) choose(must []bool) []bool {
	g := newGraph(r)
	prices := make([]float64, len(r.Blocks))
	for b := range prices {
		prices[b] = r.price(b)
	}
	least := math.Inf(1)
	var best []bool
	for weigh := range r.orders(g, prices) {
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

// Orders that are tried at random, where frequencies are measured: estimates are not worth the time.
const (
	randomOrders = 60
	spread       = 0.7 // standard deviation of the logarithm of what prices are multiplied by
)

// orders are the orders to try dropping probes in, the heaviest first. They are the same at every call.
func (r *Routine) orders(g *graph, prices []float64) iter.Seq[func(b int) float64] {
	return func(yield func(func(b int) float64) bool) {
		for _, weigh := range []func(b int) float64{
			func(b int) float64 { return prices[b] },
			func(b int) float64 { return prices[b] / max(1, float64(len(r.successors(b)))-0.5) },
			func(b int) float64 { return prices[b] / float64(max(1, len(g.covers[b]))) },
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
