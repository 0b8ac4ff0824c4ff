package route

import (
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
)

// Exit is the node that every way out of a routine leads to, beside the indices of its blocks. As
// the block of a Position it stands for none: nothing has run yet.
const Exit = cfg.Exit

// A Position is where an activation stands: behind the block of its last event (or one that it is
// known to have come to), and where it goes from there. Positions are shared: they do not change
// but for the routes that are found from them.
type Position struct {
	Routine *Routine
	Block   int   // Exit: nothing has run yet
	Next    []int // the nodes that may follow
	Resumed bool  // nothing of the path has run since it was interrupted: Next is where it goes on

	insn   int        // if Resumed: the next instruction there
	known  []plan.Way // where blocks ahead go, by what the last event has captured
	free   *Region
	routes []cachedRoute
	exits  [2]exits // 1: the call where it stands has been made
}

type cachedRoute struct {
	to         int
	called     bool
	transition *Transition // nil: there is no route
}

// A Region is what can run from a position on without an event.
type Region struct {
	Nodes    []Node
	External []int // blocks that call external code, and have no event there
	exits    []int // indices in Nodes; Exit: the position's own block leaves
}

// A Node is a block that a probe-free route leads to. The route ends there where the block has a
// site, or calls a routine that has events.
type Node struct {
	Block  int
	parent int // index in Nodes, or Exit for the first
}

// AtEntry is the position of an activation that has not run yet.
func (r *Routine) AtEntry() *Position {
	i := 2 * len(r.Blocks)
	if r.positions[i] == nil {
		next := append([]int{r.Plan.Entry}, r.Plan.Others...)
		r.positions[i] = &Position{Routine: r, Block: Exit, Next: next}
	}
	return r.positions[i]
}

// At is the position behind block b: its probe reported outcome, or it is known to have been
// reached without an event (0).
func (r *Routine) At(b, outcome int) *Position {
	i := 2*b + outcome
	if r.positions[i] == nil {
		r.positions[i] = &Position{Routine: r, Block: b, Next: r.after(b, outcome)}
	}
	return r.positions[i]
}

// after lists the nodes that may follow block b.
func (r *Routine) after(b, outcome int) []int {
	block := &r.Blocks[b]
	if block.End == cfg.Jcc {
		if s := r.Site(b); s != nil && s.Condition < plan.NoCondition {
			return block.Succ[1-outcome : 2-outcome]
		}
	}
	return block.After()
}

// A capturedKey names the position after an event with a captured value.
type capturedKey struct {
	block, outcome int
	decision       uint64
}

// mostCaptured bounds the positions that a routine keeps of those: a value may decide very many
// ways.
const mostCaptured = 1 << 12

// AtCaptured is the position behind a site whose event has captured a value that decides a switch
// or jumps ahead; nil if the operand cannot have that value.
func (r *Routine) AtCaptured(s *plan.Site, outcome int, value uint64) *Position {
	decision, ok := s.Capture.Decode(r.Plan, value)
	if !ok {
		return nil
	}
	k := capturedKey{s.Block, outcome, decision}
	p := r.captured[k]
	if p == nil {
		known := s.Capture.Ways(r.Plan, decision)
		p = &Position{Routine: r, Block: s.Block, Next: r.after(s.Block, outcome), known: known}
		if s.Block == s.Capture.Table {
			p.Next = known[0].Next
		}
		if r.captured == nil || len(r.captured) >= mostCaptured {
			r.captured = map[capturedKey]*Position{}
		}
		r.captured[k] = p
	}
	return p
}

// Before is the position of the same activation where it is interrupted before instruction k of
// block b, which it has come to without an event.
func (p *Position) Before(b, k int) *Position {
	return &Position{
		Routine: p.Routine, Block: Exit, Resumed: true, Next: []int{b}, insn: k, known: p.known,
	}
}

// Passes reports whether the activation can go on from where it stands: not if it stands at a call
// of a routine that has events, and has not made it (called).
func (p *Position) Passes(called bool) bool {
	if called || p.Block == Exit || !p.Routine.Blocks[p.Block].CallReturns() {
		return true
	}
	return p.Routine.callsFreely(p.Block)
}

// AtExternalCall reports whether the position's block calls external code.
func (p *Position) AtExternalCall() bool {
	b, r := p.Block, p.Routine
	return b != Exit && r.CallsExternal(b) && !r.JumpsOutside(b)
}

// StandsAt reports whether the activation has come no further since its last event than to
// instruction k of block b. Where that is the site of the event, the activation has come there
// anew, if it can have, unless the instruction is known to have been hit.
func (p *Position) StandsAt(b, k int, called, hit bool) bool {
	if p.Block != b || called {
		return false
	}
	s := p.Routine.Site(b)
	return s == nil || k > s.Insn || k == s.Insn && (hit || p.To(b, false) == nil)
}

// Free finds what can run from the position on without an event.
func (p *Position) Free() *Region {
	if p.free != nil {
		return p.free
	}
	g := &Region{}
	p.free = g
	seen := make([]bool, len(p.Routine.Blocks))
	add := func(b, parent int) {
		if b == Exit {
			g.exits = append(g.exits, parent)
		} else if !seen[b] {
			seen[b] = true
			g.Nodes = append(g.Nodes, Node{b, parent})
		}
	}
	for _, b := range p.Next {
		add(b, Exit)
	}
	for i := 0; i < len(g.Nodes); i++ {
		b, r := g.Nodes[i].Block, p.Routine
		if r.Site(b) != nil || r.Blocks[b].CallReturns() && !r.callsFreely(b) {
			continue
		}
		if r.Kinds[b] == plan.Unknown && r.Blocks[b].End != cfg.TailInd {
			g.External = append(g.External, b)
		}
		for _, n := range p.after(b) {
			add(n, i)
		}
	}
	return g
}

// after lists the nodes that may follow block b, which has no probe.
func (p *Position) after(b int) []int {
	for i := range p.known {
		if p.known[i].Block == b {
			return p.known[i].Next
		}
	}
	return p.Routine.after(b, 0)
}

// route lists the blocks from the position to node i, node i included.
func (g *Region) route(i int) (blocks []int) {
	n := 0
	for k := i; k != Exit; k = g.Nodes[k].parent {
		n++
	}
	blocks = make([]int, n)
	for ; i != Exit; i = g.Nodes[i].parent {
		n--
		blocks[n] = g.Nodes[i].Block
	}
	return blocks
}

// Reaches reports whether a route leads to block b.
func (g *Region) Reaches(b int) bool {
	_, ok := g.find(b)
	return ok
}

// Route lists the blocks on the route to block b, b included; nil: there is none.
func (g *Region) Route(b int) []int {
	i, ok := g.find(b)
	if !ok {
		return nil
	}
	return g.route(i)
}

// find returns the index of the node of block b, if it can be reached.
func (g *Region) find(b int) (i int, ok bool) {
	for i := range g.Nodes {
		if g.Nodes[i].Block == b {
			return i, true
		}
	}
	return 0, false
}
