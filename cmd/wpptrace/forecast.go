package main

import (
	"fmt"

	"wpptrace/internal/record/overhead"
	"wpptrace/loader/paths"
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/planner"
)

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

// forecastText is the forecast for code that never waits.
func forecastText(f overhead.Forecast) string {
	while := "its own code"
	if f.Some {
		while = "these routines alone"
	}
	return fmt.Sprintf("some %s times while it runs %s, %s at most", factor(f.SlowDown(overhead.UsualTime)), while, factor(f.SlowDown(overhead.LeastTime)))
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

// tooCostly returns the share of the expected instructions that are in routines left out for their
// single-stepped probes, and the routine that has most of them; nil: there is none.
func tooCostly(p *plan.Plan) (share float64, most *plan.Routine) {
	all, sum, least := 0.0, 0.0, 0.0
	for _, r := range p.Routines {
		if !r.Traced() && r.Cause != planner.TooDear { // how often it runs is not known
			continue
		}
		insns := 0.0
		for b := range r.Blocks {
			insns += r.Runs(b) * float64(len(r.Blocks[b].Insns))
		}
		if all += insns; r.Cause != planner.TooDear {
			continue
		}
		if sum += insns; most == nil || insns > least {
			most, least = r, insns
		}
	}
	return sum / max(all, 1), most
}
