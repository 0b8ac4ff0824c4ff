package planner

import (
	"cmp"
	"slices"

	"wpptrace/loader/cfg"
)

// Unless Options.Complete is set, single-stepped probes may make steppedShare of all expected hits,
// or steppedHits of them in a small program, busyShare of what a process spends its time in,
// countedHits where they were counted. And a routine that calls nothing, so that nobody else is the
// poorer, and is entered often, dearEntries times or more, is not worth its own where they make
// dearShare of its instructions: then they cost more than all else does. That may lose dearLoss of
// all instructions.
const (
	steppedShare = 0.01
	busyShare    = 0.05
	steppedHits  = 100_000
	countedHits  = 1000
	dearShare    = 1.0 / 200
	dearEntries  = 100
	dearLoss     = 0.01
	negligible   = 1000 // a routine that makes less than this part of the most that may be stays
)

// A weight is what the probes of a routine cost.
type weight struct {
	r     *routine
	all   float64 // hits that are expected
	hits  float64 // of them, those that are single-stepped
	insns float64 // that are expected to run
	at    uint64  // one of those that are single-stepped; 0: none is
}

// A thinning leaves out routines whose single-stepped probes are too dear, in rounds: between them
// the others are planned anew.
type thinning struct {
	p      *planner
	admits bool // all of them
	busy   bool // a small program has no more than its share
	begun  bool
	spare  float64 // instructions that may still be lost to save what is dearer than all else
}

// dropLeaves leaves out leaves that are too dear by themselves, whatever the others need, which may
// not have been planned yet. Where hits were counted, it is for a round to say how many of them all
// are single-stepped. It reports whether it left out any.
func (t *thinning) dropLeaves() (leftOut bool) {
	if t.admits || t.p.measured {
		return false
	}
	_, _, insns, list := t.p.weigh()
	t.begin(insns)
	for _, d := range list {
		if t.isDear(d) {
			t.spare -= d.insns
			d.drop()
			leftOut = true
		}
	}
	return leftOut
}

// begin says how many instructions are expected to run.
func (t *thinning) begin(insns float64) {
	if !t.begun {
		t.begun, t.spare = true, dearLoss*insns
	}
}

const tooDearAt = "needs a single-stepped probe at %x"

// TooDear is the cause of what is left out unless Options.Complete is set.
var _, TooDear = cfg.FormatReason(tooDearAt, 0)

func (d weight) drop() { d.r.leaveOut(tooDearAt, d.at) }

// round leaves out those first that lose the least by it. It reports whether it left out any.
func (t *thinning) round() (leftOut bool) {
	if t.admits {
		return false
	}
	hits, stepped, insns, list := t.p.weigh()
	t.begin(insns)
	least := float64(steppedHits)
	switch {
	case t.p.measured:
		least = countedHits
	case t.busy:
		least = busyShare * hits
	}
	most := max(steppedShare*hits, least)
	for _, d := range list {
		tooMany := stepped > most && d.hits >= most/negligible
		// few hits, where they were counted, cost little
		tooDear := (!t.p.measured || stepped > least) && t.isDear(d)
		if !tooMany && !tooDear {
			continue
		}
		if tooDear {
			t.spare -= d.insns
		}
		stepped -= d.hits
		d.drop()
		leftOut = true
	}
	return leftOut
}

// isDear reports whether a routine's own single-stepped probes cost more than all that they record.
func (t *thinning) isDear(d weight) bool {
	return d.r.costs.activations >= dearEntries && d.hits >= dearShare*d.insns &&
		d.insns <= t.spare && callsNothing(d.r.Routine)
}

// weigh returns how many hits are expected, how many of them single-stepped, in how many
// instructions, and the dear routines, those first that lose the least.
func (p *planner) weigh() (hits, stepped, insns float64, list []weight) {
	each := make([]weight, len(p.routines))
	p.each(func(r *routine) bool {
		if r.traced() {
			each[r.ID] = weigh(r)
		}
		return false
	})
	for _, d := range each {
		hits, stepped, insns = hits+d.all, stepped+d.hits, insns+d.insns
		if d.at != 0 {
			list = append(list, d)
		}
	}
	slices.SortStableFunc(list,
		func(a, b weight) int { return cmp.Compare(b.hits/b.insns, a.hits/a.insns) })
	return hits, stepped, insns, list
}

// weigh returns what the routine's probes cost.
func weigh(r *routine) (d weight) {
	d.r = r
	d.insns = r.costs.activations * r.costs.insns
	for b := range r.probed {
		pr := &r.probed[b]
		if !pr.on {
			continue
		}
		n := r.costs.activations * r.costs.freq[b]
		d.all += n
		if pr.stepped {
			d.hits += n
			d.at = r.Blocks[b].Insns[pr.insn].Addr
		}
	}
	return d
}
