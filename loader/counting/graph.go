package counting

import (
	"slices"

	"wpptrace/loader/cfg"
	"wpptrace/loader/paths"
)

// A move is a way from a block: to another one on the same path, or to the path's end.
type move struct {
	out  uint8 // the outcome of the block's conditional jump, if it tells moves apart
	to   int   // the block; cfg.Exit where the activation ends, or nothing is known to follow
	ends bool
	end  paths.End
	next paths.Start // how the next path starts at to
	hard bool        // other activations may run before that, and the thread's state be lost
}

// A start is where a path may begin after other activations have run, or none has.
type start struct {
	block int
	kind  paths.Start
}

// A graph is what paths are made of.
type graph struct {
	r       *cfg.Routine
	moves   [][]move // by block
	decides []bool   // by block: the outcome of its conditional jump tells its moves apart
	entries []start
	pads    []start
}

func newGraph(r *cfg.Routine, n *paths.Numbering) *graph {
	g := &graph{r: r, moves: make([][]move, len(r.Blocks)), decides: make([]bool, len(r.Blocks))}
	for b := range r.Blocks {
		g.moves[b], g.decides[b] = movesOf(&r.Blocks[b], b, n)
	}
	for _, b := range append([]int{r.Entry}, r.Others...) {
		g.entries = append(g.entries, start{b, paths.StartEntry})
	}
	for _, b := range r.Pads {
		g.pads = append(g.pads, start{b, paths.StartPad})
	}
	return g
}

func movesOf(bl *cfg.Block, b int, n *paths.Numbering) (list []move, decides bool) {
	leaves := func(end paths.End) []move {
		return []move{{to: cfg.Exit, ends: true, end: end, hard: true}}
	}
	switch bl.End {
	case cfg.Call, cfg.CallInd:
		list = leaves(paths.EndCall)
		if bl.CallReturns() {
			list[0].to, list[0].next = bl.Succ[0], paths.StartCall
		}
		return list, false
	case cfg.Ret:
		return leaves(paths.EndReturn), false
	case cfg.Tail, cfg.TailInd:
		return leaves(paths.EndTail), false
	case cfg.NoReturn, cfg.Trap:
		return leaves(paths.EndNoReturn), false
	}
	for i, to := range bl.Succ {
		m := move{to: to, ends: true, end: paths.EndTail, hard: true}
		if to != cfg.Exit {
			_, m.ends, m.end, m.next = n.Step(b, to)
			m.hard = false
		}
		if bl.End == cfg.Jcc && i == 0 {
			m.out = 1
		}
		list = append(list, m)
	}
	if bl.End == cfg.Jcc && len(list) == 2 && list[0].differs(&list[1]) {
		return list, true
	}
	for i := range list {
		list[i].out = 0
	}
	return slices.Compact(list), false
}

// differs reports whether a path is another one if it goes the other way.
func (m *move) differs(o *move) bool {
	return m.ends != o.ends || m.end != o.end || !m.ends && m.to != o.to
}

// hideOutcome says that hits of a block do not say which way its conditional jump goes.
func (g *graph) hideOutcome(b int) {
	g.decides[b] = false
	for i := range g.moves[b] {
		g.moves[b][i].out = 0
	}
}

// follow returns the moves from a block with an outcome.
func (g *graph) follow(b int, out uint8) []move {
	all := g.moves[b]
	if !g.decides[b] {
		return all
	}
	for i := range all {
		if all[i].out == out {
			return all[i : i+1]
		}
	}
	return nil
}

// outcomes is how many outcomes a block has.
func (g *graph) outcomes(b int) uint8 {
	if g.decides[b] {
		return 2
	}
	return 1
}

// follows returns the start that the path after a soft end begins with.
func (m *move) follows() start { return start{m.to, m.next} }
