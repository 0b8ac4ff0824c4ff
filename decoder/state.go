package decoder

import (
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
)

const exit = cfg.Exit

// A state is the position of an activation: the block that spoke last (or that it is known to have
// come to), and which way it goes from there.
type state struct {
	r      *routine
	block  int // exit: nothing has run yet
	next   []int
	before bool       // nothing of the path has run since it was interrupted: next is where it goes on
	insn   int        // if before: the next instruction there
	known  []plan.Way // what is known already of the ways to come
	reach  *reach
	moves  []cached
	exits  [2]exits // the call where it stands has been made: 1
}

type cached struct {
	to     int
	called bool
	move   *move // nil: there is no way
}

// A reach is what can run from a state on without a word.
type reach struct {
	nodes []node
	exits []int // indices in nodes; exit: the state's own block leaves
	open  []int // blocks that call unknown code, and say nothing of it
}

type node struct {
	block  int
	parent int // index in nodes, or exit for the first
}

// atEntry is the state of an activation that has not run yet.
func (r *routine) atEntry() *state {
	i := 2 * len(r.Blocks)
	if r.states[i] == nil {
		r.states[i] = &state{r: r, block: exit, next: append([]int{r.Entry}, r.Others...)}
	}
	return r.states[i]
}

// at is the state after block b: when its probe said outcome, or when it is known to have come
// there without a word.
func (r *routine) at(b, outcome int) *state {
	i := 2*b + outcome
	if r.states[i] == nil {
		r.states[i] = &state{r: r, block: b, next: r.after(b, outcome)}
	}
	return r.states[i]
}

// justBefore is the state of an activation that was interrupted before instruction k of block b,
// and before its probe.
func (r *routine) justBefore(b, k int) *state {
	return &state{r: r, block: exit, before: true, next: []int{b}, insn: k}
}

// after lists the nodes that may follow block b.
func (r *routine) after(b, outcome int) []int {
	block := &r.Blocks[b]
	if block.End == cfg.Jcc {
		if s := r.Site(b); s != nil && s.Condition < plan.NoCondition {
			return block.Succ[1-outcome : 2-outcome]
		}
	}
	return block.After()
}

// A caseKey names a state after a witness that tells a case or a value.
type caseKey struct {
	block, outcome int
	decision       uint64
}

// mostCases bounds the states that a routine keeps of those: a value may tell very many things.
const mostCases = 1 << 12

// inCase is the state after a witness that tells a switch's case, or by a value the ways of jumps;
// nil if it cannot be what the place holds.
func (r *routine) inCase(s *plan.Site, outcome int, value uint64) *state {
	decision, ok := s.Capture.Decode(r.Routine, value)
	if !ok {
		return nil
	}
	k := caseKey{s.Block, outcome, decision}
	st := r.cases[k]
	if st == nil {
		st = &state{r: r, block: s.Block, next: r.after(s.Block, outcome), known: s.Capture.Ways(r.Routine, decision)}
		if s.Block == s.Capture.Table {
			st.next = st.known[0].Next
		}
		if r.cases == nil || len(r.cases) >= mostCases {
			r.cases = map[caseKey]*state{}
		}
		r.cases[k] = st
	}
	return st
}

// quiet reports whether control can pass block b, which has no probe, without a word of the code
// that it calls.
func (r *routine) quiet(b int) bool {
	return r.kind[b] != plan.Known || r.callee[b].silent() != nil
}

// silentWays finds what can run from the state on without a word. called: the call that ends the
// state's block has been made already.
func (s *state) silentWays() *reach {
	if s.reach != nil {
		return s.reach
	}
	w := &reach{}
	s.reach = w
	seen := make([]bool, len(s.r.Blocks))
	add := func(b, parent int) {
		if b == exit {
			w.exits = append(w.exits, parent)
		} else if !seen[b] {
			seen[b] = true
			w.nodes = append(w.nodes, node{b, parent})
		}
	}
	for _, b := range s.next {
		add(b, exit)
	}
	for i := 0; i < len(w.nodes); i++ {
		b := w.nodes[i].block
		switch {
		case s.r.Site(b) != nil, s.r.Blocks[b].CallReturns() && !s.r.quiet(b):
		default:
			if s.r.kind[b] == plan.Unknown && s.r.Blocks[b].End != cfg.TailInd {
				w.open = append(w.open, b)
			}
			for _, n := range s.after(b) {
				add(n, i)
			}
		}
	}
	return w
}

// after lists the nodes that may follow block b, which has no probe.
func (s *state) after(b int) []int {
	for i := range s.known {
		if s.known[i].Block == b {
			return s.known[i].Next
		}
	}
	return s.r.after(b, 0)
}

// way lists the blocks from the state to node i, node i included.
func (w *reach) way(i int) (blocks []int) {
	n := 0
	for k := i; k != exit; k = w.nodes[k].parent {
		n++
	}
	blocks = make([]int, n)
	for ; i != exit; i = w.nodes[i].parent {
		n--
		blocks[n] = w.nodes[i].block
	}
	return blocks
}

// find returns the index of the node of block b, if it can be reached.
func (w *reach) find(b int) (i int, ok bool) {
	for i := range w.nodes {
		if w.nodes[i].block == b {
			return i, true
		}
	}
	return 0, false
}
