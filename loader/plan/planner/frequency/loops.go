package frequency

import (
	"slices"

	"wpptrace/internal/grouped"
	"wpptrace/loader/cfg"
)

// A nest says how the loops of a routine lie within one another (Havlak, Nesting of Reducible and
// Irreducible Loops, 1997). A loop is named by its header; two that share one are one. Cost: nearly
// linear in the routine's size; of a loop that is entered in its middle, as goto can, also in the
// loops around it.
type nest struct {
	r      *cfg.Routine
	pre    []int32 // blocks as a depth-first walk comes to them
	post   []int32 // and as it leaves them
	place  []int32 // by block: where it is in pre
	last   []int32 // by block: the last place of those that the walk came to from it
	tree   []int32 // by block: the number of the root that the walk came to it from
	header []bool  // by block
	outer  []int32 // by block: the header of the innermost loop that it is in, but its own; none

	// Of a routine that has loops.
	depth []int32       // by header: the loops that it is in
	preds grouped.Lists // by block
	// by block: the header of the largest loop found so far that it is in, by way of others; itself
	in    []int32
	body  []int32           // of the loop that is being gathered, loops within as their headers
	mark  []int32           // by block: the header of the loop that it was last gathered into
	late  map[int32][]int32 // by header: blocks that enter its loop in the middle
	noted []int32           // by block: the header that it was last noted so for
}

// none is no block.
const none = -1

func newNest(r *cfg.Routine) *nest {
	size := len(r.Blocks)
	numbers := rooms(6, size)
	n := &nest{r: r, pre: numbers()[:0], post: numbers()[:0], place: numbers(), last: numbers(),
		tree: numbers(), outer: numbers(), header: make([]bool, size)}
	for b := range n.place {
		n.place[b], n.outer[b] = none, none
	}
	n.walk(int32(r.Entry))
	for _, b := range r.Others {
		n.walk(int32(b))
	}
	for _, p := range r.Pads {
		n.walk(int32(p))
	}
	if slices.Contains(n.header, true) {
		n.gatherAll()
	}
	return n
}

// rooms returns what gives room for so many lists of numbers, one after the other.
func rooms(lists, size int) func() []int32 {
	room := make([]int32, lists*size)
	return func() []int32 {
		part := room[:size:size]
		room = room[size:]
		return part
	}
}

// gatherAll finds what is in each loop.
func (n *nest) gatherAll() {
	size := len(n.r.Blocks)
	n.preds = grouped.By(size, func(add func(to, from int32)) {
		for b := range n.r.Blocks {
			for _, to := range n.r.Blocks[b].Succ {
				if to >= 0 {
					add(int32(to), int32(b))
				}
			}
		}
	})
	numbers := rooms(4, size)
	n.depth, n.in, n.mark, n.noted, n.late = numbers(), numbers(), numbers(), numbers(),
		map[int32][]int32{}
	for b := range n.in {
		n.mark[b], n.noted[b], n.in[b] = none, none, int32(b)
	}
	for i := len(n.pre) - 1; i >= 0; i-- {
		if n.header[n.pre[i]] {
			n.gather(n.pre[i])
		}
	}
	for _, h := range n.pre {
		if o := n.outer[h]; n.header[h] && o != none {
			n.depth[h] = n.depth[o] + 1
		}
	}
}

// walk walks from a root, depth first, without recursion.
func (n *nest) walk(root int32) {
	type visit struct{ block, next int32 }
	var stack []visit
	enter := func(b int32) {
		n.place[b], n.last[b], n.tree[b] = int32(len(n.pre)), int32(len(n.r.Blocks)), root
		n.pre = append(n.pre, b)
		stack = append(stack, visit{block: b})
	}
	if n.place[root] != none {
		return
	}
	for enter(root); len(stack) > 0; {
		top := &stack[len(stack)-1]
		succ := n.r.Blocks[top.block].Succ
		if int(top.next) == len(succ) {
			n.last[top.block] = int32(len(n.pre)) - 1
			n.post = append(n.post, top.block)
			stack = stack[:len(stack)-1]
			continue
		}
		to := int32(succ[top.next])
		top.next++
		switch {
		case to < 0:
		case n.place[to] == none:
			enter(to)
		case n.isBack(top.block, to):
			n.header[to] = true
		}
	}
}

// isBack reports whether an edge leads back to where the walk came from.
func (n *nest) isBack(from, to int32) bool {
	return n.place[to] <= n.place[from] && n.place[from] <= n.last[to]
}

// gather finds what is in the loop of a header: what reaches an edge back to it without passing it.
// Loops within have been gathered before.
func (n *nest) gather(header int32) {
	n.body = n.body[:0]
	for _, b := range n.preds.Of(int(header)) {
		if n.isBack(b, header) {
			n.add(header, n.outermost(b))
		}
	}
	for i := 0; i < len(n.body); i++ {
		b := n.body[i]
		for _, from := range n.preds.Of(int(b)) {
			if !n.isBack(from, b) {
				n.comeFrom(header, n.outermost(from))
			}
		}
		for _, from := range n.late[b] {
			n.comeFrom(header, n.outermost(from))
		}
	}
	for _, b := range n.body {
		n.outer[b], n.in[b] = header, header
	}
}

// comeFrom takes a block that leads into the middle of a loop to be in it, if the walk came to it
// from the header, or if it is the way on from a landing pad; else it enters the loop, and what
// loops the loop is in.
func (n *nest) comeFrom(header, b int32) {
	if n.isBack(b, header) || n.place[b] > n.place[header] && n.tree[b] != n.tree[header] {
		n.add(header, b)
	} else if n.noted[b] != header {
		n.noted[b] = header
		n.late[header] = append(n.late[header], b)
	}
}

func (n *nest) add(header, b int32) {
	if b != header && n.mark[b] != header {
		n.mark[b] = header
		n.body = append(n.body, b)
	}
}

// outermost is the header of the largest loop found so far that a block is in, or the block.
func (n *nest) outermost(b int32) int32 {
	for n.in[b] != b {
		n.in[b] = n.in[n.in[b]]
		b = n.in[b]
	}
	return b
}

// inner is the header of the innermost loop that a block is in, or none.
func (n *nest) inner(b int32) int32 {
	if n.header[b] {
		return b
	}
	return n.outer[b]
}

// leaves reports whether an edge leads out of a loop.
func (n *nest) leaves(from, to int32) bool {
	loop := n.inner(from)
	if loop == none {
		return false
	}
	around := n.inner(to)
	for around != none && n.depth[around] > n.depth[loop] {
		around = n.outer[around]
	}
	return around != loop
}
