package loads

import (
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
)

// exports are the routines of an image that its own stubs lead to, unless another image defines
// them as well, by the stubs' addresses.
func exports(p *plan.Plan) map[uint64]*plan.Routine {
	im := p.Program.Image
	jumps, imports := im.Jumps(), im.Imports()
	if len(jumps) == 0 {
		return nil
	}
	named := map[string]*plan.Routine{}
	for _, s := range im.Symbols() {
		if !s.Dynamic {
			continue
		}
		if r := p.Program.At(s.Addr); r != nil && p.Routines[r.ID].Traced() {
			named[s.Name] = p.Routines[r.ID]
		}
	}
	list := map[uint64]*plan.Routine{}
	for stub := range jumps {
		if r := named[imports[stub]]; r != nil {
			list[stub] = r
		}
	}
	return list
}

// stubsOf are those of a routine's blocks that call, or jump to, such a stub, and where it leads.
func stubsOf(r *plan.Routine, exported map[uint64]*plan.Routine) (list map[int]*plan.Routine) {
	if !r.Traced() || len(exported) == 0 {
		return nil
	}
	for b := range r.Blocks {
		switch r.Blocks[b].End {
		case cfg.Call, cfg.Tail:
		default:
			continue
		}
		if to := exported[r.Blocks[b].Target]; to != nil {
			if list == nil {
				list = map[int]*plan.Routine{}
			}
			list[b] = to
		}
	}
	return list
}

// callee is what a block calls, or jumps to; sure is false if it is only likely to, and all
// registers have to be shown afterwards. nil: it is not known.
func (f *follower) callee(r *plan.Routine, block int) (to *plan.Routine, sure bool) {
	if kind, to := r.Callee(block); kind == plan.Known {
		return to, true
	}
	return f.facts[r.ID].stubs[block], false
}
