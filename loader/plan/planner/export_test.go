package planner

import (
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
)

// A Search is what a plan was made of.
type Search struct{ p *planner }

// Find is Make, and keeps the search.
func Find(program *cfg.Program, o Options) (*Search, *plan.Plan, error) {
	s := &Search{find(program, o)}
	p, err := s.p.result()
	return s, p, err
}

// Without takes the probe off a block. What the plan says else is true then.
func (s *Search) Without(p *plan.Plan, routine, block int) {
	s.p.routines[routine].probed[block] = probe{}
	s.again(p)
}

// SetMayLeaveOpen has the plan say so of a routine, or not.
func (s *Search) SetMayLeaveOpen(p *plan.Plan, routine int, open bool) {
	s.p.routines[routine].standing.open = open
	s.again(p)
}

func (s *Search) again(p *plan.Plan) {
	made, err := s.p.result()
	if err != nil {
		panic(err)
	}
	*p = *made
}
