package paths

import (
	"fmt"
	"math/bits"
	"slices"
	"sort"

	"wpptrace/loader/cfg"
)

// maxCount is how many paths may begin at one block: a block that has more becomes a start, and the
// edges into it end their paths.
const maxCount = 1 << 16

// A Numbering holds the numbers of a routine's paths. It is read-only and safe for concurrent use.
type Numbering struct {
	Total  uint64 // the numbers are those below it
	nodes  []node // by block
	edges  []edge // grouped by block, each after those it leads to on a path: see node.edges
	starts []start
}

// A start is a dummy edge from ENTRY to a block: the paths that begin so have the numbers from
// first on.
type start struct {
	block int32
	kind  Start
	first uint64
}

// A node is a block in the graph of paths.
type node struct {
	count uint64 // paths from here to EXIT
	// sorted by the block that they lead to, so by increment too among those that do not end a path
	edges  span
	starts span
	exits  [maxExits]End // dummy edges to EXIT; the increment of each is its index
	nexits uint8
}

// A span is some of the edges or starts of a Numbering.
type span struct{ from, to int32 }

func (n *Numbering) edgesOf(block int) []edge {
	of := n.nodes[block].edges
	return n.edges[of.from:of.to]
}

// maxExits is how many ends paths can have at one block: its own, a back edge and an extra cut.
const maxExits = 3

// An edge leads to the block to. One that ends a path has the increment of the exit that it ends
// by.
type edge struct {
	to   int32
	ends bool
	end  End   // if it ends the path
	next Start // how the path after it begins
	inc  uint64
}

// Number numbers the paths of a routine. It fails when the routine's graph is not exact. Cost:
// linear in the edges.
func Number(r *cfg.Routine) (*Numbering, error) {
	if len(r.Blocks) == 0 {
		return nil, fmt.Errorf("number paths of %s: it has no blocks", r.Name)
	}
	for b := range r.Blocks {
		if r.Blocks[b].End == cfg.Unresolved {
			return nil, fmt.Errorf("number paths of %s: the jump at the end of block %d is not "+
				"resolved", r.Name, b)
		}
	}
	w := walk(r)
	n := &Numbering{nodes: make([]node, len(r.Blocks)), edges: make([]edge, 0, edgeCount(r))}
	kinds := startKinds(r, w)
	for _, b := range w.post {
		n.count(r, int(b), w, kinds)
	}
	n.number(kinds)
	return n, nil
}

func edgeCount(r *cfg.Routine) (n int) {
	for b := range r.Blocks {
		n += len(r.Blocks[b].Succ)
	}
	return n
}

// A kindSet is the set of the starts that a block is.
type kindSet uint8

func (s kindSet) has(k Start) bool { return s>>k&1 != 0 }

// startKinds returns what starts each block is, extra cuts aside.
func startKinds(r *cfg.Routine, w *order) []kindSet {
	kinds := make([]kindSet, len(r.Blocks))
	kinds[r.Entry] |= 1 << StartEntry
	for _, b := range r.Others {
		kinds[b] |= 1 << StartEntry
	}
	for _, pad := range r.Pads {
		kinds[pad] |= 1 << StartPad
	}
	for b := range r.Blocks {
		bl := &r.Blocks[b]
		for _, to := range bl.Succ {
			switch {
			case to < 0:
			case bl.CallReturns():
				kinds[to] |= 1 << StartCall
			case w.isBack(b, to):
				kinds[to] |= 1 << StartLoop
			}
		}
	}
	return kinds
}

// count makes the node of block b, whose successors on paths have theirs.
func (n *Numbering) count(r *cfg.Routine, b int, w *order, kinds []kindSet) {
	v := &n.nodes[b]
	bl := &r.Blocks[b]
	if end, ok := endOf(bl); ok {
		v.exit(end)
	}
	from := len(n.edges)
	for _, to := range bl.Succ {
		if to >= 0 {
			n.edges = append(n.edges, n.edgeTo(b, to, bl, w, kinds))
		}
	}
	edges := n.edges[from:]
	slices.SortFunc(edges, func(a, b edge) int { return int(a.to) - int(b.to) })
	edges = slices.CompactFunc(edges, func(a, b edge) bool { return a.to == b.to })
	n.edges = n.edges[:from+len(edges)]
	v.edges = span{int32(from), int32(len(n.edges))}
	for i := range edges {
		if e := &edges[i]; e.ends {
			e.inc = v.exit(e.end)
		}
	}
	v.count = uint64(v.nexits)
	for i := range edges {
		if e := &edges[i]; !e.ends {
			e.inc = v.count
			v.count += n.nodes[e.to].count
		}
	}
	if v.count > maxCount {
		kinds[b] |= 1 << StartExtra
	}
}

// endOf returns the end of the paths that leave the routine, or its current activation, at the end
// of a block.
func endOf(b *cfg.Block) (End, bool) {
	switch b.End {
	case cfg.Call, cfg.CallInd:
		return EndCall, true
	case cfg.Ret:
		return EndReturn, true
	case cfg.Tail, cfg.TailInd:
		return EndTail, true
	case cfg.NoReturn, cfg.Trap:
		return EndNoReturn, true
	case cfg.Jcc:
		return EndTail, slices.Contains(b.Succ, -1)
	}
	return 0, false
}

// edgeTo makes the edge from block b to block to.
func (n *Numbering) edgeTo(b, to int, bl *cfg.Block, w *order, kinds []kindSet) edge {
	e := edge{to: int32(to)}
	switch {
	case bl.CallReturns():
		e.ends, e.end, e.next = true, EndCall, StartCall
	case w.isBack(b, to):
		e.ends, e.end, e.next = true, EndLoop, StartLoop
	case kinds[to].has(StartExtra):
		e.ends, e.end, e.next = true, EndExtra, StartExtra
	}
	return e
}

// exit returns the increment of the exit with that end, made if need be.
func (v *node) exit(end End) uint64 {
	if i, ok := v.findExit(end); ok {
		return i
	}
	v.exits[v.nexits] = end
	v.nexits++
	return uint64(v.nexits - 1)
}

func (v *node) findExit(end End) (uint64, bool) {
	for i := range v.nexits {
		if v.exits[i] == end {
			return uint64(i), true
		}
	}
	return 0, false
}

// number gives each start its first number.
func (n *Numbering) number(kinds []kindSet) {
	count := 0
	for _, set := range kinds {
		count += bits.OnesCount8(uint8(set))
	}
	n.starts = make([]start, 0, count)
	for b, set := range kinds {
		v := &n.nodes[b]
		v.starts.from = int32(len(n.starts))
		for kind := StartEntry; kind < StartResume; kind++ {
			if set.has(kind) {
				n.starts = append(n.starts, start{block: int32(b), kind: kind, first: n.Total})
				n.Total += v.count
			}
		}
		v.starts.to = int32(len(n.starts))
	}
}

// Begin returns the number's initial value for a path that starts at the block in that way; ok is
// false when none does.
func (n *Numbering) Begin(block int, kind Start) (id uint64, ok bool) {
	if i := n.start(block, kind); i >= 0 {
		return n.starts[i].first, true
	}
	return 0, false
}

// start returns the index of the start of that kind at a block, or -1.
func (n *Numbering) start(block int, kind Start) int {
	if block < 0 || block >= len(n.nodes) {
		return -1
	}
	of := n.nodes[block].starts
	for i := of.from; i < of.to; i++ {
		if n.starts[i].kind == kind {
			return int(i)
		}
	}
	return -1
}

// Step walks the edge between two blocks. Either the path goes on and inc is to be added to its
// number; or the edge ends it: then inc completes its number, end says how, and the next path
// starts at to in the way that next says. The edge from a call to its continuation ends its path,
// as Finish(from, EndCall) does. What is no edge of the routine cuts the path: the answer is true,
// EndCut, StartResume. Cost: a few comparisons; a binary search behind a large switch.
func (n *Numbering) Step(from, to int) (inc uint64, ends bool, end End, next Start) {
	if e := n.edge(from, to); e != nil {
		return e.inc, e.ends, e.end, e.next
	}
	return 0, true, EndCut, StartResume
}

func (n *Numbering) edge(from, to int) *edge {
	if from < 0 || from >= len(n.nodes) {
		return nil
	}
	edges := n.edgesOf(from)
	const few = 8
	if len(edges) > few {
		i := sort.Search(len(edges), func(i int) bool { return int(edges[i].to) >= to })
		edges = edges[i:min(i+1, len(edges))]
	}
	for i := range edges {
		if int(edges[i].to) == to {
			return &edges[i]
		}
	}
	return nil
}

// Finish returns what completes the number of a path that ends with the block in that way, which
// has to be one of the block's ends (0 otherwise).
func (n *Numbering) Finish(block int, end End) (inc uint64) {
	inc, _ = n.nodes[block].findExit(end)
	return inc
}

// Decode returns the path that has the number.
func (n *Numbering) Decode(id uint64) (Path, error) {
	if id >= n.Total {
		return Path{}, fmt.Errorf("decode path %d: the routine has %d paths", id, n.Total)
	}
	s := &n.starts[sort.Search(len(n.starts), func(i int) bool { return n.starts[i].first > id })-1]
	p := Path{Start: s.kind}
	rest := id - s.first
	for b := int(s.block); ; {
		p.Blocks = append(p.Blocks, b)
		v := &n.nodes[b]
		if rest < uint64(v.nexits) {
			p.End = v.exits[rest]
			return p, nil
		}
		e := n.onward(b, rest)
		rest -= e.inc
		b = int(e.to)
	}
}

// onward returns the edge from a block that the rest of a number, greater than that of all exits,
// leads along.
func (n *Numbering) onward(block int, rest uint64) *edge {
	var best *edge
	edges := n.edgesOf(block)
	for i := range edges {
		if e := &edges[i]; !e.ends && e.inc <= rest {
			best = e
		}
	}
	return best
}

// Encode returns the number of a path.
func (n *Numbering) Encode(p Path) (uint64, error) {
	if len(p.Blocks) == 0 {
		return 0, fmt.Errorf("encode path: it has no blocks")
	}
	id, ok := n.Begin(p.Blocks[0], p.Start)
	if !ok {
		return 0, fmt.Errorf("encode path: no path starts at block %d by %v", p.Blocks[0], p.Start)
	}
	for i, to := range p.Blocks[1:] {
		inc, ends, end, _ := n.Step(p.Blocks[i], to)
		if ends {
			return 0, fmt.Errorf("encode path: the edge from block %d to %d ends it (%v)",
				p.Blocks[i], to, end)
		}
		id += inc
	}
	last := p.Blocks[len(p.Blocks)-1]
	inc, ok := n.nodes[last].findExit(p.End)
	if !ok {
		return 0, fmt.Errorf("encode path: no path ends at block %d by %v", last, p.End)
	}
	return id + inc, nil
}
