package overlap

import (
	"fmt"
	"slices"

	"wpptrace/internal/saturating"
	"wpptrace/loader/cfg"
	"wpptrace/loader/paths"
)

// A Graph is what of a routine its overlapping paths follow from: its loops, its predicates, and
// the graph of its acyclic paths. It is read-only and safe for concurrent use.
type Graph struct {
	routine    *cfg.Routine
	numbering  *paths.Numbering
	loops      []Loop
	predicates []bool  // by block
	onward     [][]int // by block: where paths go on, ascending
	ends       []bool  // by block: a path may end there
	order      []int   // blocks, each after those that it goes on to
	reaching   []uint64
}

// Of makes the graph of a routine. It fails where its paths have no numbers. Cost: about that of
// numbering its paths, and of finding dominators where it has loops.
func Of(r *cfg.Routine) (*Graph, error) {
	n, err := paths.Number(r)
	if err != nil {
		return nil, err
	}
	g := &Graph{routine: r, numbering: n, loops: findLoops(r, n)}
	g.predicates = make([]bool, len(r.Blocks))
	g.onward = make([][]int, len(r.Blocks))
	g.ends = make([]bool, len(r.Blocks))
	for b := range r.Blocks {
		g.predicates[b] = isPredicate(&r.Blocks[b])
		g.ends[b] = endsItself(&r.Blocks[b])
		for _, to := range distinct(r.Blocks[b].Succ) {
			if _, ends, _, _ := n.Step(b, to); ends {
				g.ends[b] = true
			} else {
				g.onward[b] = append(g.onward[b], to)
			}
		}
	}
	all := make([]int, len(r.Blocks))
	for b := range all {
		all[b] = b
	}
	g.order = postorder(g.onward, all)
	g.reach()
	return g, nil
}

// isPredicate reports whether a block has two or more successors. A way out of the routine is one.
func isPredicate(b *cfg.Block) bool {
	if b.IsCall() {
		return false
	}
	first := slices.Index(b.Succ, cfg.Exit) // of a conditional tail jump
	return len(distinct(b.Succ)) > 1 || first >= 0 && len(distinct(b.Succ)) > 0
}

// endsItself reports whether a path may end at the end of a block by something else than an edge
// to another one.
func endsItself(b *cfg.Block) bool {
	switch b.End {
	case cfg.Call, cfg.CallInd, cfg.Ret, cfg.Tail, cfg.TailInd, cfg.NoReturn, cfg.Trap:
		return true
	case cfg.Jcc:
		return slices.Contains(b.Succ, cfg.Exit)
	}
	return false
}

// reach counts the ways in which paths get to each block.
func (g *Graph) reach() {
	g.reaching = make([]uint64, len(g.onward))
	for i := len(g.order) - 1; i >= 0; i-- {
		b := g.order[i]
		for kind := paths.StartEntry; kind < paths.StartResume; kind++ {
			if _, ok := g.numbering.Begin(b, kind); ok {
				g.reaching[b]++
			}
		}
		// what reaches b is complete: all that lead to b come before it
		for _, to := range g.onward[b] {
			g.reaching[to] = saturating.Add(g.reaching[to], g.reaching[b])
		}
	}
}

// Numbering returns the numbers of the routine's acyclic paths.
func (g *Graph) Numbering() *paths.Numbering { return g.numbering }

// Loops returns the routine's loops by their heads, ascending, those that are left out too. The
// list is shared.
func (g *Graph) Loops() []Loop { return g.loops }

// LoopAt returns the index in Loops of the loop with that head, or -1.
func (g *Graph) LoopAt(head int) int {
	i, ok := slices.BinarySearchFunc(g.loops, head, func(l Loop, head int) int {
		return l.Head - head
	})
	if !ok {
		return -1
	}
	return i
}

// IsPredicate reports whether a block has two or more successors.
func (g *Graph) IsPredicate(block int) bool { return g.predicates[block] }

// Reaching is in how many ways acyclic paths get from their starts to a block. It stops at 2^64-1.
func (g *Graph) Reaching(block int) uint64 { return g.reaching[block] }

// OverBackEdges is how many acyclic paths end with a back edge of the loop. It stops at 2^64-1.
func (g *Graph) OverBackEdges(loop int) (count uint64) {
	for _, b := range g.loops[loop].Latches {
		count = saturating.Add(count, g.reaching[b])
	}
	return count
}

// Returning is how many acyclic paths end with a return. It stops at 2^64-1.
func (g *Graph) Returning() (count uint64) {
	for b := range g.routine.Blocks {
		if g.routine.Blocks[b].End == cfg.Ret {
			count = saturating.Add(count, g.reaching[b])
		}
	}
	return count
}

// check makes sure that a loop is one whose paths are told apart.
func (g *Graph) check(loop int) error {
	if l := &g.loops[loop]; l.LeftOut != "" {
		return fmt.Errorf("number overlapping paths of the loop at block %d of %s: %s", l.Head,
			g.routine.Name, l.LeftOut)
	}
	return nil
}
