package route

import (
	"wpptrace/compress/ops"
	"wpptrace/loader/cfg"
	"wpptrace/loader/paths"
	"wpptrace/loader/plan"
)

// An Emission is one operation of a transition.
type Emission struct {
	Kind    EmissionKind
	Routine *Routine
	Number  uint64 // of the path
	Times   uint64 // of EmitPath
	Loop    int    // of EmitRounds: the loop, of those on the route
}

// An EmissionKind says what an emission is.
type EmissionKind uint8

// The kinds of emissions.
const (
	EmitEnter EmissionKind = iota
	EmitPath
	EmitLeave
	EmitRounds // a path for each round of a loop but the first and the last
)

// A Transition is a probe-free route of one activation, as the operations that it completes. It is
// shared, and does not change.
type Transition struct {
	Emissions []Emission
	// First is the emission whose path began before the transition, so that its number is to be
	// added to the running one; NoEmission: there is none.
	First int
	Fresh bool      // the running path began within the transition
	Add   uint64    // the running number after it, or what is to be added to it
	Start ops.Start // how the running path began, if it is fresh
	Trail []int     // the blocks on the route that belong to the path that began before it

	counted *countedRoute // if the route passes loops whose rounds events decide
}

// NoEmission is the index of none.
const NoEmission = -1

// A builder walks blocks and collects a transition.
type builder struct {
	Transition
	r       *Routine
	at      int // Exit: at the entry, or before the block where the path goes on
	resumed bool
}

func newBuilder(p *Position) *builder {
	return &builder{
		Transition: Transition{First: NoEmission},
		r:          p.Routine, at: p.Block, resumed: p.Resumed,
	}
}

func (m *builder) path(number uint64) {
	if !m.Fresh {
		m.First = len(m.Emissions)
	}
	path := Emission{Kind: EmitPath, Routine: m.r, Number: m.Add + number, Times: 1}
	m.Emissions = append(m.Emissions, path)
}

func (m *builder) begin(b int, kind paths.Start) {
	id, _ := m.r.Numbers.Begin(b, kind)
	m.Fresh, m.Add, m.Start = true, id, ops.Start(kind)
}

// call ends the path at the call of block b; what it calls has no event, if it is known.
func (m *builder) call(b int) {
	m.path(m.r.FinishAtCall(b))
	if m.r.Kinds[b] == plan.Known {
		if run := m.r.Callees[b].freeRun(); run != nil {
			m.Emissions = append(m.Emissions, run...)
		}
	}
}

// FinishAtCall is what the call that ends block b adds to the number of the path that ends there.
func (r *Routine) FinishAtCall(b int) uint64 {
	end := paths.EndCall
	if r.Blocks[b].End == cfg.NoReturn {
		end = paths.EndNoReturn
	}
	return r.Numbers.Finish(b, end)
}

// step goes on to block b. called: the call that the builder stands at has been made and its path
// is out.
func (m *builder) step(b int, called bool) {
	switch {
	case m.at == Exit && m.resumed:
	case m.at == Exit:
		m.begin(b, paths.StartEntry)
	case m.r.Blocks[m.at].CallReturns():
		if !called {
			m.call(m.at)
		}
		m.begin(b, paths.StartCall)
	default:
		inc, ends, _, next := m.r.Numbers.Step(m.at, b)
		if ends {
			m.path(inc)
			m.begin(b, next)
		} else {
			m.Add += inc
		}
	}
	if !m.Fresh {
		m.Trail = append(m.Trail, b)
	}
	m.at = b
}

// finish ends the path where the routine is left.
func (m *builder) finish() {
	end := paths.EndReturn
	if m.r.Blocks[m.at].End != cfg.Ret {
		end = paths.EndTail
	}
	m.path(m.r.Numbers.Finish(m.at, end))
}

// leave ends the activation.
func (m *builder) leave() {
	m.finish()
	m.Emissions = append(m.Emissions, Emission{Kind: EmitLeave, Routine: m.r})
}

// To returns the transition to block b; nil if no probe-free route leads there. called: the call
// that ends the position's block has been made already. Cost: a look-up, where it was asked for
// before.
func (p *Position) To(b int, called bool) *Transition {
	for i := range p.routes {
		if c := &p.routes[i]; c.to == b && c.called == called {
			return c.transition
		}
	}
	var found *Transition
	if p.Passes(called) {
		if i, ok := p.Free().find(b); ok {
			found = p.walk(p.Free().route(i), called, false)
		}
	}
	p.routes = append(p.routes, cachedRoute{b, called, found})
	return found
}

// Finish returns the transition by which the path ends where the position's block leaves the
// routine.
func (p *Position) Finish() *Transition {
	m := newBuilder(p)
	m.finish()
	return &m.Transition
}

// Step returns the transition to the next node: block b, or out of the routine (Exit), by which the
// path ends and the activation does not.
func (p *Position) Step(next int) *Transition {
	if next == Exit {
		return p.Finish()
	}
	m := newBuilder(p)
	m.step(next, false)
	return &m.Transition
}

// PathEndsBefore reports whether the running path ends on the edge from the position's block to a
// node.
func (p *Position) PathEndsBefore(next int) bool {
	if next == Exit {
		return true
	}
	_, ends, _, _ := p.Routine.Numbers.Step(p.Block, next)
	return ends
}

// An Out is a probe-free route out of a routine.
type Out struct {
	Block      int // the one that leaves
	Transition *Transition
}

// exits are what Outs and ReturnsBy have found from a position.
type exits struct {
	found   bool
	list    []Out
	returns Out // of the list, the first that has no further event
	n       int // how many of them have none
	throws  bool
}

// Outs lists the probe-free routes out. Cost: a look-up, where it was asked for before.
func (p *Position) Outs(called bool) []Out { return p.leaving(called).list }

// ReturnsBy finds the route out that has no further event: by return, or by a tail jump to code
// that has none. n is how many there are.
func (p *Position) ReturnsBy(called bool) (o Out, n int) {
	e := p.leaving(called)
	return e.returns, e.n
}

// MayThrow reports whether a call of external code may throw: the one where the activation stands,
// or one that it has come to without an event. Cost: a look-up, where it was asked for before.
func (p *Position) MayThrow(called bool) bool { return p.leaving(called).throws }

func (p *Position) leaving(called bool) *exits {
	e := &p.exits[0]
	if called {
		e = &p.exits[1]
	}
	if !e.found {
		p.leave(e, called)
	}
	return e
}

// leave finds the exits.
func (p *Position) leave(e *exits, called bool) {
	e.found = true
	e.throws = p.AtExternalCall()
	if !p.Passes(called) {
		return
	}
	g := p.Free()
	e.throws = e.throws || len(g.External) > 0
	for _, i := range g.exits {
		o := Out{Block: p.Block}
		if i != Exit {
			o.Block = g.Nodes[i].Block
		}
		if o.Transition = p.walk(g.route(i), called, true); o.Transition == nil {
			continue
		}
		e.list = append(e.list, o)
		if t := p.Routine.TailTarget(o.Block); t == nil || t.runsFree() {
			if e.n == 0 {
				e.returns = o
			}
			e.n++
		}
	}
}
