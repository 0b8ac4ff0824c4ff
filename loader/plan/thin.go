package plan

import (
	"cmp"
	"slices"
)

// Unless Options.Complete is set, single-stepped probes may make steppedShare of all expected hits, or steppedHits of them in a small program whose
// frequencies are estimates. And a routine that calls nothing, so that nobody else is the poorer, and is entered often, dearEntries times or more, is not
// worth its own where they make dearShare of its instructions: then they cost more than all else does. That may lose dearLoss of all instructions.
const (
	steppedShare = 0.01
	steppedHits  = 100_000
	dearShare    = 1.0 / 200
	dearEntries  = 100
	dearLoss     = 0.01
	negligible   = 1000 // a routine that makes less than this part of the most that may be stays
)

// A dear routine is one that needs single-stepped probes.
type dear struct {
	*Routine
	hits  float64 // that are expected to be single-stepped
	insns float64 // that are expected to run
	at    uint64  // one of the probes
}

// thin leaves out routines whose single-stepped probes are too dear, those first that lose the least by it. It reports whether it left out any.
func (p *Plan) thin() (leftOut bool) {
	var hits, stepped, insns float64
	var list []dear
	for _, r := range p.Routines {
		if !r.Observed() {
			continue
		}
		d, all := r.weigh()
		hits, stepped, insns = hits+all, stepped+d.hits, insns+d.insns
		if d.at != 0 {
			list = append(list, d)
		}
	}
	slices.SortStableFunc(list, func(a, b dear) int { return cmp.Compare(b.hits/b.insns, a.hits/a.insns) })
	most, loss := steppedShare*hits, dearLoss*insns
	if !p.measured {
		most = max(most, steppedHits)
	}
	for _, d := range list {
		isDear := d.entry >= dearEntries && d.hits >= dearShare*d.insns && d.insns <= loss && callsNothing(d.Routine.Routine)
		if (stepped <= most || d.hits < most/negligible) && !isDear {
			continue
		}
		if isDear {
			loss -= d.insns
		}
		stepped -= d.hits
		d.leave("needs a single-stepped probe at %x (--complete admits it)", d.at)
		leftOut = true
	}
	return leftOut
}

// weigh returns what the routine's single-stepped probes cost, and how many hits are expected of all.
func (r *Routine) weigh() (d dear, hits float64) {
	d.Routine = r
	for b := range r.probed {
		n := r.entry * r.freq[b]
		d.insns += n * float64(len(r.Blocks[b].Insns))
		if !r.probed[b].on {
			continue
		}
		hits += n
		if r.probed[b].stepped {
			d.hits += n
			d.at = r.Blocks[b].Insns[r.probed[b].insn].Addr
		}
	}
	return d, hits
}
