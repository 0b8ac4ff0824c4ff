package paths

import "wpptrace/loader/cfg"

// order is what a depth-first walk of a routine's graph finds. The edges from a call to its
// continuation are not walked: paths end there anyway, and fewer edges are back edges so.
type order struct {
	post []int32 // all blocks, each after those that its edges lead to, back edges aside
	rank []int32 // by block: its place in post
}

// visit is a block on the way from the root, with the next of its successors to look at.
type visit struct{ block, next int }

// The rank of a block that is not done.
const (
	unseen  = -1
	ongoing = -2 // on the way from the root
)

// walk goes through all blocks: from the entry, then from the blocks after calls, then from the
// landing pads, then from what is left, each in the order of their indices.
func walk(r *cfg.Routine) *order {
	n := len(r.Blocks)
	o := &order{post: make([]int32, 0, n), rank: make([]int32, n)}
	for b := range o.rank {
		o.rank[b] = unseen
	}
	stack := make([]visit, 0, 64)
	root := func(b int) {
		if o.rank[b] == unseen {
			stack = o.from(r, b, stack[:0])
		}
	}
	root(r.Entry)
	for b := range r.Blocks {
		if bl := &r.Blocks[b]; bl.CallReturns() && len(bl.Succ) > 0 && bl.Succ[0] >= 0 {
			root(bl.Succ[0])
		}
	}
	for _, pad := range r.Pads {
		root(pad)
	}
	for b := range r.Blocks {
		root(b)
	}
	return o
}

// from walks everything new that is reached from the block root. It keeps its own stack: routines
// are input.
func (o *order) from(r *cfg.Routine, root int, stack []visit) []visit {
	o.rank[root] = ongoing
	stack = append(stack, visit{root, 0})
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		bl := &r.Blocks[top.block]
		if bl.CallReturns() || top.next == len(bl.Succ) {
			o.rank[top.block] = int32(len(o.post))
			o.post = append(o.post, int32(top.block))
			stack = stack[:len(stack)-1]
			continue
		}
		to := bl.Succ[top.next]
		top.next++
		if to >= 0 && o.rank[to] == unseen {
			o.rank[to] = ongoing
			stack = append(stack, visit{to, 0})
		}
	}
	return stack
}

// isBack says whether the edge from block b to block to, which is not one from a call, is a back
// edge: it leads to a block that was not done when b was.
func (o *order) isBack(b, to int) bool { return o.rank[to] >= o.rank[b] }
