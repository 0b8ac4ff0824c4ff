package chart

import (
	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
)

// A Chart is one routine of a plan. Addresses are link-time addresses.
type Chart struct {
	Name    string  `json:"name"`
	Entry   uint64  `json:"entry"`
	Source  *string `json:"source"`   // file:line; null if it is not known
	LeftOut *string `json:"left_out"` // why the routine is not traced; null if it is
	// ProbeFree: an activation may run from its entry to its end without an event. Its callers
	// imply then what it did.
	ProbeFree bool `json:"probe_free"`
	// External: external code may enter the routine.
	External bool    `json:"external_callers"`
	Blocks   []Block `json:"blocks"`
	Routes   []Route `json:"routes"`
	Unlisted bool    `json:"routes_unlisted"` // there are more than MostRoutes
}

// A Block is a basic block.
type Block struct {
	Number  int     `json:"block"`
	From    uint64  `json:"from"`
	To      uint64  `json:"to"`     // exclusive
	Source  *string `json:"source"` // of its first instruction: file:line; null if it is not known
	Ending  string  `json:"ending"` // its last instruction
	End     string  `json:"end"`    // how it ends: see ends
	Next    []int   `json:"next"`   // blocks; Exit where the activation ends
	Taken   *int    `json:"taken"`  // of a conditional jump: where it goes if it is taken; null: it is none
	Callee  *string `json:"callee"` // what it calls or jumps to outside the routine; null: nothing, or it is not known
	Entered string  `json:"entered,omitempty"`
	Probe   *Probe  `json:"probe"`
	// Loop says what the rounds of the loop are known by that the block is; null: it has a probe, or
	// is none.
	Loop *string `json:"loop"`
	// KnownBy are the routes, by number, that the block is on: an event behind one says that it ran.
	KnownBy []int `json:"known_by"`
}

// Exit stands in the place of a block for the end of the activation.
const Exit = cfg.Exit

// A Probe is that of a block. Each of its events records the activation: the address of its frame.
type Probe struct {
	Addr        uint64  `json:"address"`
	Instruction string  `json:"instruction"`
	Class       string  `json:"class"`      // emulated or single-stepped
	Activation  string  `json:"activation"` // what the frame's address is taken from
	Outcome     bool    `json:"outcome"`    // whether the jump is taken is recorded
	Captured    *string `json:"captured"`   // the value that is read; null: none
	Decides     *string `json:"decides"`    // what that value decides
	First       bool    `json:"first"`      // its event may be the first of an activation
}

// MostRoutes is how many routes a chart has at most.
const MostRoutes = 2000

// A Route is what runs after an event, or from the entry on, up to the next event or the end, without
// an event of the routine: no other route leads from the one to the other and says the same.
type Route struct {
	Number  int     `json:"route"`
	From    int     `json:"from"`    // the block with the event before; Entry: none
	Outcome *bool   `json:"outcome"` // the jump there is taken, or not; null: it does not matter, or is not recorded
	Value   *string `json:"value"`   // what the captured value says; null: it does not matter, or there is none
	Blocks  []int   `json:"blocks"`  // in between, in the order in which they run
	To      int     `json:"to"`      // the block with the next event, Exit, or Never
}

// These stand in the place of a block: Entry for the beginning of an activation, Never for what does
// not come, as the block before calls what never returns.
const (
	Entry = -2
	Never = -3
)

// Of charts a routine. lines may be nil. Cost: the routes up to MostRoutes, and the routine's size.
func Of(p *plan.Plan, r *plan.Routine, lines *image.Lines) *Chart {
	c := &Chart{Name: r.Name, Entry: r.Addr, Source: source(lines, r.Addr), ProbeFree: r.ProbeFree, External: r.ExternalCallers(), Blocks: []Block{}, Routes: []Route{}}
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
