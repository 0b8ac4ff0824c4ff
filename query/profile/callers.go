package profile

import (
	"cmp"
	"fmt"
	"slices"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/internal/saturating"
	"wpptrace/query"
	"wpptrace/query/names"
)

// NoRoutine stands for a routine where there is none, or none is known.
const NoRoutine = -1

// A Caller is from where a routine was called.
type Caller struct {
	// the routine of the innermost activation that was open: index in Snapshot.Routines; NoRoutine:
	// none was that is known
	Routine int
	Tail    int  // the routine that ran directly before and ended in a tail jump; or NoRoutine
	Signal  bool // a signal interrupted the innermost activation
	Count   uint64
}

// A CallersReport says who called the routines of a name.
type CallersReport struct {
	Name     string
	Routines []int  // of the name: indices in Snapshot.Routines, in rising order
	Threads  int    // that were looked at
	Calls    uint64 // the sum of all counts: activations whose beginning was seen
	// by falling count, then by rising routine and tail
	Callers []Caller
}

// CallersOf finds who called the routines of a name, ROUTINE or ROUTINE() as in names.Names.Select,
// in the threads with these ids, or in all. The caller is the innermost traced activation: between
// it and the routine external code may have run, as qsort calls what it was given. It is what the
// whole stream says, found on the grammar: each rule is read once, as what it does to a stack of
// activations. That takes time in proportion to the right-hand sides times the nesting of rules,
// and a note for each depth below a rule's own stack from which it calls: there is a limit to
// these. It fails where the snapshot has no such routine or thread.
func CallersOf(s *wpp.Snapshot, name string, tids ...int) (r *CallersReport, err error) {
	defer wpp.Recover(&err)
	threads, err := query.Threads(s, tids)
	if err != nil {
		return nil, err
	}
	routines, err := names.Of(s).Routines(name)
	if err != nil {
		return nil, fmt.Errorf("callers of %s: %w", names.Printable(name), err)
	}
	r = &CallersReport{Name: name, Threads: len(threads)}
	x := &callers{snapshot: s, named: make([]bool, len(s.Routines)), found: map[Caller]uint64{}}
	for _, i := range routines {
		r.Routines = append(r.Routines, i)
		x.named[i] = true
	}
	for _, t := range threads {
		if !x.thread(t.Grammar) {
			return nil, fmt.Errorf("callers of %s: it is called from more than %d depths: ask for "+
				"one thread, or for a routine that is called less often",
				names.Printable(name), mostOpen)
		}
	}
	for c, n := range x.found {
		c.Count = n
		r.Calls = saturating.Add(r.Calls, n)
		r.Callers = append(r.Callers, c)
	}
	slices.SortFunc(r.Callers, func(a, b Caller) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Routine, b.Routine),
			cmp.Compare(a.Tail, b.Tail), compareBool(a.Signal, b.Signal))
	})
	return r, nil
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// mostOpen bounds the calls that are noted at once, to some 200 MB. It is a variable for tests.
var mostOpen = 1 << 21

// callers reads rules from those that use no others upwards.
type callers struct {
	snapshot *wpp.Snapshot
	named    []bool            // by routine
	found    map[Caller]uint64 // without Count
	open     int               // calls in all effects
}

// An effect is what the symbols of a rule do, but for the first: what that does depends on the
// symbol before it, which is another wherever the rule is used.
type effect struct {
	isEmpty     bool
	first, last uint32 // terminals
	popped      uint64 // activations that it ends of those that were open before
	pushed      *activations
	// calls by activations that were open before, for each time that the rule is derived
	open map[openCall]uint64
}

// An openCall is one by an activation below a rule's own: the depth'th, from 0, of those that were
// open before. Its Caller lacks the routine.
type openCall struct {
	depth  uint64
	caller Caller
}

// thread counts the calls of a thread, and reports whether it could keep to the limit.
func (x *callers) thread(g *wpp.Grammar) bool {
	segments := g.NumSegments()
	if segments == 0 {
		start, ok := x.start(g)
		if ok {
			start.end()
		}
		return ok
	}
	whole := x.rule(1)
	for i := range segments {
		segment, _ := g.Segment(i)
		start, ok := x.start(segment)
		if !ok {
			return false
		}
		whole.part(start.effect)
	}
	whole.end()
	return x.keep(whole)
}

// start reads a grammar in one piece up to its start rule; not ok: past the limit.
func (x *callers) start(g *wpp.Grammar) (start *callWalk, ok bool) {
	effects := make([]*effect, g.Rules())
	for _, rule := range slices.Backward(g.Order()) {
		start = x.rule(g.Uses(rule))
		for _, v := range g.Body(rule) {
			if wpp.IsRule(v) {
				start.part(effects[wpp.RuleOf(v)])
			} else {
				start.symbol(v)
			}
		}
		if !x.keep(start) {
			return nil, false
		}
		effects[rule] = start.effect
	}
	return start, true // the start rule is the last one upwards
}

// keep reports whether what a rule leaves open is within the limit.
func (x *callers) keep(w *callWalk) bool {
	x.open += len(w.effect.open)
	return x.open <= mostOpen
}

// rule begins a rule that is derived so often.
func (x *callers) rule(derived uint64) *callWalk {
	return &callWalk{all: x, weight: derived, effect: &effect{isEmpty: true}}
}

// A callWalk makes the effect of one rule.
type callWalk struct {
	all    *callers
	weight uint64 // how often the rule is derived
	effect *effect
}

// symbol adds a terminal. That which the rule begins with has no effect yet.
func (w *callWalk) symbol(v uint32) {
	e := w.effect
	if e.isEmpty {
		e.isEmpty, e.first, e.last = false, v, v
		return
	}
	w.step(v, &w.all.snapshot.Symbols[e.last])
	e.last = v
}

// part adds what a rule derives.
func (w *callWalk) part(p *effect) {
	if p.isEmpty {
		return
	}
	w.symbol(p.first)
	for c, n := range p.open {
		w.call(c.depth, c.caller, n)
	}
	w.pop(p.popped)
	w.effect.pushed = w.effect.pushed.pushAll(p.pushed)
	w.effect.last = p.last
}

// step does what a symbol does behind another (see ops.Expander); nil: there is none before.
func (w *callWalk) step(v uint32, before *wpp.Symbol) {
	p := &w.all.snapshot.Symbols[v]
	switch {
	case p.IsMark && p.Mark == ops.Unwind:
		w.pop(p.N)
		return
	case p.IsMark:
		return
	}
	resumed := before != nil && before.IsMark && before.Mark == ops.Resume
	if p.Start == ops.StartEntry && w.all.named[p.Routine] {
		c := Caller{Tail: NoRoutine}
		if before != nil && !before.IsMark && before.End == ops.EndTail {
			c.Tail = before.Routine
		}
		c.Signal = before != nil && before.IsMark && before.Mark == ops.Handler
		w.call(0, c, 1)
	}
	enters := resumed || p.Start == ops.StartEntry
	leaves := p.End == ops.EndReturn || p.End == ops.EndTail
	switch {
	case enters && !leaves:
		w.effect.pushed = w.effect.pushed.push(p.Routine)
	case leaves && !enters:
		w.pop(1)
	}
}

// call counts calls by the activation at a depth.
func (w *callWalk) call(depth uint64, c Caller, n uint64) {
	if routine, ok := w.effect.pushed.at(depth); ok {
		c.Routine = routine
		w.count(c, n)
		return
	}
	if w.effect.open == nil {
		w.effect.open = map[openCall]uint64{}
	}
	depth = saturating.Add(depth-w.effect.pushed.count(), w.effect.popped)
	o := openCall{depth, c}
	w.effect.open[o] = saturating.Add(w.effect.open[o], n)
}

func (w *callWalk) count(c Caller, n uint64) {
	w.all.found[c] = saturating.Add(w.all.found[c], saturating.Mul(n, w.weight))
}

func (w *callWalk) pop(n uint64) {
	e := w.effect
	own := e.pushed.count()
	e.pushed = e.pushed.pop(min(n, own))
	e.popped = saturating.Add(e.popped, n-min(n, own))
}

// end counts the calls of a thread that no activation is known to have made.
func (w *callWalk) end() {
	if w.effect.isEmpty {
		return
	}
	first := &callWalk{all: w.all, weight: w.weight, effect: &effect{}}
	first.step(w.effect.first, nil)
	for c, n := range w.effect.open { // by what the first symbol has opened, or by none
		first.call(c.depth, c.caller, n)
	}
	for c, n := range first.effect.open {
		c.caller.Routine = NoRoutine
		w.count(c.caller, n)
	}
}

// Activations are a stack; nil: an empty one. It does not change, and shares what is below with
// others: a rule that derives 2^60 activations is a few nodes.
type activations struct {
	below   *activations
	part    *activations // not nil: several, in place of routine
	routine int
	size    uint64 // with those below
}

func (a *activations) count() uint64 {
	if a == nil {
		return 0
	}
	return a.size
}

func (a *activations) push(routine int) *activations {
	return &activations{below: a, routine: routine, size: saturating.Add(a.count(), 1)}
}

func (a *activations) pushAll(part *activations) *activations {
	switch {
	case part == nil:
		return a
	case a == nil:
		return part
	}
	return &activations{below: a, part: part, size: saturating.Add(a.count(), part.count())}
}

// own is how many a node is.
func (a *activations) own() uint64 {
	if a.part == nil {
		return 1
	}
	return a.part.size
}

// at returns the routine at a depth, from 0 for the innermost.
func (a *activations) at(depth uint64) (routine int, ok bool) {
	for a != nil {
		own := a.own()
		switch {
		case depth >= own:
			depth, a = depth-own, a.below
		case a.part == nil:
			return a.routine, true
		default:
			a = a.part
		}
	}
	return 0, false
}

// pop takes away the innermost ones, of which there are as many.
func (a *activations) pop(n uint64) *activations {
	var around []*activations
	for n > 0 && a != nil {
		if own := a.own(); n >= own {
			n, a = n-own, a.below
		} else { // it has a part
			around = append(around, a.below)
			a = a.part
		}
	}
	for _, below := range slices.Backward(around) {
		a = below.pushAll(a)
	}
	return a
}
