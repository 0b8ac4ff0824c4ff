package decoder

import (
	"wpptrace/bpf/wire"
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
	before bool     // nothing of the path has run since it was interrupted: next is where it goes on
	insn   int      // if before: the next instruction there
	told   []choice // what is known already of the ways to come
	reach  *reach
	moves  []cached
	exits  [2]exits // the call where it stands has been made: 1
}

// A choice is a switch or a conditional jump whose way is known.
type choice struct {
	block int
	next  []int
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
	told           uint64
}

// mostCases bounds the states that a routine keeps of those: a value may tell very many things.
const mostCases = 1 << 12

// inCase is the state after a witness that tells a switch's case, or by a value the ways of jumps;
// nil if it cannot be what the place holds.
func (r *routine) inCase(s *plan.Site, outcome int, value uint64) *state {
	told, ok := r.caseOf(s.Case, value)
	if !ok {
		return nil
	}
	k := caseKey{s.Block, outcome, told}
	st := r.cases[k]
	if st == nil {
		st = &state{r: r, block: s.Block, next: r.after(s.Block, outcome), told: r.choices(s.Case, told)}
		if s.Block == s.Case.Table {
			st.next = st.told[0].next
		}
		if r.cases == nil || len(r.cases) >= mostCases {
			r.cases = map[caseKey]*state{}
		}
		r.cases[k] = st
	}
	return st
}

// caseOf is a number for what a value tells: where the switch goes, or a bit for each jump.
func (r *routine) caseOf(c *plan.Case, value uint64) (told uint64, ok bool) {
	if c.Jumps == nil {
		target, ok := r.caseTarget(c, value)
		return uint64(target), ok
	}
	for i, j := range c.Jumps {
		if r.Asks(j).Holds(value) {
			told |= 1 << i
		}
	}
	return told, value>>(8*c.Operand.Size) == 0
}

// choices are what such a number stands for.
func (r *routine) choices(c *plan.Case, told uint64) []choice {
	if c.Jumps == nil {
		return []choice{{c.Table, []int{int(told)}}}
	}
	list := make([]choice, len(c.Jumps))
	for i, j := range c.Jumps {
		list[i] = choice{j, r.Blocks[j].Succ[1:]}
		if told>>i&1 == 1 {
			list[i].next = r.Blocks[j].Succ[:1]
		}
	}
	return list
}

func (r *routine) caseTarget(c *plan.Case, value uint64) (block int, ok bool) {
	table := r.Blocks[c.Table]
	if c.Target {
		for _, b := range table.Succ {
			if r.Blocks[b].Lo == value {
				return b, true
			}
		}
		return 0, false
	}
	i := (value + uint64(c.Bias)) & (1<<min(8*uint(c.Operand.Size), wire.CaseBits) - 1)
	if i >= uint64(len(table.Table.Targets)) {
		return 0, false
	}
	return table.Table.Targets[i], true
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
	for i := range s.told {
		if s.told[i].block == b {
			return s.told[i].next
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
