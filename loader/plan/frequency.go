package plan

import (
	"slices"

	"wpptrace/loader/cfg"
)

// Static branch heuristics after Ball and Larus 1993, coarse: loops run ten times, ways that cannot return are rare.
const (
	loopRounds = 10
	mostRounds = 1000
	coldWeight = 0.02
	exitWeight = 0.11
	padWeight  = 0.001
	leastFreq  = 1e-6
)

// flow is the routine's CFG as the estimate of frequencies sees it.
type flow struct {
	r    *cfg.Routine
	post []int  // postorder
	back []edge // back edges
	head []bool // loop headers
	loop []loop
	cold []bool
}

type edge struct{ from, to int }

// A loop is a header and the blocks that reach it again.
type loop struct {
	header int
	has    []bool
}

// frequencies estimates how often each block runs for one activation.
func frequencies(r *cfg.Routine) []float64 {
	f := &flow{r: r, head: make([]bool, len(r.Blocks))}
	f.order()
	f.findLoops()
	f.findCold()
	freq := make([]float64, len(r.Blocks))
	freq[r.Entry] = 1
	for _, b := range r.Others {
		freq[b] = 1
	}
	for _, p := range r.Pads {
		freq[p] = padWeight
	}
	for i := len(f.post) - 1; i >= 0; i-- {
		v := f.post[i]
		if f.head[v] {
			freq[v] = min(freq[v]*loopRounds, mostRounds)
		}
		f.spread(v, freq)
	}
	for v := range freq {
		freq[v] = max(freq[v], leastFreq)
	}
	return freq
}

// order walks the blocks depth first, without recursion.
func (f *flow) order() {
	color := make([]byte, len(f.r.Blocks))
	type visit struct{ v, i int }
	var stack []visit
	walk := func(root int) {
		if color[root] != 0 {
			return
		}
		color[root] = 1
		stack = append(stack, visit{v: root})
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			succ := f.r.Blocks[top.v].Succ
			if top.i == len(succ) {
				color[top.v] = 2
				f.post = append(f.post, top.v)
				stack = stack[:len(stack)-1]
				continue
			}
			w := succ[top.i]
			top.i++
			switch {
			case w < 0:
			case color[w] == 0:
				color[w] = 1
				stack = append(stack, visit{v: w})
			case color[w] == 1:
				f.back = append(f.back, edge{top.v, w})
				f.head[w] = true
			}
		}
	}
	walk(f.r.Entry)
	for _, b := range f.r.Others {
		walk(b)
	}
	for _, p := range f.r.Pads {
		walk(p)
	}
}

// findLoops finds each header's blocks: those that reach a back edge to it without passing it.
func (f *flow) findLoops() {
	if len(f.back) == 0 {
		return
	}
	pred := make([][]int, len(f.r.Blocks))
	for v := range f.r.Blocks {
		for _, w := range f.r.Blocks[v].Succ {
			if w >= 0 {
				pred[w] = append(pred[w], v)
			}
		}
	}
	var stack []int
	for _, e := range f.back {
		has := f.loopOf(e.to)
		stack = append(stack[:0], e.from)
		for len(stack) > 0 {
			v := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if !has[v] {
				has[v] = true
				stack = append(stack, pred[v]...)
			}
		}
	}
}

func (f *flow) loopOf(header int) []bool {
	for _, l := range f.loop {
		if l.header == header {
			return l.has
		}
	}
	has := make([]bool, len(f.r.Blocks))
	has[header] = true
	f.loop = append(f.loop, loop{header, has})
	return has
}

// findCold finds the blocks that lead to no return.
func (f *flow) findCold() {
	f.cold = make([]bool, len(f.r.Blocks))
	for _, v := range f.post {
		b := &f.r.Blocks[v]
		cold := b.End == cfg.NoReturn || b.End == cfg.Trap
		if !cold && len(b.Succ) > 0 {
			cold = true
			for _, w := range b.Succ {
				cold = cold && w >= 0 && f.cold[w]
			}
		}
		f.cold[v] = cold
	}
}

// spread hands a block's frequency to its successors.
func (f *flow) spread(v int, freq []float64) {
	succ := f.r.Blocks[v].Succ
	weights := make([]float64, len(succ))
	total := 0.0
	for i, w := range succ {
		weights[i] = 1
		if w >= 0 && f.cold[w] {
			weights[i] = coldWeight
		}
		if w >= 0 && f.leavesLoop(v, w) {
			weights[i] *= exitWeight
		}
		total += weights[i]
	}
	for i, w := range succ {
		if w >= 0 && !f.isBack(v, w) {
			freq[w] += freq[v] * weights[i] / total
		}
	}
}

func (f *flow) isBack(v, w int) bool {
	return f.head[w] && slices.Contains(f.back, edge{v, w})
}

func (f *flow) leavesLoop(v, w int) bool {
	for _, l := range f.loop {
		if l.has[v] && !l.has[w] {
			return true
		}
	}
	return false
}

// Expected activations are spread over direct calls a few rounds deep; a routine that anybody may enter has one besides.
const (
	callRounds = 4
	mostCalls  = 1e6
)

// expect estimates how often each routine is entered.
func (p *Plan) expect() {
	for _, r := range p.Routines {
		r.entry = 1
	}
	sum := make([]float64, len(p.Routines))
	for range callRounds {
		for i, r := range p.Routines {
			sum[i] = 0
			if r.rootable || !r.Observed() {
				sum[i] = 1
			}
		}
		for _, r := range p.Routines {
			if !r.Observed() {
				continue
			}
			for b := range r.Blocks {
				if kind, t := r.Callee(b); kind == Known {
					sum[t.ID] += r.entry * r.freq[b]
				}
			}
		}
		for i, r := range p.Routines {
			r.entry = min(sum[i], mostCalls)
		}
	}
}
