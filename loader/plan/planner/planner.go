package plan

import (
	"cmp"
	"slices"
	"sync/atomic"

	"wpptrace/internal/parallel"
	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// MaxSites is how many sites a plan may have: a word has 18 bits for one.
const MaxSites = 1 << 18

var mostSites = MaxSites // a variable for tests

// MaxSilentCallers is how many callers in a row may have made no word: a hit follows so many and
// the one behind them.
const MaxSilentCallers = 55

// MaxSilentJumps is how many tail jumps in a row may come without a word: the decoder goes along so
// many.
const MaxSilentJumps = 60

// Options say what to observe.
type Options struct {
	// Complete admits single-stepped probes wherever a routine needs them, whatever they cost.
	Complete bool
	// Select tells which routines to observe; nil means all.
	Select func(r *cfg.Routine) bool
	// Weights are measured frequencies; nil means static estimates.
	Weights *Weights
	// Distrust takes no imported function for harmless by its name: it may lie in another image
	// that is observed.
	Distrust bool
	// EveryRound lets no loop run without a word (rule 13): a recording that begins or ends amid
	// one knows nothing of its rounds then.
	EveryRound bool
}

// Weights say how often an earlier run of the same program came where. What they do not know is
// estimated.
type Weights struct {
	Blocks  map[uint64]uint64 // by address
	Entries map[uint64]uint64 // activations, by the entry of each routine that was observed
}

// A Site is one probed instruction.
type Site struct {
	Addr      uint64
	Routine   int // index in Plan.Routines
	Block     int
	Insn      int   // index in the block
	Condition uint8 // condition code of a conditional jump, or NoCondition
	Stepped   bool  // the kernel single-steps the instruction
	Base      uint8 // hardware number of the CFA's register: 4 rsp, 5 rbp
	Offset    int32 // CFA = base + offset
	Slot      bool  // CFA = what lies at base + offset
	First     bool  // may be the first word of its activation
	// SameActivation says, by outcome (0 for what is no conditional jump), that the activation
	// neither calls nor ends before its next event.
	SameActivation [2]bool
	Capture        *Capture // what its events record besides the outcome; nil: nothing
	Expected       float64  // hits
}

// NoCondition is the condition of a site that is no conditional jump.
const NoCondition = 16

// A Call is what is known of a call by its return address.
type Call struct {
	Depth  int  // CFA - rsp before the call, bytes
	Spoken bool // the caller has made a word before it
}

// A Routine is a routine with its probes.
type Routine struct {
	*cfg.Routine
	ID      int    // index in Plan.Routines
	LeftOut string // why it is not observed; "" if it is
	Cause   string // of LeftOut, see cfg.FormatReason
	// Silent says that an activation may end without a word: it is entered by direct calls and
	// jumps of observed code alone.
	Silent bool

	plan         *Plan
	entries      []int                 // the blocks by which it is entered
	rootable     bool                  // code that is not observed may be its caller
	renewed      bool                  // code that is not observed may begin it anew, see markRenewed
	forks        bool                  // what is called back after some word may come from it or, after its silent end, from its caller
	open         bool                  // see MayLeaveOpen
	shifts       bool                  // it calls observed routines from where the size of its frame is not known
	goesOut      bool                  // code that is not observed may run before it ends
	callers      []*Routine            // that it is Known to, each once
	callees      []*Routine            // that it calls or jumps to and that are Known
	jumpees      []*Routine            // of these, those that it jumps to
	circle       int                   // the circle of calls and jumps that it is on, from 1; 0: none
	leads        []int                 // the blocks that call, or jump to another routine
	destinations []destination         // of leads
	calls        []calling             // by block
	again        []int                 // blocks that follow calls which may return again, each once
	switches     []bool                // by block: it ends in a jump through a table
	onward       [][]int               // by block: the nodes that may run after it without a word of what it calls
	effects      [][]cfg.Effect        // by block, of those that were followed while probes are chosen
	freq         []float64             // by block: expected runs for each activation
	insns        float64               // expected instructions for each activation
	activations  float64               // expected
	measured     bool                  // activations and freq are
	conditions   []*cfg.Condition      // by block
	seats        []seat                // by block
	counters     map[int][]cfg.Counter // of loops of one block: what may tell their rounds
	probed       []probe
	started      memo
	site         []int  // index in Plan.Sites by block, -1 for none
	first        []bool // by block: see First; while rules are settled, right when circles are looked for
	leaving      blockSet
	counts       map[int]*cfg.Counter // by block: loops without a probe whose rounds words tell
	readings     map[int]*Capture     // by block: the registers that its words carry

	unsettled bool // what the rules ask of it may have changed
}

// A Plan is the result: part by part, routines and sites in the order of their addresses. An
// address in it is a link-time address, to which the Offset of its Part is added where the part is
// not known.
type Plan struct {
	Program  *cfg.Program // of the first part
	Parts    []Part       // one for each image
	Routines []*Routine   // by Routine.ID
	Sites    []Site
	Calls    map[uint64]Call // by return address, Offset added

	offset    uint64
	distrust  bool
	counting  bool // loops may run without a word
	allocates bool // the C library gets its memory from the program
	measured  bool // some of the frequencies are
}

// Observed reports whether the routine's paths are recorded.
func (r *Routine) Observed() bool { return r.LeftOut == "" }

// MayBeRoot reports whether code that is not observed may have called the routine, or jumped to it.
func (r *Routine) MayBeRoot() bool { return r.rootable }

func (r *Routine) leaveOut(format string, args ...any) {
	r.LeftOut, r.Cause = cfg.FormatReason(format, args...)
}

// Site returns the site of a block, or nil.
func (r *Routine) Site(block int) *Site {
	if i := r.site[block]; i >= 0 {
		return &r.plan.Sites[i]
	}
	return nil
}

// Runs is how often the block is expected to run: an estimate, good for ratios, or a count if the
// plan was made with Weights.
func (r *Routine) Runs(block int) float64 { return r.activations * r.freq[block] }

// Asks returns what the conditional jump that ends a block asks, if it asks for a register, or a place
// in the frame, alone.
func (r *Routine) Asks(block int) *cfg.Condition { return r.conditions[block] }

// First reports whether the block can be reached from the routine's entry without a word.
func (r *Routine) First(block int) bool { return r.first[block] }

// Make plans a program, on all CPUs. Cost: for what compilers make nearly linear in its size, on
// two CPUs 0.4 s for 100,000 blocks, and two to four times that with Weights.
func Make(program *cfg.Program, o Options) (*Plan, error) {
	p := &Plan{Program: program, distrust: o.Distrust, counting: !o.EveryRound, allocates: hasAllocator(program), measured: o.Weights != nil}
	p.Routines = make([]*Routine, len(program.Routines))
	parallel.Each(len(p.Routines), func(i int) {
		c := program.Routines[i]
		p.Routines[i] = &Routine{Routine: c, ID: c.ID, plan: p, LeftOut: c.LeftOut, Cause: c.Cause, entries: append([]int{c.Entry}, c.Others...)}
	})
	if o.Select != nil {
		p.leaveUnselected(o.Select)
	}
	p.each(func(r *Routine) bool { r.prepare(o.Weights); return false })
	p.choose(&thinning{Plan: p, admits: o.Complete})
	p.place()
	if len(p.Sites) > mostSites {
		return nil, p.tooMany(len(p.Sites))
	}
	p.Parts = []Part{{Program: program, Routines: p.Routines, Sites: p.Sites}}
	return p, nil
}

// NotSelected is the cause of what Options.Select does not want.
const NotSelected = "not selected"

func (p *Plan) leaveUnselected(selects func(r *cfg.Routine) bool) {
	for _, r := range p.Routines {
		if r.Observed() && !selects(r.Routine) {
			r.leaveOut(NotSelected)
		}
	}
}

func (r *Routine) prepare(w *Weights) {
	r.calls = make([]calling, len(r.Blocks))
	r.findLeads()
	if !r.Observed() {
		return
	}
	r.switches = make([]bool, len(r.Blocks))
	for b := range r.Blocks {
		r.switches[b] = r.Blocks[b].End == cfg.Table
	}
	r.estimate(w)
	r.conditions = r.Conditions()
	r.findCounters()
	met := make([]bool, len(r.Blocks))
	for _, b := range r.leads {
		if !r.ReturnsTwice(b) {
			continue
		}
		if next := r.Blocks[b].Succ[0]; !met[next] {
			met[next] = true
			r.again = append(r.again, next)
		}
	}
	if len(r.again)*len(r.leads) > mostLandings {
		r.leaveOut("too many calls that may return again")
	}
}

// mostLandings is how many ways there may be from a routine's calls to places behind calls that may
// return again.
const mostLandings = 1 << 20

// choose settles probes for all routines. Leaving one out changes what its callers call, so it
// starts anew then. Leaves, which are left out most often, come first, and what looks beyond one
// routine, which takes longest, when there is nothing else to leave out.
func (p *Plan) choose(thin *thinning) {
	for again := true; again; {
		p.classify()
		p.expect()
		again = p.each((*Routine).startLeaf) || thin.dropLeaves() || p.each((*Routine).start) || thin.round() || p.settle() || thin.round()
	}
}

// each calls a function for all routines, which changes nothing but its own, on all CPUs. It
// reports whether any answered true.
func (p *Plan) each(change func(r *Routine) bool) bool {
	var any atomic.Bool
	parallel.Each(len(p.Routines), func(i int) {
		if change(p.Routines[i]) {
			any.Store(true)
		}
	})
	return any.Load()
}

// settle applies the rules that look beyond one routine until nothing changes. It reports whether a
// routine had to be left out.
func (p *Plan) settle() (leftOut bool) {
	for _, r := range p.Routines {
		r.unsettled, r.renewed = r.Observed(), r.rootable
	}
	for changed := true; changed; {
		p.markOpen()
		changed = p.each(func(r *Routine) bool {
			if !r.unsettled {
				return false
			}
			if r.unsettled = r.obey(); r.unsettled {
				r.separate(newSearch(r)) // a switch may not be told any more
			}
			if r.Observed() {
				r.markFirst()
			}
			return r.unsettled
		})
		changed = p.breakCircles() || changed
		if slices.ContainsFunc(p.Routines, func(r *Routine) bool { return r.unsettled && !r.Observed() }) {
			return true // what calls it has to be planned anew, and a circle that it is on is one no more
		}
		changed = changed || p.markRenewed()
	}
	return false
}

// place makes the sites and the table of calls of the probes that are on.
func (p *Plan) place() {
	p.each(func(r *Routine) bool {
		r.site = slices.Repeat([]int{none}, len(r.Blocks))
		if r.Silent = r.Silent && r.Observed(); r.Observed() {
			r.carry()
			r.markFirst()
			r.markLeaving()
		}
		return false
	})
	parallel.Both(p.placeCalls, p.placeSites)
}

// placeSites makes the sites, in the order of their addresses, and says which is each block's.
func (p *Plan) placeSites() {
	type spot struct {
		addr    uint64
		routine *Routine
		block   int
	}
	n := 0
	for _, r := range p.Routines {
		n += r.countProbes()
	}
	spots := make([]spot, 0, n)
	for _, r := range p.Routines {
		if !r.Observed() {
			continue
		}
		for b, pr := range r.probed {
			if pr.on {
				spots = append(spots, spot{r.Blocks[b].Insns[pr.insn].Addr, r, b})
			}
		}
	}
	slices.SortFunc(spots, func(a, b spot) int { return cmp.Compare(a.addr, b.addr) })
	p.Sites = make([]Site, len(spots))
	parallel.Each(len(spots), func(i int) {
		at := &spots[i]
		p.Sites[i], at.routine.site[at.block] = at.routine.makeSite(at.block), i
	})
}

// countLeads returns how many blocks lead to other routines, or may.
func (p *Plan) countLeads() (n int) {
	for _, r := range p.Routines {
		n += len(r.leads)
	}
	return n
}

// countProbes returns how many blocks of the routine have a probe.
func (r *Routine) countProbes() (n int) {
	for b := range r.probed {
		if r.probed[b].on {
			n++
		}
	}
	return n
}

func (p *Plan) placeCalls() {
	p.Calls = make(map[uint64]Call, p.countLeads())
	for _, r := range p.Routines {
		if !r.Observed() {
			continue
		}
		for _, b := range r.leads {
			if block := &r.Blocks[b]; r.isCall(b) && block.Depth >= 0 {
				p.Calls[block.Hi] = Call{Depth: block.Depth, Spoken: !r.first[b] || r.probed[b].on}
			}
		}
	}
}

func (r *Routine) makeSite(b int) Site {
	block, pr := &r.Blocks[b], r.probed[b]
	insn := block.Insns[pr.insn]
	rule := r.CFA(insn.Addr)
	s := Site{Addr: insn.Addr, Routine: r.ID, Block: b, Insn: int(pr.insn), Condition: NoCondition, Stepped: pr.stepped,
		Base: hardware(rule.Reg), Offset: rule.Off, Slot: rule.Reg == image.Slot, First: r.first[b], Expected: r.activations * r.freq[b]}
	if insn.Kind == x86.Jcc {
		s.Condition = insn.Op & 15
	}
	if insn.Kind == x86.Jcc && block.End == cfg.Jcc {
		s.SameActivation = [2]bool{!r.leaves(block.Succ[1]), !r.leaves(block.Succ[0])}
	} else if !r.isCall(b) {
		s.SameActivation[0] = !r.leaves(r.Blocks[b].After()...)
	}
	switch t := pr.tells; {
	case t == nil:
		s.Capture = r.readings[b]
	case t.Kind == JumpPlace:
		s.Capture = r.values(b, t.Operand)
	case r.told(t.Table): // no probe put in later parts the two
		s.Capture = t
	}
	return s
}

// hardware turns the register of a rule, by its DWARF number or that of a slot's rule, into the
// hardware's rsp or rbp.
func hardware(reg int8) uint8 {
	if reg == 6 || reg == image.Slot {
		return 5
	}
	return 4
}
