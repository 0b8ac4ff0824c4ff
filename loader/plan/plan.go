package plan

import (
	"slices"

	"wpptrace/internal/remedy"
	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/absint"
)

// MaxSites is how many sites a plan may have: an event has 18 bits for one.
const MaxSites = 1 << 18

// MaxProbeFreeCallers is how many callers in a row may have made no event: a hit follows so many
// and the one behind them.
const MaxProbeFreeCallers = 55

// MaxProbeFreeJumps is how many tail jumps in a row may come without an event: the decoder goes
// along so many.
const MaxProbeFreeJumps = 60

// A Plan says which instructions of a program carry a probe, and what their events mean: part by
// part, routines and sites in the order of their addresses. An address in it is a link-time
// address, to which the Offset of its Part is added where the part is not known. Once it is made
// nothing but Append and Limit change it; until then, any number of goroutines may read it.
type Plan struct {
	Program  *cfg.Program // of the first part
	Imports  Imports      // of the first part
	Parts    []Part       // one for each image
	Routines []*Routine   // by Routine.ID
	Sites    []Site
	Calls    map[uint64]Call // by return address, Offset added

	offset uint64
	most   int // sites that there may be
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
	First     bool  // may be the first event of its activation
	// SameActivation says, by outcome (0 for what is no conditional jump), that the activation
	// neither calls nor ends before its next event.
	SameActivation [2]bool
	// NextCall is, by outcome, the one call that the activation can make before its next event,
	// if it cannot end before that (rule 15: next calls): its return address, of a key of
	// Plan.Calls without the Offset; 0: several are possible, or something else.
	NextCall [2]uint64
	// Caller is the one call that enters the routine (rule 14: only callers), as NextCall; 0: there
	// may be several.
	Caller   uint64
	Capture  *Capture // what its events record besides the outcome; nil: nothing
	Expected float64  // hits
}

// NoCondition is the condition of a site that is no conditional jump.
const NoCondition = 16

// A Call is what is known of a call by its return address.
type Call struct {
	Depth      int    // CFA - rsp before the call, bytes
	AfterEvent bool   // an event of the caller comes before it
	Caller     uint64 // as that of the Sites of the routine that calls, Offset added
}

// A Callee says what kind of code a block calls or jumps to.
type Callee uint8

// The kinds of callee.
const (
	NoCallee Callee = iota
	Known           // a traced routine, directly
	External        // external code, directly
	Harmless        // the same, known to neither call back, nor throw, nor return twice
	Unknown         // through a register or memory: anything
)

// A Routine is a routine with what is planned for it.
type Routine struct {
	*cfg.Routine
	ID      int    // index in Plan.Routines
	LeftOut string // why it is not traced; "" if it is
	Cause   string // of LeftOut, see cfg.FormatReason
	// ProbeFree says that an activation may end without an event: it is entered by direct calls and
	// jumps of traced code alone.
	ProbeFree bool

	mayBeRoot, mayLeaveOpen bool
	blocks                  []Block
	plan                    *Plan
}

// RunsProbeFree reports whether an activation can run without an event, from an entry to its end or
// to a call that never returns. ProbeFree permits that; here a route does it. Cost: the routine's
// size.
func (r *Routine) RunsProbeFree() bool {
	if !r.Traced() || !r.ProbeFree {
		return false
	}
	seen := make([]bool, len(r.Blocks))
	for queue := append([]int{r.Entry}, r.Others...); len(queue) > 0; {
		b := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if b == cfg.Exit {
			return true
		}
		if seen[b] || r.Site(b) != nil {
			continue
		}
		seen[b] = true
		next := r.Blocks[b].After()
		if len(next) == 0 {
			return true
		}
		queue = append(queue, next...)
	}
	return false
}

// RunsOnce reports whether each activation that ends by a return or a tail jump runs a block once:
// it lies on all routes from the entries to there, and on no circle. Cost: the routine's size.
func (r *Routine) RunsOnce(block int) bool {
	const end = cfg.Exit
	onAll := !r.leads(append([]int{r.Entry}, r.Others...), end, block)
	after := r.Blocks[block].After()
	return onAll && r.leads(after, end, block) && !r.leads(after, block, end)
}

// leads reports whether a route leads from some blocks to another one, or to cfg.Exit, and does not
// pass one that is to be avoided.
func (r *Routine) leads(from []int, to, avoid int) bool {
	seen := make([]bool, len(r.Blocks))
	for queue := slices.Clone(from); len(queue) > 0; {
		b := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		switch {
		case b == to:
			return true
		case b == avoid || b == cfg.Exit || seen[b]:
			continue
		}
		seen[b] = true
		queue = append(queue, r.Blocks[b].After()...)
	}
	return false
}

// Findings are what a planner hands over of a routine.
type Findings struct {
	LeftOut, Cause                    string  // see Routine
	ProbeFree                         bool    // see Routine
	ExternalCallers, MayLeaveCallOpen bool    // see the methods of Routine
	Blocks                            []Block // those of the program's routine
}

// A Block is what a planner hands over of a block: see the methods of Routine.
type Block struct {
	Callee              Callee
	First, ReturnsTwice bool
	To                  int32 // the routine that is called or jumped to, if it is Known
	site                int32 // index in Plan.Sites, plus one; 0: it has no probe
	Runs                float64
	Asks                *absint.Condition
	Counts              *absint.Counter
}

// New makes a plan of what a planner has found of each routine of a program, of the sites in the
// order of their addresses, and of the calls that traced routines make. All that becomes the
// plan's. It fails if there are too many sites.
func New(program *cfg.Program, imports Imports, found []Findings, sites []Site,
	calls map[uint64]Call) (*Plan, error) {
	p := &Plan{Program: program, Imports: imports, Sites: sites, Calls: calls, most: MaxSites}
	if len(sites) > MaxSites {
		return nil, p.tooMany(len(sites))
	}
	p.Routines = make([]*Routine, len(found))
	for i := range found {
		f := &found[i]
		p.Routines[i] = &Routine{
			Routine: program.Routines[i], ID: i, LeftOut: f.LeftOut, Cause: f.Cause,
			ProbeFree: f.ProbeFree,
			mayBeRoot: f.ExternalCallers, mayLeaveOpen: f.MayLeaveCallOpen, blocks: f.Blocks,
			plan: p,
		}
	}
	for i := range sites {
		s := &sites[i]
		p.Routines[s.Routine].blocks[s.Block].site = int32(i) + 1
	}
	p.Parts = []Part{{Program: program, Routines: p.Routines, Sites: sites}}
	return p, nil
}

func (p *Plan) tooMany(sites int) error {
	return remedy.Errorf(remedy.FewerProbes, "plan %s: %d probes are needed, %d are possible",
		p.Program.Image.Name, sites, p.most)
}

// Limit has the plan have at most so many sites, with those that Append adds, or as many as it has
// where those are more. It returns how many it may have.
func (p *Plan) Limit(sites int) (most int) {
	p.most = max(len(p.Sites), min(p.most, sites))
	return p.most
}

// Traced reports whether the routine's paths are recorded.
func (r *Routine) Traced() bool { return r.LeftOut == "" }

// ExternalCallers reports whether external code may have called the routine, or jumped to it.
func (r *Routine) ExternalCallers() bool { return r.mayBeRoot }

// MayLeaveCallOpen reports whether code may be called back, or an exception come, around an end of
// the routine without an event, by what it, or a routine that it called or jumped to, has entered:
// it ends without an event after a call of external code, or by a jump there, or where such a call
// might have been.
func (r *Routine) MayLeaveCallOpen() bool { return r.mayLeaveOpen }

// Site returns the site of a block, or nil: a routine that is left out has none.
func (r *Routine) Site(block int) *Site {
	if i := r.blocks[block].site; i > 0 {
		return &r.plan.Sites[i-1]
	}
	return nil
}

// Callee returns what the block calls, or tail-jumps to; the routine if it is Known.
func (r *Routine) Callee(block int) (Callee, *Routine) {
	b := &r.blocks[block]
	if b.Callee != Known {
		return b.Callee, nil
	}
	return Known, r.plan.Parts[0].Routines[b.To]
}

// ReturnsTwice reports whether the call that ends the block may return more than once, as setjmp
// does.
func (r *Routine) ReturnsTwice(block int) bool { return r.blocks[block].ReturnsTwice }

// First reports whether the block of a traced routine can be reached from the routine's entry
// without an event.
func (r *Routine) First(block int) bool { return r.blocks[block].First }

// Runs is how often the block is expected to run: an estimate, good for ratios, or a count if the
// plan was made with measured weights; 0 if the routine's control flow is not known.
func (r *Routine) Runs(block int) float64 { return r.blocks[block].Runs }

// Asks returns what the conditional jump that ends the block asks, if it asks for a register, or a
// place in the frame, alone.
func (r *Routine) Asks(block int) *absint.Condition { return r.blocks[block].Asks }

// Counts returns what says how many rounds the loop runs that the block is, if it has no probe and
// events around it say so (rule 13: counted loops); else nil.
func (r *Routine) Counts(block int) *absint.Counter { return r.blocks[block].Counts }

// LoopsCounted is how many loops of the routine run without a probe: see Counts.
func (r *Routine) LoopsCounted() (n int) {
	for b := range r.blocks {
		if r.blocks[b].Counts != nil {
			n++
		}
	}
	return n
}

// Offset is that of the routine's Part.
func (r *Routine) Offset() uint64 { return r.plan.offset }
