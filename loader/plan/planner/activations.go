package planner

import "wpptrace/loader/plan"

// Expected activations are spread over direct calls a few rounds deep; a routine that anybody may
// enter has one besides.
const (
	callRounds = 4
	mostCalls  = 1e6
)

// expect estimates how often each routine is entered.
func (p *planner) expect() {
	for _, r := range p.routines {
		if !r.costs.measured {
			r.costs.activations = 1
		}
	}
	links := p.links()
	sum := make([]float64, len(p.routines))
	for range callRounds {
		for i, r := range p.routines {
			sum[i] = 0
			if r.standing.entered || !r.traced() {
				sum[i] = 1
			}
		}
		for _, l := range links {
			sum[l.to] += p.routines[l.from].costs.activations * l.freq
		}
		for i, r := range p.routines {
			if !r.costs.measured {
				r.costs.activations = min(sum[i], mostCalls)
			}
		}
	}
}

// A link is a call or jump from one traced routine to another, with how often it is made for each
// activation of the first.
type link struct {
	from, to int32
	freq     float64
}

// links lists them, close together: each is asked for in every one of the callRounds.
func (p *planner) links() []link {
	list := make([]link, 0, p.countLeads())
	for _, r := range p.routines {
		if !r.traced() {
			continue
		}
		for _, b := range r.calls.leads {
			if kind, t := r.calls.callee(b); kind == plan.Known {
				list = append(list, link{int32(r.ID), int32(t.ID), r.costs.freq[b]})
			}
		}
	}
	return list
}
