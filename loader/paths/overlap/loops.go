package overlap

import (
	"slices"

	"wpptrace/loader/cfg"
	"wpptrace/loader/paths"
)

// A Loop is a natural loop with all back edges to its head. Back edges are those that end acyclic
// paths (package paths): a loop whose every round calls has none, and is none here.
type Loop struct {
	Head    int
	Latches []int // blocks with a back edge to the head, ascending
	Blocks  []int // of its body, the head and inner loops included, ascending
	// why paths over its back edges are not told apart; "" if they are
	LeftOut string
}

// Has reports whether a block is in the loop.
func (l *Loop) Has(block int) bool {
	_, ok := slices.BinarySearch(l.Blocks, block)
	return ok
}

// Irreducible is why a loop is left out whose head execution can get around.
const Irreducible = "the loop can be entered other than at its head"

// findLoops returns the loops of a routine by their heads, ascending.
func findLoops(r *cfg.Routine, n *paths.Numbering) []Loop {
	latches := map[int][]int{}
	for b := range r.Blocks {
		if r.Blocks[b].CallReturns() {
			continue
		}
		for _, to := range distinct(r.Blocks[b].Succ) {
			if _, ends, end, _ := n.Step(b, to); ends && end == paths.EndLoop {
				latches[to] = append(latches[to], b)
			}
		}
	}
	if len(latches) == 0 {
		return nil
	}
	d := newDominance(r)
	loops := make([]Loop, 0, len(latches))
	for head, from := range latches {
		l := Loop{Head: head, Latches: from}
		if slices.ContainsFunc(from, func(b int) bool { return !d.dominates(head, b) }) {
			l.LeftOut = Irreducible
		} else {
			l.Blocks = d.body(head, from)
		}
		loops = append(loops, l)
	}
	slices.SortFunc(loops, func(a, b Loop) int { return a.Head - b.Head })
	return loops
}

// distinct returns the blocks among successors, ascending, each once.
func distinct(succ []int) []int {
	list := make([]int, 0, len(succ))
	for _, to := range succ {
		if to >= 0 {
			list = append(list, to)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// A dominance says which blocks every way from the routine's entries to a block passes. Calls go on
// to their continuations and to their landing pads.
type dominance struct {
	before [][]int32 // by block
	rank   []int32   // by block: its place in reverse postorder, from 1; 0: not reached
	idom   []int32   // by rank; 0 is the root, which stands before all entries
}

func newDominance(r *cfg.Routine) *dominance {
	n := len(r.Blocks)
	d := &dominance{before: make([][]int32, n), rank: make([]int32, n)}
	after := make([][]int, n)
	padded := map[int]bool{}
	for b := range r.Blocks {
		bl := &r.Blocks[b]
		after[b] = distinct(slices.Concat(bl.Succ, bl.Pads))
		for _, pad := range bl.Pads {
			padded[pad] = true
		}
		for _, to := range after[b] {
			d.before[to] = append(d.before[to], int32(b))
		}
	}
	roots := slices.Concat([]int{r.Entry}, r.Others)
	for _, pad := range r.Pads {
		if r.Faulty || !padded[pad] {
			roots = append(roots, pad)
		}
	}
	post := postorder(after, roots)
	order := make([]int, 1, n+1) // by rank
	for i := len(post) - 1; i >= 0; i-- {
		d.rank[post[i]] = int32(len(order))
		order = append(order, post[i])
	}
	isRoot := make([]bool, n)
	for _, b := range roots {
		isRoot[b] = true
	}
	d.solve(order, isRoot)
	return d
}

// postorder returns the blocks that are reached, each after those that its edges lead to, edges
// back aside. It keeps its own stack: routines are input.
func postorder(after [][]int, roots []int) []int {
	type visit struct{ block, next int }
	var post []int
	var stack []visit
	seen := make([]bool, len(after))
	for _, root := range roots {
		if seen[root] {
			continue
		}
		seen[root] = true
		stack = append(stack, visit{root, 0})
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if top.next == len(after[top.block]) {
				post = append(post, top.block)
				stack = stack[:len(stack)-1]
				continue
			}
			to := after[top.block][top.next]
			top.next++
			if !seen[to] {
				seen[to] = true
				stack = append(stack, visit{to, 0})
			}
		}
	}
	return post
}

// solve finds immediate dominators (Cooper, Harvey and Kennedy 2001).
func (d *dominance) solve(order []int, isRoot []bool) {
	const unknown = -1
	d.idom = make([]int32, len(order))
	for i := 1; i < len(order); i++ {
		d.idom[i] = unknown
	}
	for changed := true; changed; {
		changed = false
		for i := 1; i < len(order); i++ {
			found := int32(unknown)
			if isRoot[order[i]] {
				found = 0
			}
			for _, b := range d.before[order[i]] {
				rank := d.rank[b]
				if rank == 0 || d.idom[rank] == unknown {
					continue
				}
				if found == unknown {
					found = rank
				} else {
					found = d.common(found, rank)
				}
			}
			if found != d.idom[i] {
				d.idom[i], changed = found, true
			}
		}
	}
}

func (d *dominance) common(a, b int32) int32 {
	for a != b {
		for a > b {
			a = d.idom[a]
		}
		for b > a {
			b = d.idom[b]
		}
	}
	return a
}

// dominates reports whether every way to block b passes block a. No way leads to a block that is
// not reached: then it is false.
func (d *dominance) dominates(a, b int) bool {
	at, by := d.rank[b], d.rank[a]
	if at == 0 || by == 0 {
		return false
	}
	for at > by {
		at = d.idom[at]
	}
	return at == by
}

// body returns the blocks from which the latches are reached without passing the head, and the
// head.
func (d *dominance) body(head int, latches []int) []int {
	in := map[int]bool{head: true}
	list := []int{head}
	add := func(b int) {
		if !in[b] && d.rank[b] != 0 {
			in[b] = true
			list = append(list, b)
		}
	}
	for _, b := range latches {
		add(b)
	}
	for i := 1; i < len(list); i++ {
		for _, b := range d.before[list[i]] {
			add(int(b))
		}
	}
	slices.Sort(list)
	return list
}
