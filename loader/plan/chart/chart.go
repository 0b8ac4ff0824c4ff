package chart

import (
	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
)

// A Chart is one routine of a plan. Addresses are link-time addresses.
type Chart struct {
	Name    string  `json:"name"`     // of the routine
	Entry   uint64  `json:"entry"`    // its address
	Source  *string `json:"source"`   // file:line of the entry; null: not known
	LeftOut *string `json:"left_out"` // why the routine is not traced; null: it is
	// a route leads from the entry to the end without an event: the callers of an activation imply
	// then what it did
	ProbeFree bool    `json:"probe_free"`
	External  bool    `json:"external_callers"` // external code may enter the routine
	Blocks    []Block `json:"blocks"`           // by number; none if the routine is left out
	Routes    []Route `json:"routes"`           // between events; none if the routine is left out
	// there are more routes than the 2000 that are listed
	Unlisted bool `json:"routes_unlisted"`
}

// A Block is a basic block.
type Block struct {
	Number int     `json:"block"`  // from 0 on
	From   uint64  `json:"from"`   // the address of its first instruction
	To     uint64  `json:"to"`     // the address behind its last instruction
	Source *string `json:"source"` // file:line of its first instruction; null: not known
	Ending string  `json:"ending"` // its last instruction
	End    string  `json:"end"`    // how it ends, as "conditional jump" or "return"
	Next   []int   `json:"next"`   // the blocks that may run after it; -1: the activation ends
	// where its conditional jump goes if it is taken; null: there is none
	Taken *int `json:"taken"`
	// what it calls, or jumps to outside the routine; null: nothing, or it is not known
	Callee *string `json:"callee"`
	// how control comes to it otherwise than by a jump, as "landing pad"
	Entered string `json:"entered,omitempty"`
	Probe   *Probe `json:"probe"` // null: it has none
	// what the rounds of the loop that the block is are known by; null: it has a probe, or is no
	// loop
	Loop *string `json:"loop"`
	// the numbers of the routes that the block is on: the event at the end of one says that it ran
	KnownBy []int `json:"known_by"`
}

// Exit stands in the place of a block for the end of the activation.
const Exit = cfg.Exit

// A Probe is that of a block. Each of its events records the activation: the address of its frame.
type Probe struct {
	Addr        uint64 `json:"address"`     // of the instruction that carries it
	Instruction string `json:"instruction"` // in the syntax of GNU assemblers
	Class       string `json:"class"`       // emulated or single-stepped
	// what the frame's address is taken from: the CFA, that above the return address
	Activation string  `json:"activation"`
	Outcome    bool    `json:"outcome"`  // whether the jump is taken is recorded
	Captured   *string `json:"captured"` // the value that is recorded besides; null: none
	Decides    *string `json:"decides"`  // what that value decides; null: there is none
	First      bool    `json:"first"`    // its event may be the first of an activation
}

// MostRoutes is how many routes a chart has at most.
const MostRoutes = 2000

// A Route is what runs after an event, or from the entry on, up to the next event or the end,
// without an event of the routine: no other route leads from the one to the other and says the
// same.
type Route struct {
	Number int `json:"route"` // from 1 on
	From   int `json:"from"`  // the block with the event before; -2: the entry
	// the jump there is taken, or not; null: it does not matter, or is not recorded
	Outcome *bool `json:"outcome"`
	// what the captured value says; null: it does not matter, or there is none
	Value *string `json:"value"`
	// in between, in the order in which they run; a loop without a probe once, for all its rounds
	Blocks []int `json:"blocks"`
	// the block with the next event; -1: the activation ends; -3: what is called never returns
	To int `json:"to"`
}

// These stand in the place of a block: Entry for the beginning of an activation, Never for what
// does not come, as the block before calls what never returns.
const (
	Entry = -2
	Never = -3
)

// Of charts a routine. lines may be nil. Cost: the routes up to MostRoutes, and the routine's size.
func Of(p *plan.Plan, r *plan.Routine, lines *image.Lines) *Chart {
	c := &Chart{Name: r.Name, Entry: r.Addr, Source: source(lines, r.Addr),
		ProbeFree: r.RunsProbeFree(), External: r.ExternalCallers(), Blocks: []Block{},
		Routes: []Route{}}
	if !r.Traced() {
		c.LeftOut = &r.LeftOut
		return c
	}
	w := &routes{r: r}
	w.findAll()
	c.Routes, c.Unlisted = w.list, w.unlisted
	known := make([][]int, len(r.Blocks))
	for _, route := range c.Routes {
		for _, b := range route.Blocks {
			known[b] = append(known[b], route.Number)
		}
	}
	d := &drawing{plan: p, r: r, lines: lines}
	for b := range r.Blocks {
		block := d.block(b)
		block.KnownBy = append([]int{}, known[b]...)
		c.Blocks = append(c.Blocks, block)
	}
	return c
}
