package planner

import (
	"math"
	"slices"

	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
	"wpptrace/loader/x86"
)

// steppedCost is what a single-stepped hit costs, in emulated ones.
const steppedCost = 40

// A probe is a witness in the making.
type probe struct {
	on      bool
	stepped bool
	edges   bool // the words tell which out-edge is taken
	silent  bool // there is none: the block is a loop whose rounds other words tell
	insn    int32
	tells   *plan.Capture // what the words tell besides, if anything: a switch, or the value of a place
}

// carries is the place whose value the words of block b tell besides, or nil.
func (r *routine) carries(b int) *x86.Operand {
	if t := r.probed[b].tells; t != nil && t.Kind == plan.JumpPlace {
		return &t.Operand
	}
	return nil
}

// A seat is where a probe of a block would sit. It is small: there is one for each block.
type seat struct {
	found, stepped, edges bool
	insn                  int32
}

const exit = cfg.Exit

// seat returns where a probe of block b would sit: the last cheap instruction, else the last one
// that can be single-stepped.
func (r *routine) seat(b int) (p probe, ok bool) {
	if r.seats == nil {
		r.seats = make([]seat, len(r.Blocks))
		for b := range r.seats {
			r.seats[b] = r.findSeat(b)
		}
	}
	s := r.seats[b]
	return probe{on: s.found, stepped: s.stepped, edges: s.edges, insn: s.insn}, s.found
}

func (r *routine) findSeat(b int) seat {
	if r.isSignature(b) {
		return seat{}
	}
	insns := r.Blocks[b].Insns
	last := len(insns) - 1
	if i := slices.IndexFunc(insns, cfg.Insn.MayFault); r.Faulty && b == r.Entry && i >= 0 {
		last = i // an exception may come out of it
	}
	for _, class := range []x86.Class{x86.Emulated, x86.Stepped} {
		for i := last; i >= 0; i-- {
			q := &insns[i]
			if q.Class(r.Code(q)) == class && r.hasCFA(q.Addr) {
				return seat{found: true, stepped: class == x86.Stepped, insn: int32(i), edges: q.Kind == x86.Jcc}
			}
		}
	}
	return seat{}
}

// isSignature reports whether a routine begins with block b as a mark for its callers, which read it before
// they call through a pointer (-fsanitize=function): a jump over a few bytes that nothing runs.
func (r *routine) isSignature(b int) bool {
	const most = 16 // bytes
	bl := &r.Blocks[b]
	if b != r.Entry || bl.End != cfg.Jmp || len(bl.Insns) > 1 || bl.Succ[0] < 0 {
		return false
	}
	to := r.Blocks[bl.Succ[0]].Lo
	return bl.Hi < to && to-bl.Hi <= most &&
		!slices.ContainsFunc(r.Blocks, func(o cfg.Block) bool { return bl.Hi <= o.Lo && o.Lo < to })
}

func (r *routine) hasCFA(pc uint64) bool {
	reg := r.CFA(pc).Reg
	return reg == 6 || reg == 7 || reg == image.Slot
}

// sum is the expected cost of probes of some blocks.
func (r *routine) sum(blocks []int) (sum float64) {
	for _, b := range blocks {
		sum += r.price(b)
	}
	return sum
}

// price is the expected cost of a probe of block b.
func (r *routine) price(b int) float64 {
	p, ok := r.seat(b)
	switch {
	case !ok:
		return math.Inf(1)
	case p.stepped:
		return r.freq[b] * steppedCost
	}
	return r.freq[b]
}

// probe puts a probe on block b. It reports false, and leaves the routine out, if there is no place
// for one.
func (r *routine) probe(b int) bool {
	if r.probed[b].on {
		return true
	}
	p, ok := r.seat(b)
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
	calls  []calling // of leads
	silent bool
	probed []probe
}

// start gives an observed routine the probes that it needs by itself: what must speak, and what
// tells the ways from one word to the next apart. It reports whether the routine had to be left
// out.
func (r *routine) start() (leftOut bool) {
	if !r.traced() {
		return false
	}
	r.forks = false
	same := func(c calling, b int) bool { return c == r.calls[b] }
	if m := &r.started; m.probed != nil && m.silent == r.silent && slices.EqualFunc(m.calls, r.leads, same) {
		r.probed = slices.Clone(m.probed)
		return false
	}
	must := r.mustSpeak()
	loops := r.countable(must)
	c := newCovering(r, must)
	r.equip(c, nil)
	if len(loops) > 0 && r.traced() {
		r.equipCounting(c, loops)
	}
	if r.traced() {
		r.started = memo{make([]calling, len(r.leads)), r.silent, slices.Clone(r.probed)}
		for i, b := range r.leads {
			r.started.calls[i] = r.calls[b]
		}
	}
	return !r.traced()
}

// startLeaf starts a routine that calls nothing.
func (r *routine) startLeaf() (leftOut bool) { return callsNothing(r.Routine) && r.start() }

// equipCounting equips the routine so that the rounds of some loops are told by other words than
// theirs, if that is cheaper: of all that can be told, or of one.
func (r *routine) equipCounting(c *covering, loops []int) {
	best, least, found := r.probed, r.cost(), false
	if !r.isMeasured() {
		for _, b := range loops {
			if r.probed[b].on {
				least -= (1 - loopDoubt) * r.price(b)
			}
		}
	}
	try := func(loops []int) (told []int) {
		told = r.equip(c, loops)
		if r.traced() && r.cost() < least {
			best, least, found = r.probed, r.cost(), true
		}
		r.leftOut, r.cause = "", ""
		return told
	}
	if told := try(loops); len(told) > 0 && len(told) < len(loops) {
		try(told) // without what was there for the others
	}
	if !found && len(loops) > 1 {
		for _, b := range loops[:min(len(loops), mostAlone)] {
			try([]int{b})
		}
	}
	r.probed = best
}

// loopDoubt is the part of a loop's expected rounds that is counted on, where they are estimated:
// loops that are guarded, or search, often end at once, and what words cost around them is certain.
const loopDoubt = 0.4

// mostAlone is how many loops, the dearest first, are tried one by one where they are not cheaper
// together: each takes nearly as long as a plan of the routine.
const mostAlone = 2

// equip gives the routine its probes, these loops none if it can be: it returns those that have
// none.
func (r *routine) equip(c *covering, loops []int) (told []int) {
	r.probed = make([]probe, len(r.Blocks))
	for _, b := range loops {
		r.probed[b].silent = true
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
	for b, is := range r.switches {
		if is {
			r.tellTable(b)
		}
	}
	s := newSearch(r)
	newParting(s).partAll()
	if !r.traced() {
		return nil
	}
	r.prune(s, c.must)
	r.tellByValues(c.must)
	r.countRounds(s, true)
	return slices.DeleteFunc(slices.Clone(loops), func(b int) bool { return !r.probed[b].silent })
}

// mustSpeak names the witnesses that no other can stand for (rule 5, and of rule 6 the direct
// calls).
func (r *routine) mustSpeak() []bool {
	must := make([]bool, len(r.Blocks))
	for _, pad := range r.Pads {
		must[pad] = true
	}
	for _, b := range r.Others {
		must[b], must[r.Entry] = true, true
	}
	if r.Faulty { // its pads' words are of an activation that is known
		must[r.Entry] = true
	}
	for _, b := range r.leads {
		kind, _ := r.callee(b)
		must[b] = must[b] || kind == plan.External || r.returnsTwice(b)
	}
	for _, b := range r.again {
		must[b] = true
	}
	return must
}
