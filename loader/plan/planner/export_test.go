package plan

// Without takes the probe off a block, and has flags and the table of calls say what is true then.
func (p *Plan) Without(r *Routine, block int) {
	r.probed[block] = probe{}
	p.place()
}

// SetMayLeaveOpen has the plan say so, or not.
func (r *Routine) SetMayLeaveOpen(open bool) { r.open = open }

// SetMostSites has plans have so many sites at most, until restore is called.
func SetMostSites(n int) (restore func()) {
	was := mostSites
	mostSites = n
	return func() { mostSites = was }
}
