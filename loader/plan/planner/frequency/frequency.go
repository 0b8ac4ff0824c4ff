// Package frequency estimates how often each block of a routine runs, by its control flow alone.
package frequency

import (
	"slices"

	"wpptrace/loader/cfg"
	"wpptrace/loader/x86"
)

// Static branch heuristics after Ball and Larus 1993, coarse: loops run ten times, ways that cannot
// return are rare. Of a jump ahead the compiler knew more, and put in a straight line what it
// expected to be usual. A loop of one block that goes on while two things are equal seldom does.
const (
	loopRounds  = 10
	mostRounds  = 10000
	coldWeight  = 0.02
	exitWeight  = 0.11
	aheadWeight = 0.6
	equalWeight = 0.1
	padWeight   = 0.001
	leastFreq   = 1e-6
)

// flow is the routine's CFG as the estimate of frequencies sees it.
type flow struct {
	r       *cfg.Routine
	loops   *nest
	cold    []bool
	weights []float64
}

// Estimate returns how often each block is expected to run for one activation. Cost: nearly linear
// in the routine's size.
func Estimate(r *cfg.Routine) []float64 {
	f := &flow{r: r, loops: newNest(r)}
	f.findCold()
	freq := make([]float64, len(r.Blocks))
	freq[r.Entry] = 1
	for _, b := range r.Others {
		freq[b] = 1
	}
	for _, p := range r.Pads {
		freq[p] = padWeight
	}
	for _, v := range slices.Backward(f.loops.post) {
		if f.loops.header[v] && !f.dispatches(v) {
			freq[v] = min(freq[v]*loopRounds, mostRounds)
		}
		f.handOn(v, freq)
	}
	for v := range freq {
		freq[v] = max(freq[v], leastFreq)
	}
	return freq
}

// findCold finds the blocks that lead to no return.
func (f *flow) findCold() {
	f.cold = make([]bool, len(f.r.Blocks))
	for _, v := range f.loops.post {
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

// dispatches reports whether a loop goes round by tables alone, as the one around it does: it is an
// interpreter's, whose operations each jump to the next, and what looks like loops within loops is
// one.
func (f *flow) dispatches(header int32) bool {
	outer := f.loops.outer[header]
	return outer != none && f.isRoundByTables(header) && f.isRoundByTables(outer)
}

// isRoundByTables reports whether nothing but switches leads back to a loop's header.
func (f *flow) isRoundByTables(header int32) bool {
	for _, b := range f.loops.preds.Of(int(header)) {
		if f.loops.isBack(b, header) && f.r.Blocks[b].End != cfg.Table {
			return false
		}
	}
	return true
}

// handOn hands a block's frequency to its successors.
func (f *flow) handOn(v int32, freq []float64) {
	succ := f.r.Blocks[v].Succ
	f.weights = f.weights[:0]
	total := 0.0
	for i, w := range succ {
		weight := 1.0
		if b := &f.r.Blocks[v]; b.End == cfg.Jcc && i == 0 && w >= 0 && f.r.Blocks[w].Lo >= b.Hi {
			weight = aheadWeight
		}
		if w >= 0 && f.cold[w] {
			weight = coldWeight
		}
		if w == int(v) && repeatsIfEqual(f.r, w) {
			weight *= equalWeight
		}
		if w >= 0 && f.loops.leaves(v, int32(w)) {
			weight *= exitWeight
		}
		total += weight
		f.weights = append(f.weights, weight)
	}
	for i, w := range succ {
		if w >= 0 && !f.loops.isBack(v, int32(w)) {
			freq[w] += freq[v] * f.weights[i] / total
		}
	}
}

// repeatsIfEqual reports whether block b jumps to itself if two things are equal.
func repeatsIfEqual(r *cfg.Routine, b int) bool {
	block := &r.Blocks[b]
	if block.End != cfg.Jcc || len(block.Insns) == 0 {
		return false
	}
	condition := block.Insns[len(block.Insns)-1].Condition()
	return condition == x86.Equal && block.Succ[0] == b || condition == x86.NotEqual &&
		block.Succ[1] == b
}
