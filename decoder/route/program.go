package route

import (
	"fmt"

	"wpptrace/loader/cfg"
	"wpptrace/loader/paths"
	"wpptrace/loader/plan"
)

// A Program holds the routines of a plan with their routes.
type Program struct {
	Plan     *plan.Plan
	Routines []*Routine              // by ID
	Main     *Routine                // the first thread calls it, once; nil: it is not known
	returns  map[uint64]Call         // by return address, as plan.Plan.Calls
	callers  map[*Routine][]*Routine // see freeCallers; nil: not known yet
}

// A Call is a block of a routine that ends in a call.
type Call struct {
	Routine *Routine
	Block   int
}

// A Routine is a routine of a plan, with what is known of its calls and the positions in it.
type Routine struct {
	ID      int // index in Program.Routines
	Plan    *plan.Routine
	Blocks  []cfg.Block
	Numbers *paths.Numbering // nil: the routine is not traced
	Kinds   []plan.Callee    // by block: what it calls or jumps to as it leaves
	Callees []*Routine       // by block: the routine, if Kinds has plan.Known
	Pads    []bool           // by block: it is a landing pad
	Again   []bool           // by block: it follows a call that may return twice

	counts    bool        // it has loops whose rounds events decide
	positions []*Position // by 2*block + outcome; the last is the entry
	captured  map[capturedKey]*Position
	run       *freeRun
}

// New prepares the routes of a plan. Cost: a numbering of each routine's paths.
func New(p *plan.Plan) (*Program, error) {
	q := &Program{Plan: p, returns: map[uint64]Call{}}
	return q, q.Grow()
}

// Grow takes in what has been appended to the plan since.
func (p *Program) Grow() error {
	known := len(p.Routines)
	for _, r := range p.Plan.Routines[known:] {
		p.Routines = append(p.Routines, &Routine{ID: r.ID, Plan: r, Blocks: r.Blocks})
	}
	p.callers = nil
	if m := p.Plan.Parts[0].Program.Main(); m != nil {
		p.Main = p.Routines[m.ID]
	}
	for _, r := range p.Routines[known:] {
		if !r.Plan.Traced() {
			continue
		}
		n, err := paths.Number(r.Plan.Routine)
		if err != nil {
			return fmt.Errorf("number the paths of %s: %w", r.Plan.Name, err)
		}
		r.Numbers = n
		p.prepare(r)
	}
	return nil
}

func (p *Program) prepare(r *Routine) {
	n := len(r.Blocks)
	r.positions = make([]*Position, 2*n+1)
	r.Kinds, r.Callees = make([]plan.Callee, n), make([]*Routine, n)
	r.Pads, r.Again = make([]bool, n), make([]bool, n)
	r.counts = r.Plan.LoopsCounted() > 0
	for _, b := range r.Plan.Pads {
		r.Pads[b] = true
	}
	for b := range r.Blocks {
		block := &r.Blocks[b]
		kind, to := r.Plan.Callee(b)
		r.Kinds[b] = kind
		if to != nil {
			r.Callees[b] = p.Routines[to.ID]
		}
		if block.IsCall() {
			p.returns[block.Hi+r.Plan.Offset()] = Call{r, b}
		}
		if r.Plan.ReturnsTwice(b) {
			r.Again[block.Succ[0]] = true
		}
	}
}

// CallTo returns the call that returns to an address, if it is one of a traced routine.
func (p *Program) CallTo(address uint64) (c Call, ok bool) {
	c, ok = p.returns[address]
	return c, ok
}

// RoutineAt returns the routine whose code an address lies in, traced or not; nil: there is none.
func (p *Program) RoutineAt(pc uint64) *Routine {
	if r := p.Plan.Containing(pc); r != nil {
		return p.Routines[r.ID]
	}
	return nil
}

// Traces reports whether an address lies in a traced routine.
func (p *Program) Traces(pc uint64) bool {
	r := p.Plan.Containing(pc)
	return r != nil && r.Traced()
}

// Origins lists the routines that external code may call, and from whose entries probe-free routes
// lead to another routine, or into calls that do. The first time it walks all routines' entries.
func (p *Program) Origins(to *Routine) (origins []*Routine) {
	if to == nil {
		return nil
	}
	if p.callers == nil {
		p.callers = p.freeCallers()
	}
	list, seen := []*Routine{to}, map[*Routine]bool{to: true}
	for i := 0; i < len(list); i++ {
		r := list[i]
		if r.Plan.Traced() && r.Plan.ExternalCallers() {
			origins = append(origins, r)
		}
		for _, caller := range p.callers[r] {
			if !seen[caller] {
				seen[caller] = true
				list = append(list, caller)
			}
		}
	}
	return origins
}

// freeCallers lists for each routine those that come to a call of it, or a jump to it, before their
// first event.
func (p *Program) freeCallers() map[*Routine][]*Routine {
	callers := map[*Routine][]*Routine{}
	for _, r := range p.Routines {
		if !r.Plan.Traced() {
			continue
		}
		for _, node := range r.AtEntry().Free().Nodes {
			if to := r.Callees[node.Block]; to != nil && r.Site(node.Block) == nil {
				callers[to] = append(callers[to], r)
			}
		}
	}
	return callers
}

// Address is that of the routine's first instruction, as events have it: at link time, with the
// offset of its image.
func (r *Routine) Address() uint64 { return r.Plan.Addr + r.Plan.Offset() }

// ReturnTo is the return address of the call that ends block b.
func (r *Routine) ReturnTo(b int) uint64 { return r.Blocks[b].Hi + r.Plan.Offset() }

// Site is the site of block b; nil: it has no probe.
func (r *Routine) Site(b int) *plan.Site { return r.Plan.Site(b) }

// Locate finds the block of an instruction, and its index there.
func (r *Routine) Locate(pc uint64) (block, insn int, ok bool) {
	pc -= r.Plan.Offset()
	if !r.holds(pc) {
		return 0, 0, false
	}
	for b := range r.Blocks {
		if block := &r.Blocks[b]; block.Lo <= pc && pc < block.Hi {
			for k := range block.Insns {
				if block.Insns[k].Addr == pc {
					return b, k, true
				}
			}
		}
	}
	return 0, 0, false
}

func (r *Routine) holds(pc uint64) bool {
	for _, x := range r.Plan.Ranges {
		if x[0] <= pc && pc < x[1] {
			return true
		}
	}
	return false
}
