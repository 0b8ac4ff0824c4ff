package figures

import (
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/planner"
)

// Count counts the routines that are traced, and the probes that are single-stepped.
func Count(p *plan.Plan) (traced, stepped int) {
	for _, r := range p.Routines {
		if r.Traced() {
			traced++
		}
	}
	for i := range p.Sites {
		if p.Sites[i].Stepped {
			stepped++
		}
	}
	return traced, stepped
}

// SingleStepped returns the share of the expected hits that are single-stepped, and the routine
// that makes most of them; nil: there is none.
func SingleStepped(p *plan.Plan) (share float64, most *plan.Routine) {
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

// TooCostly returns the share of the expected instructions that are in routines left out for their
// single-stepped probes, and the routine that has most of them; nil: there is none.
func TooCostly(p *plan.Plan) (share float64, most *plan.Routine) {
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

// Unlisted counts the bytes of code that are in no routine, and returns their share.
func Unlisted(p *plan.Plan) (bytes int, share float64) {
	listed := uint64(0)
	for _, part := range p.Parts {
		bytes += part.Program.Unlisted()
	}
	for _, r := range p.Routines {
		for _, x := range r.Ranges {
			listed += x[1] - x[0]
		}
	}
	return bytes, float64(bytes) / max(float64(bytes)+float64(listed), 1)
}

// LeftOutOfProgram counts the routines of the program, libraries aside, that cannot be traced.
func LeftOutOfProgram(p *plan.Plan) (n int) {
	for _, r := range p.Parts[0].Routines {
		if !r.Traced() {
			n++
		}
	}
	return n
}
