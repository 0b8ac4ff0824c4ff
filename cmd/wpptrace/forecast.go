package main

import (
	"fmt"
	"io"

	"wpptrace/loader/attach"
	"wpptrace/loader/paths"
	"wpptrace/loader/plan"
	"wpptrace/query"
)

// A forecast is what the plan makes of a process, before anything is attached.
type forecast struct {
	emulated, stepped float64 // expected hits an instruction
	cost              attach.Cost
	some              bool // it is one of some routines alone: nobody knows how much of the process's time is theirs
}

// What an instruction takes, ns: in code that computes, and at the least.
const (
	usualTime = query.UsualInstructionTime
	leastTime = query.InstructionTime
)

// newForecast weighs each probe with how often the plan expects it to be hit, and each hit with the
// instructions from there to the next.
func newForecast(p *program, cost attach.Cost) forecast {
	f := forecast{cost: cost, some: p.selects != nil}
	instructions := 0.0
	for i := range p.plan.Sites {
		s := &p.plan.Sites[i]
		instructions += s.Expected * toNextProbe(p.plan.Routines[s.Routine], s.Block)
		if s.Stepped {
			f.stepped += s.Expected
		} else {
			f.emulated += s.Expected
		}
	}
	if instructions > 0 {
		f.emulated /= instructions
		f.stepped /= instructions
	}
	return f
}

// toNextProbe is how many instructions run from the end of a block to the end of the next one with
// a probe, on average over its ways. Instructions of silent callees are left out, so that the
// forecast is on the high side.
func toNextProbe(r *plan.Routine, block int) float64 {
	const farthest = 64 // blocks
	ways, sum := 0, 0
	for _, b := range r.Blocks[block].Succ {
		ways++
		for range farthest {
			if b < 0 {
				break
			}
			sum += len(r.Blocks[b].Insns)
			if r.Site(b) != nil || len(r.Blocks[b].Succ) == 0 {
				break
			}
			b = r.Blocks[b].Succ[0]
		}
	}
	if ways == 0 || sum == 0 {
		return float64(len(r.Blocks[block].Insns))
	}
	return float64(sum) / float64(ways)
}

// expectedHits is how many hits the probes of an observed routine are expected to make.
func expectedHits(r *plan.Routine) (hits float64) {
	for b := range r.Blocks {
		if r.Site(b) != nil {
			hits += r.Runs(b)
		}
	}
	return hits
}

// expectedPaths is how many paths an observed routine is expected to run.
func expectedPaths(r *plan.Routine, n *paths.Numbering) (count float64) {
	for b := range r.Blocks {
		count += r.Runs(b) * endingShare(r, n, b)
	}
	return count
}

// endingShare is the share of a block's runs that are the last of their path: its ways on are
// weighed by how often they lead to.
func endingShare(r *plan.Routine, n *paths.Numbering, b int) float64 {
	var ending, all float64
	for _, next := range r.Blocks[b].Succ {
		if next < 0 { // it leaves by a conditional jump
			continue
		}
		all += r.Runs(next)
		if _, ends, _, _ := n.Step(b, next); ends {
			ending += r.Runs(next)
		}
	}
	if all == 0 {
		return 1
	}
	return ending / all
}

// slowDown is how many times longer the process's own code takes, if an instruction takes so many
// ns untraced.
func (f forecast) slowDown(instruction float64) float64 {
	return 1 + (f.emulated*float64(f.cost.Emulated)+f.stepped*float64(f.cost.Stepped))/instruction
}

// String writes the forecast for code that never waits.
func (f forecast) String() string {
	while := "its own code"
	if f.some {
		while = "these routines alone"
	}
	return fmt.Sprintf("some %s times while it runs %s, %s at most", factor(f.slowDown(usualTime)), while, factor(f.slowDown(leastTime)))
}

// tell prints the forecast. load is the CPU share that the process would use now, 1 for one CPU;
// overhead the budget, per cent, 0: there is none.
func (f forecast) tell(w io.Writer, load, overhead float64) {
	bound := "it is measured as it runs"
	if overhead > 0 {
		bound = fmt.Sprintf("--overhead keeps it to %v%% in the long run", overhead)
	}
	fmt.Fprintf(w, "wpptrace: slow-down: %v; %s\n", f, bound)
	const busy = 0.9
	if load < busy && !f.some {
		fmt.Fprintf(w, "wpptrace: at its present load, %.0f%% of a CPU: some %s times\n", 100*load, factor(1+load*(f.slowDown(usualTime)-1)))
	}
}

// factor writes a number without digits that mean nothing.
func factor(x float64) string {
	if x >= 10 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.1f", x)
}

// noticeable is the share of single-stepped hits from which they cost as much as a third of the
// others.
const noticeable = 0.01

// stepped returns the share of the expected hits that are single-stepped, and the routine that
// makes most of them; nil: there is none.
func stepped(p *plan.Plan) (share float64, most *plan.Routine) {
	by := make([]float64, len(p.Routines))
	all, sum := 0.0, 0.0
	for i := range p.Sites {
		s := &p.Sites[i]
		all += s.Expected
		if !s.Stepped {
			continue
		}
		sum += s.Expected
		by[s.Routine] += s.Expected
		if most == nil || by[s.Routine] > by[most.ID] {
			most = p.Routines[s.Routine]
		}
	}
	if most == nil {
		return 0, nil
	}
	return sum / all, most
}

// tooDear returns the share of the expected instructions that are in routines left out for their
// single-stepped probes, and the routine that has most of them; nil: there is none.
func tooDear(p *plan.Plan) (share float64, most *plan.Routine) {
	all, sum, least := 0.0, 0.0, 0.0
	for _, r := range p.Routines {
		if !r.Observed() && r.Cause != plan.TooDear { // how often it runs is not known
			continue
		}
		insns := 0.0
		for b := range r.Blocks {
			insns += r.Runs(b) * float64(len(r.Blocks[b].Insns))
		}
		if all += insns; r.Cause != plan.TooDear {
			continue
		}
		if sum += insns; most == nil || insns > least {
			most, least = r, insns
		}
	}
	return sum / max(all, 1), most
}

// summary is a plan in one line.
func summary(p *plan.Plan) string {
	observed, stepped := 0, 0
	for _, r := range p.Routines {
		if r.Observed() {
			observed++
		}
	}
	for i := range p.Sites {
		if p.Sites[i].Stepped {
			stepped++
		}
	}
	probes := "probes"
	if len(p.Sites) == 1 {
		probes = "probe"
	}
	return fmt.Sprintf("%d of %d routines, %d %s (%d single-stepped)", observed, len(p.Routines), len(p.Sites), probes, stepped)
}
