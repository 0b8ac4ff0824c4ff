package planner

import (
	"slices"
	"sync/atomic"

	"wpptrace/internal/parallel"
	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/plan"
)

// Options say what to trace.
type Options struct {
	// Complete admits single-stepped probes wherever a routine needs them, whatever they cost.
	Complete bool
	// Select reports which routines to trace; nil means all.
	Select func(r *cfg.Routine) bool
	// Refuse says why a routine cannot be traced, though its graph is exact; "": it can. nil means
	// none.
	Refuse func(r *cfg.Routine) (why string)
	// Weights are measured frequencies; nil means static estimates.
	Weights *Weights
	// Distrust takes no imported function for harmless by its name: it may lie in another image
	// that is traced.
	Distrust bool
	// EveryRound lets no loop run without a probe (rule 13: counted loops): a recording that begins
	// or ends amid one knows nothing of its rounds then.
	EveryRound bool
	// Busy says that what is selected is what a process spends its time in: however few hits are
	// expected, few of them may be single-stepped, as in a large program.
	Busy bool
}

// Weights say how often an earlier run of the same program came where. What they do not know is
// estimated.
type Weights struct {
	Blocks  map[uint64]uint64 // by address
	Entries map[uint64]uint64 // activations, by the entry of each routine that was traced
}

// Make plans a program, on all CPUs. Cost: for what compilers make nearly linear in its size, on
// two CPUs 0.4 s for 100,000 blocks, and two to four times that with Weights.
func Make(program *cfg.Program, o Options) (*plan.Plan, error) {
	return find(program, o).result()
}

// find finds the probes of a program.
func find(program *cfg.Program, o Options) *planner {
	p := &planner{program: program, imports: plan.ImportsOf(program, o.Distrust),
		counting: !o.EveryRound, measured: o.Weights != nil}
	p.routines = make([]*routine, len(program.Routines))
	parallel.Each(len(p.routines), func(i int) {
		c := program.Routines[i]
		p.routines[i] = &routine{Routine: c, leftOut: c.LeftOut, cause: c.Cause,
			entries: append([]int{c.Entry}, c.Others...), costs: costs{r: c}, loops: loops{r: c}}
	})
	if o.Select != nil {
		p.leaveUnselected(o.Select)
	}
	if o.Refuse != nil {
		p.leaveRefused(o.Refuse)
	}
	p.each(func(r *routine) bool { p.prepare(r, o.Weights); return false })
	p.choose(&thinning{p: p, admits: o.Complete, busy: o.Busy})
	return p
}

// A routine is what the search knows of a routine.
type routine struct {
	*cfg.Routine
	leftOut string // why it is not traced; "" if it is
	cause   string // of leftOut, see cfg.FormatReason

	entries    []int               // the blocks by which it is entered
	again      []int               // blocks that follow calls which may return again, each once
	conditions []*absint.Condition // by block
	calls      callTable
	costs      costs
	switches   switches
	loops      loops
	standing   standing

	onward  [][]int // by block: the nodes that may run after it without an event of what it calls
	probed  []probe // by block
	started memo
	// by block: it can be reached from the entry without an event; while rules are settled, right
	// when circles are looked for
	first []bool

	unsettled bool // what the rules ask of it may have changed
}

// standing is how a routine stands to external code.
type standing struct {
	probeFree bool // an activation may end without an event: see plan.Routine.ProbeFree
	entered   bool // external code may be its caller
	restarted bool // external code may begin it anew, see markRestarted
	// what is called back after some event may come from it or, after its end without another, from
	// its caller
	ambiguous bool
	open      bool // see plan.Routine.MayLeaveCallOpen
}

// A planner is a search for a program's probes.
type planner struct {
	program  *cfg.Program
	imports  plan.Imports
	routines []*routine // as those of the program
	counting bool       // loops may run without a probe
	measured bool       // some of the frequencies are
}

// traced reports whether the routine's paths are to be recorded.
func (r *routine) traced() bool { return r.leftOut == "" }

func (r *routine) leaveOut(format string, args ...any) {
	r.leftOut, r.cause = cfg.FormatReason(format, args...)
}

// NotSelected is the cause of what Options.Select does not want.
const NotSelected = "not selected"

func (p *planner) leaveUnselected(selects func(r *cfg.Routine) bool) {
	for _, r := range p.routines {
		if r.traced() && !selects(r.Routine) {
			r.leaveOut(NotSelected)
		}
	}
}

func (p *planner) leaveRefused(refuse func(r *cfg.Routine) string) {
	for _, r := range p.routines {
		if !r.traced() {
			continue
		}
		if why := refuse(r.Routine); why != "" {
			r.leftOut, r.cause = why, why
		}
	}
}

func (p *planner) prepare(r *routine, w *Weights) {
	r.calls.by = make([]calling, len(r.Blocks))
	p.findLeads(r)
	if !r.traced() {
		return
	}
	r.switches = newSwitches(r)
	r.costs.estimate(w)
	r.conditions = r.Conditions()
	if p.counting {
		r.loops.findCounters()
	}
	met := make([]bool, len(r.Blocks))
	for _, b := range r.calls.leads {
		if !r.calls.returnsTwice(b) {
			continue
		}
		if next := r.Blocks[b].Succ[0]; !met[next] {
			met[next] = true
			r.again = append(r.again, next)
		}
	}
	if len(r.again)*len(r.calls.leads) > mostLandings {
		r.leaveOut("too many calls that may return again")
	}
}

// mostLandings is how many ways there may be from a routine's calls to places behind calls that may
// return again.
const mostLandings = 1 << 20

// choose settles probes for all routines. Leaving one out changes what its callers call, so it
// starts anew then. Leaves, which are left out most often, come first, and what looks beyond one
// routine, which takes longest, when there is nothing else to leave out.
func (p *planner) choose(thin *thinning) {
	for again := true; again; {
		p.classify()
		p.expect()
		again = p.each(startLeaf) || thin.dropLeaves() || p.each(start) || thin.round() ||
			p.settle() || thin.round()
	}
}

// each calls a function for all routines, which changes nothing but its own, on all CPUs. It
// reports whether any answered true.
func (p *planner) each(change func(r *routine) bool) bool {
	var any atomic.Bool
	parallel.Each(len(p.routines), func(i int) {
		if change(p.routines[i]) {
			any.Store(true)
		}
	})
	return any.Load()
}

// settle applies the rules that look beyond one routine until nothing changes. It reports whether a
// routine had to be left out.
func (p *planner) settle() (leftOut bool) {
	for _, r := range p.routines {
		r.unsettled, r.standing.restarted = r.traced(), r.standing.entered
	}
	for changed := true; changed; {
		p.markOpen()
		changed = p.each(func(r *routine) bool {
			if !r.unsettled {
				return false
			}
			if r.unsettled = applyLocalRules(r); r.unsettled {
				newSearch(r).separate() // a switch may not be known any more
			}
			if r.traced() {
				r.markFirst()
			}
			return r.unsettled
		})
		changed = p.breakCircles() || changed
		if slices.ContainsFunc(p.routines,
			func(r *routine) bool { return r.unsettled && !r.traced() }) {
			// what calls it has to be planned anew, and a circle that it is on is one no more
			return true
		}
		changed = changed || p.markRestarted()
	}
	return false
}

// none is no block.
const none = -1
