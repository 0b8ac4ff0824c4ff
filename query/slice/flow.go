package slice

import (
	"slices"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
)

// A Flow is where control may go from each block of a routine: to blocks, or to Out.
type Flow [][]int

// Out is where control goes that leaves a routine for good.
const Out = -1

// Flows returns the flows of routines of a snapshot: what their instructions say, and of jumps
// whose targets are computed, where paths went. It takes time linear in the symbols.
func Flows(s *wpp.Snapshot, code *wet.Code) func(routine int) Flow {
	went := map[int][][2]int{}
	for i := range s.Symbols {
		x := &s.Symbols[i]
		for j := 1; j < len(x.Blocks); j++ {
			went[x.Routine] = append(went[x.Routine], [2]int{x.Blocks[j-1], x.Blocks[j]})
		}
	}
	return func(routine int) Flow {
		r := code.Routine(routine)
		if r == nil {
			return nil
		}
		f := flowOf(r)
		for _, edge := range went[routine] {
			f.add(edge[0], edge[1])
		}
		for block := range f {
			if len(f[block]) == 0 {
				f.add(block, Out)
			}
		}
		return f
	}
}

func (f Flow) add(from, to int) {
	if from >= 0 && from < len(f) && to < len(f) && !slices.Contains(f[from], to) {
		f[from] = append(f[from], to)
	}
}

// flowOf is what instructions say.
func flowOf(r *wet.Routine) Flow {
	f := make(Flow, len(r.Blocks))
	at := map[uint64]int{}
	for i := range r.Blocks {
		at[r.Blocks[i].Addr] = i
	}
	for i := range r.Blocks {
		b := &r.Blocks[i]
		if len(b.Insns) == 0 {
			continue
		}
		next := b.Addr
		for j := range b.Insns {
			next += uint64(b.Insns[j].Len)
		}
		to := func(addr uint64) {
			if block, ok := at[addr]; ok {
				f.add(i, block)
			} else {
				f.add(i, Out)
			}
		}
		switch in := &b.Insns[len(b.Insns)-1]; in.Op {
		case machine.JumpIf, machine.JumpCX, machine.Loop, machine.LoopEqual, machine.LoopUneven:
			to(next + uint64(in.Imm))
			to(next)
		case machine.Jump:
			if in.Src.Class == machine.Immediate {
				to(next + uint64(in.Imm))
			}
		case machine.Return:
			f.add(i, Out)
		case machine.Opaque:
			if in.Cause != machine.Stops {
				to(next)
			}
		default:
			to(next)
		}
	}
	return f
}

// postDominators returns the immediate post-dominator of each block: the nearest that each way from
// it to the end of the routine comes by, or Out. A block from which no way leads out has Out.
// (Cooper, Harvey and Kennedy: A Simple, Fast Dominance Algorithm, on the reversed graph.)
func (f Flow) postDominators() []int {
	n := len(f)
	before := make([][]int, n+1) // n is Out
	for from, list := range f {
		for _, to := range list {
			if to == Out {
				to = n
			}
			before[to] = append(before[to], from)
		}
	}
	order := postorder(before, n) // of the reversed graph: n is the last
	rank := make([]int, n+1)
	for i, block := range order {
		rank[block] = i + 1 // 0: no way leads out
	}
	nearest := make([]int, n+1)
	for i := range nearest {
		nearest[i] = Out
	}
	nearest[n] = n
	meet := func(a, b int) int {
		for a != b {
			for rank[a] < rank[b] {
				a = nearest[a]
			}
			for rank[b] < rank[a] {
				b = nearest[b]
			}
		}
		return a
	}
	for changed := true; changed; {
		changed = false
		for i := len(order) - 2; i >= 0; i-- {
			block, found := order[i], Out
			for _, to := range f[block] {
				if to == Out {
					to = n
				}
				switch {
				case rank[to] == 0 || nearest[to] == Out:
				case found == Out:
					found = to
				default:
					found = meet(found, to)
				}
			}
			if nearest[block] != found {
				nearest[block], changed = found, true
			}
		}
	}
	for i, to := range nearest {
		if to == n {
			nearest[i] = Out
		}
	}
	return nearest[:n]
}

// postorder is the order in which a walk from a node leaves the nodes that it reaches.
func postorder(next [][]int, from int) (order []int) {
	type visit struct{ node, edge int }
	seen := make([]bool, len(next))
	seen[from] = true
	for stack := []visit{{from, 0}}; len(stack) > 0; {
		top := &stack[len(stack)-1]
		if top.edge == len(next[top.node]) {
			order = append(order, top.node)
			stack = stack[:len(stack)-1]
			continue
		}
		to := next[top.node][top.edge]
		top.edge++
		if !seen[to] {
			seen[to] = true
			stack = append(stack, visit{to, 0})
		}
	}
	return order
}
