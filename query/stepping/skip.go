package stepping

// A skipper knows which segments a run need not look into.
type skipper struct {
	state   *State
	symbols []bool // those that have an instruction of a stop
}

// newSkipper returns that of a run to the stops of a state; nil: all are looked into.
func newSkipper(x *State) *skipper {
	if len(x.watches) > 0 {
		return nil
	}
	s := &skipper{x, make([]bool, len(x.snapshot.Symbols))}
	for i := range x.snapshot.Symbols {
		p := &x.snapshot.Symbols[i]
		for _, b := range p.Blocks {
			s.symbols[i] = s.symbols[i] || x.hasStop(p.Routine, b)
		}
	}
	return s
}

// hasStop reports whether a block has an instruction of a stop.
func (x *State) hasStop(routine, block int) bool {
	b := &x.snapshot.Routines[routine].Blocks[block]
	end := b.Addr
	for _, n := range b.Lengths {
		end += uint64(n)
	}
	for i := range x.Stops {
		for at := range x.Stops[i].at {
			if at.Routine == routine && b.Addr <= at.Addr && at.Addr < end {
				return true
			}
		}
	}
	return false
}

// may reports whether a segment may have a stop, or has to be looked into for another reason: the
// calls at the start of the next one are not known yet, or it may have the last instruction, as the
// last one may have none.
func (s *skipper) may(segment int) bool {
	if s == nil {
		return true
	}
	list := s.state.segments.list
	if segment == 0 || segment+1 >= len(s.state.segments.starts) || segment+2 >= len(list) {
		return true
	}
	for _, ran := range list[segment].Ran() {
		if s.symbols[ran.Symbol] {
			return true
		}
	}
	for first := range list[segment+1].Symbols() { // of which a part may have run before
		return s.symbols[first]
	}
	return true
}
