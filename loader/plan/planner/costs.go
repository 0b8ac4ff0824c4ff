package planner

import (
	"math"
	"slices"

	"wpptrace/loader/arch"
	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/plan/planner/frequency"
	"wpptrace/loader/x86"
)

// costs say where a routine's probes would sit, and what they would cost.
type costs struct {
	r           *cfg.Routine
	points      []probePoint // by block
	freq        []float64    // by block: expected runs for each activation
	insns       float64      // expected instructions for each activation
	activations float64      // expected
	measured    bool         // activations and freq are
}

// neverEntered is how often a routine is taken to be entered that was not while frequencies were
// measured.
const neverEntered = 0.1

// A block that did not run while frequencies were measured may run with another input. It keeps
// unseenShare of its estimate, but of no more than unseenRuns for one activation, for how often
// loops within loops go round says little there. By weights of another input, seven real programs
// make 5% fewer hits so than where all blocks keep that share of all of it.
const (
	unseenShare = 0.005
	unseenRuns  = 4
)

// SteppedCost is what a single-stepped hit costs, in emulated ones.
const SteppedCost = 40

// estimate finds how often each block runs for one activation: as it was measured, where that is
// known.
func (c *costs) estimate(w *Weights) {
	c.freq = frequency.Estimate(c.r)
	c.measure(w)
	for b := range c.r.Blocks {
		c.insns += c.freq[b] * float64(len(c.r.Blocks[b].Insns))
	}
}

// measure takes what was counted of the routine in the place of estimates, if it was.
func (c *costs) measure(w *Weights) {
	if w == nil {
		return
	}
	entries, known := w.Entries[c.r.Addr]
	if c.measured = known; !known {
		return
	}
	c.activations = max(float64(entries), neverEntered)
	if entries == 0 {
		return
	}
	for b, static := range c.freq {
		if runs := w.Blocks[c.r.Blocks[b].Lo]; runs > 0 {
			c.freq[b] = float64(runs) / c.activations
		} else {
			c.freq[b] = unseenShare * min(static, unseenRuns)
		}
	}
}

// isMeasured reports whether the routine ran where frequencies were measured.
func (c *costs) isMeasured() bool { return c.measured && c.activations >= 1 }

// A probePoint is where a probe of a block would sit. It is small: there is one for each block.
type probePoint struct {
	found, stepped, edges bool
	insn                  int32
}

// point returns where a probe of block b would sit: the last cheap instruction, else the last one
// that can be single-stepped.
func (c *costs) point(b int) (p probe, ok bool) {
	if c.points == nil {
		c.findPoints()
	}
	s := c.points[b]
	return probe{on: s.found, stepped: s.stepped, edges: s.edges, insn: s.insn}, s.found
}

func (c *costs) findPoints() {
	c.points = make([]probePoint, len(c.r.Blocks))
	for b := range c.points {
		c.points[b] = c.findPoint(b)
	}
}

func (c *costs) findPoint(b int) probePoint { return pointOf(c.r, b) }

// Point returns where a probe of a block of a routine sits, by the index of the instruction, and
// whether the kernel single-steps that: at the last cheap instruction, else the last one that can
// be single-stepped. ok is false where the block can have none. Cost: the block's length.
func Point(r *cfg.Routine, block int) (insn int, stepped, ok bool) {
	p := pointOf(r, block)
	return int(p.insn), p.stepped, p.found
}

func pointOf(r *cfg.Routine, b int) probePoint {
	if isSignature(r, b) {
		return probePoint{}
	}
	insns := r.Blocks[b].Insns
	last := len(insns) - 1
	if r.Faulty && b == r.Entry {
		if i := slices.IndexFunc(insns, cfg.Insn.MayFault); i >= 0 {
			last = i // an exception may come out of it
		}
	}
	for _, class := range []x86.Class{x86.Emulated, x86.Stepped} {
		for i := last; i >= 0; i-- {
			q := &insns[i]
			if q.Class(r.Code(q)) == class && hasCFA(r, q.Addr) {
				return probePoint{found: true, stepped: class == x86.Stepped, insn: int32(i),
					edges: q.Kind == x86.Jcc}
			}
		}
	}
	return probePoint{}
}

// isSignature reports whether a routine begins with block b as a mark for its callers, which read
// it before they call through a pointer (-fsanitize=function): a jump over a few bytes that nothing
// runs.
func isSignature(r *cfg.Routine, b int) bool {
	const most = 16 // bytes
	bl := &r.Blocks[b]
	if b != r.Entry || bl.End != cfg.Jmp || len(bl.Insns) > 1 || bl.Succ[0] < 0 {
		return false
	}
	to := r.Blocks[bl.Succ[0]].Lo
	return bl.Hi < to && to-bl.Hi <= most &&
		!slices.ContainsFunc(r.Blocks,
			func(o cfg.Block) bool { return bl.Hi <= o.Lo && o.Lo < to })
}

func hasCFA(r *cfg.Routine, pc uint64) bool {
	reg := r.CFA(pc).Reg
	_, ok := arch.Native.FrameRegister(reg)
	return ok || reg == image.Slot
}

// sum is the expected cost of probes of some blocks.
func (c *costs) sum(blocks []int) (sum float64) {
	for _, b := range blocks {
		sum += c.price(b)
	}
	return sum
}

// price is the expected cost of a probe of block b.
func (c *costs) price(b int) float64 {
	if c.points == nil {
		c.findPoints()
	}
	switch p := &c.points[b]; {
	case !p.found:
		return math.Inf(1)
	case p.stepped:
		return c.freq[b] * SteppedCost
	}
	return c.freq[b]
}
