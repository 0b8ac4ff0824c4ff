package planner

import (
	"slices"

	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
	"wpptrace/loader/x86"
)

// A probe is a witness in the making.
type probe struct {
	on      bool
	stepped bool
	edges   bool // the events say which out-edge is taken
	counted bool // there is none: the block is a loop whose rounds other events decide
	insn    int32
	// what the events capture besides, if anything: a switch, or the value of a place
	capture *plan.Capture
}

// capturedPlace is the place whose value the events of block b capture, or nil.
func (r *routine) capturedPlace(b int) *x86.Operand {
	if t := r.probed[b].capture; t != nil && t.Kind == plan.JumpPlace {
		return &t.Operand
	}
	return nil
}

const exit = cfg.Exit

// probe puts a probe on block b. It reports false, and leaves the routine out, if there is no place
// for one.
func (r *routine) probe(b int) bool {
	if r.probed[b].on {
		return true
	}
	p, ok := r.costs.point(b)
	if !ok {
		r.leaveOut("no place for a probe in the block at %x", r.Blocks[b].Lo)
		return false
	}
	r.probed[b] = p
	return true
}

// A memo is what start came to, and from what: leaving out a routine changes little for most
// others.
type memo struct {
	calls     []calling // of leads
	probeFree bool
	probed    []probe
}

// start gives a traced routine the probes that it needs by itself: what must have a probe, and what
// distinguishes the ways from one event to the next. It reports whether the routine had to be left
// out.
func start(r *routine) (leftOut bool) {
	if !r.traced() {
		return false
	}
	r.standing.ambiguous = false
	same := func(c calling, b int) bool { return c == r.calls.by[b] }
	if m := &r.started; m.probed != nil && m.probeFree == r.standing.probeFree &&
		slices.EqualFunc(m.calls, r.calls.leads, same) {
		r.probed = slices.Clone(m.probed)
		return false
	}
	must := mustHaveProbe(r)
	loops := countable(r, must)
	c := newCovering(r, must)
	c.chooseProbes(nil)
	if len(loops) > 0 && r.traced() {
		c.chooseCounting(loops)
	}
	if r.traced() {
		r.started = memo{make([]calling, len(r.calls.leads)), r.standing.probeFree,
			slices.Clone(r.probed)}
		for i, b := range r.calls.leads {
			r.started.calls[i] = r.calls.by[b]
		}
	}
	return !r.traced()
}

// startLeaf starts a routine that calls nothing.
func startLeaf(r *routine) (leftOut bool) { return callsNothing(r.Routine) && start(r) }

// chooseCounting chooses probes so that the rounds of some loops are known by other events than
// theirs, if that is cheaper: of all that can be known, or of one.
func (c *covering) chooseCounting(loops []int) {
	r := c.r
	best, least, found := r.probed, r.cost(), false
	if !r.costs.isMeasured() {
		for _, b := range loops {
			if r.probed[b].on {
				least -= (1 - loopDoubt) * r.costs.price(b)
			}
		}
	}
	try := func(loops []int) (counted []int) {
		counted = c.chooseProbes(loops)
		if r.traced() && r.cost() < least {
			best, least, found = r.probed, r.cost(), true
		}
		r.leftOut, r.cause = "", ""
		return counted
	}
	if counted := try(loops); len(counted) > 0 && len(counted) < len(loops) {
		try(counted) // without what was there for the others
	}
	if !found && len(loops) > 1 {
		for _, b := range loops[:min(len(loops), mostAlone)] {
			try([]int{b})
		}
	}
	r.probed = best
}

// loopDoubt is the part of a loop's expected rounds that is counted on, where they are estimated:
// loops that are guarded, or search, often end at once, and what events cost around them is
// certain.
const loopDoubt = 0.4

// mostAlone is how many loops, the dearest first, are tried one by one where they are not cheaper
// together: each takes nearly as long as a plan of the routine.
const mostAlone = 2

// chooseProbes gives the routine its probes, these loops none if it can be: it returns those that
// have none.
func (c *covering) chooseProbes(loops []int) (counted []int) {
	r := c.r
	r.probed = make([]probe, len(r.Blocks))
	for _, b := range loops {
		r.probed[b].counted = true
	}
	for b, must := range c.must {
		if must && !r.probe(b) {
			return nil
		}
	}
	for b, on := range c.cheapest(loops) {
		if on {
			r.probe(b)
		}
	}
	for b, is := range r.switches.is {
		if is {
			r.switches.captureIndex(b)
		}
	}
	s := newSearch(r)
	newParting(s).partAll()
	if !r.traced() {
		return nil
	}
	prune(s, c.must)
	captureValues(r, c.must)
	s.countRounds(true)
	return slices.DeleteFunc(slices.Clone(loops), func(b int) bool { return !r.probed[b].counted })
}

// mustHaveProbe names the witnesses that no other can stand for (rule 5, and of rule 6 the direct
// calls).
func mustHaveProbe(r *routine) []bool {
	must := make([]bool, len(r.Blocks))
	for _, pad := range r.Pads {
		must[pad] = true
	}
	for _, b := range r.Others {
		must[b], must[r.Entry] = true, true
	}
	if r.Faulty { // its pads' events are of an activation that is known
		must[r.Entry] = true
	}
	for _, b := range r.calls.leads {
		kind, _ := r.calls.callee(b)
		must[b] = must[b] || kind == plan.External || r.calls.returnsTwice(b)
	}
	for _, b := range r.again {
		must[b] = true
	}
	return must
}
