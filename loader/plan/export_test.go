package plan

// Without takes the probe off a block, and has flags and the table of calls say what is true then.
func (p *Plan) Without(r *Routine, block int) {
	r.probed[block] = probe{}
	r.markFirst()
	p.Sites = p.Sites[:0]
	for _, r := range p.Routines {
		for b := range r.Blocks {
			r.site[b] = -1
			if r.Observed() {
				r.placeCall(b)
			}
		}
	}
	for _, r := range p.Routines {
		for b := range r.probed {
			if r.Observed() && r.probed[b].on {
				p.Sites = append(p.Sites, r.makeSite(b))
			}
		}
	}
	p.sortSites()
}

// SetMayLeaveOpen has the plan say so, or not.
func (r *Routine) SetMayLeaveOpen(open bool) { r.trailing = open }
