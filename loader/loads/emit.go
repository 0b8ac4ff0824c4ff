package loads

import (
	"slices"

	"wpptrace/loader/x86"
)

// An emitter makes the program of the ways of a hit.
type emitter struct {
	ns    *nodes
	steps []Step
	cases []uint32 // indices in steps
	// some ways leave traced code, and the program knows whether it is one of these
	mixed bool
	// nobody but the program says whether traced code is left
	alone bool

	// on the way
	known   []*group
	cells   map[value]uint8 // those with results
	results []value         // by cell, from FirstResult on
	full    bool            // a cell was missing
}

// program makes the program of all ways that begin with one. leaves says whether traced code may be
// left whatever it finds. No steps: nothing is read.
func (e *emitter) program(w *way) (leaves bool) {
	e.steps, e.cases = e.steps[:0], e.cases[:0]
	e.known, e.full = e.known[:0], false
	if e.cells == nil {
		e.cells = map[value]uint8{}
	}
	e.forget(0)
	some, all := w.leaving()
	e.mixed = some && (e.alone || !all && w.hasChoices())
	e.way(w)
	if len(e.steps) > 0 {
		e.step(Step{Op: End})
	}
	return some && !e.mixed
}

// leaving reports whether some, and whether all ways leave traced code.
func (w *way) leaving() (some, all bool) {
	some, all = w.leaves, w.leaves || len(w.next) > 0
	for _, n := range w.next {
		s, a := n.leaving()
		some, all = some || s, all && (w.leaves || a)
	}
	return some, all
}

// hasChoices reports whether a program knows anywhere which way is taken.
func (w *way) hasChoices() bool {
	for _, n := range w.next {
		if w.chooses || n.hasChoices() {
			return true
		}
	}
	return false
}

// way makes the steps of a way and of all behind it; the program goes on behind them.
func (e *emitter) way(w *way) {
	for _, g := range w.groups {
		e.fetch(g)
	}
	if w.leaves && e.mixed {
		e.step(Step{Op: Leave})
	}
	switch {
	case w.ends == returned:
		e.goBack(w)
	case w.chooses:
		e.choice(w)
	default:
		for _, n := range w.next {
			e.way(n)
		}
	}
}

// noAddress is where nothing can be read, what a register is taken for that is not known.
const noAddress = -1 << 31

// goBack has the program go on behind a return, with the registers of there. What is made by one
// step, of none of the other registers, comes last, and into its register.
func (e *emitter) goBack(w *way) {
	for i := len(w.sent) - 1; i >= 0 && len(e.results) < mostSending; i-- {
		e.store(&w.sent[i])
	}
	at := e.apart(w.address)
	var from [16]uint8
	var last x86.Set
	for reg := range int8(16) {
		v := w.back[reg]
		switch _, made := e.cells[v]; {
		case !w.behind.Has(reg) || !v.isKnown() || v == held(int(reg)):
		case !made && e.isOneStep(v, held(int(reg))):
			last |= x86.SetOf(reg)
		default:
			from[reg] = e.apart(v)
		}
	}
	if e.full {
		e.step(Step{Op: Leave})
		return
	}
	for reg := range int8(16) {
		s := Step{Op: Sum, Size: 8, A: from[reg], B: NoCell}
		switch v := w.back[reg]; {
		case !w.behind.Has(reg) || v == held(int(reg)):
			continue
		case !v.isKnown():
			s.A, s.Imm = NoCell, noAddress
		case last.Has(reg) && v.node >= fixed:
			s = e.make(&e.ns.list[v.node])
		case last.Has(reg):
			s.A, s.Imm = uint8(reg), int32(v.add)
		}
		s.Dst = uint8(reg)
		e.step(s)
	}
	e.step(Step{Op: Return, A: at, B: NoCell})
}

// mostSending is how many results there may be for what was stored to be sent behind a return: all
// registers need room there.
const mostSending = 64

// store makes the step that has a store be known behind a return.
func (e *emitter) store(s *store) {
	x := Step{Op: Store, Size: s.size, A: e.cell(value{node: s.at.node}), Imm: int32(s.at.add),
		B: e.low(s.is, s.size)}
	if !e.full {
		e.step(x)
	}
}

// isOneStep reports whether one step makes a value, of what has been read or of a register's own.
func (e *emitter) isOneStep(v, own value) bool {
	if v.node == own.node {
		return int64(int32(v.add)) == v.add
	}
	if v.node < fixed || v.add != 0 {
		return false
	}
	n := &e.ns.list[v.node]
	return n.op == Fetch && slices.ContainsFunc(e.known,
		func(g *group) bool { return g.holds(n.a, n.size) })
}

// apart has a value in a cell that is no register's.
func (e *emitter) apart(v value) uint8 {
	c := e.cell(v)
	if c >= FirstResult {
		return c
	}
	return e.result(v, Step{Op: Sum, Size: 8, A: c, B: NoCell})
}

// choice makes the step that goes on at one of the ways behind one, and these.
func (e *emitter) choice(w *way) {
	if w.ends == labels {
		e.find(w.next, w.starts, e.cell(w.index))
		return
	}
	s := Step{Op: Switch, Size: 8, B: NoCell}
	if w.ends == condition {
		var x, y value
		s, x, y, _ = w.flags.branch(w.code)
		s.A = e.low(x, s.Size)
		s.B, s.Imm = e.second(e.lowest(y, s.Size))
	} else {
		s.A = e.cell(w.index)
	}
	at := len(e.steps)
	e.step(s)
	if w.ends == condition {
		starts := e.oneOf(w.next)
		e.steps[at].Jump = starts[1] - starts[0]
		return
	}
	tooGreat := e.jump()
	starts := e.oneOf(w.next)
	e.arrive(tooGreat)
	e.steps[at].Jump = uint32(len(e.cases))
	e.cases = append(e.cases, uint32(len(w.cases)))
	for _, n := range w.cases {
		e.cases = append(e.cases, starts[n])
	}
}

// oneOf makes ways of which one is come to, and returns where they begin; the program goes on
// behind all of them.
func (e *emitter) oneOf(list []*way) (starts []uint32) {
	var ends []int
	for i, n := range list {
		starts = append(starts, uint32(len(e.steps)))
		e.apartFrom(func() { e.way(n) })
		if i < len(list)-1 {
			ends = append(ends, e.jump())
		}
	}
	e.arrive(ends...)
	return starts
}

// apartFrom makes steps, and forgets what is known by them.
func (e *emitter) apartFrom(steps func()) {
	known, results, full := len(e.known), len(e.results), e.full
	steps()
	e.known, e.full = e.known[:known], full
	e.forget(results)
}

// find makes the steps that find the way that begins at the address in a cell, and the ways.
func (e *emitter) find(list []*way, starts []uint64, at uint8) {
	if len(list) == 1 {
		e.way(list[0])
		return
	}
	half := len(list) / 2
	branch := len(e.steps)
	e.step(Step{Op: Branch, A: at, B: ImageBias, Imm: int32(starts[half]), Size: 8,
		Condition: x86.AboveOrEqual})
	e.apartFrom(func() { e.find(list[:half], starts[:half], at) })
	end := e.jump()
	e.arrive(branch)
	e.apartFrom(func() { e.find(list[half:], starts[half:], at) })
	e.arrive(end)
}

// arrive has branches lead to the next step.
func (e *emitter) arrive(branches ...int) {
	for _, at := range branches {
		e.steps[at].Jump = uint32(len(e.steps) - at - 1)
	}
}

func (e *emitter) step(s Step) {
	e.steps = append(e.steps, s)
}

// jump makes a branch that is always taken, and returns where it is.
func (e *emitter) jump() (at int) {
	e.step(Step{Op: Branch, A: NoCell, B: NoCell, Size: 8, Condition: x86.Equal})
	return len(e.steps) - 1
}

// forget takes the results for not known that have been made since there were so many.
func (e *emitter) forget(results int) {
	for _, v := range e.results[results:] {
		delete(e.cells, v)
	}
	e.results = e.results[:results]
}

// fetch makes the read of a group, unless its address takes more cells than there are.
func (e *emitter) fetch(g *group) {
	s := Step{Op: Fetch, Dst: uint8(len(e.known)), B: NoCell, Size: uint8(g.hi - g.lo),
		Imm: int32(g.lo)}
	base := value{node: g.base}
	_, made := e.cells[base]
	if n := &e.ns.list[g.base]; g.base >= fixed && !made && n.op == Sum && n.size == 8 {
		s.A, s.B, s.Scale = e.cell(n.a), e.cell(n.b), n.scale
	} else {
		s.A = e.cell(base)
	}
	if g.out = e.full; e.full {
		return
	}
	e.step(s)
	e.known = append(e.known, g)
}

// cell makes the steps that have a value in a cell, unless it is in one.
func (e *emitter) cell(v value) uint8 {
	switch {
	case v == constant(0) || e.full:
		return NoCell
	case v.add == 0 && v.node >= firstReg && v.node < fixed:
		return uint8(v.node - firstReg)
	}
	if c, ok := e.cells[v]; ok {
		return c
	}
	var s Step
	switch {
	case v.isConstant():
		s = e.constant(v.add)
	case v.add != 0 && int64(int32(v.add)) == v.add:
		s = Step{Op: Sum, Size: 8, A: e.cell(value{node: v.node}), B: NoCell, Imm: int32(v.add)}
	case v.add != 0:
		s = Step{Op: Sum, Size: 8, A: e.cell(value{node: v.node}), B: e.cell(constant(v.add))}
	case e.ns.list[v.node].op == either:
		return e.either(v, &e.ns.list[v.node])
	default:
		s = e.make(&e.ns.list[v.node])
	}
	return e.result(v, s)
}

// either makes the steps that have one of two values in a cell.
func (e *emitter) either(v value, n *node) uint8 {
	q := &e.ns.asked[n.asks]
	s, x, y, _ := q.flags.branch(q.code ^ 1)
	s.A = e.low(x, s.Size)
	s.B, s.Imm = e.second(e.lowest(y, s.Size))
	s.Jump = 1
	yes, no := Step{Op: Sum, Size: 8, A: NoCell}, Step{Op: Sum, Size: 8, A: NoCell}
	yes.B, yes.Imm = e.second(n.a)
	no.B, no.Imm = e.second(n.b)
	c := e.result(v, no)
	if yes.Dst = c; !e.full {
		e.step(s)
		e.step(yes)
	}
	return c
}

// result makes the step that has a value in a cell of its own.
func (e *emitter) result(v value, s Step) uint8 {
	c := FirstResult + len(e.results)
	if c >= NoCell {
		e.full = true
	}
	if e.full {
		return NoCell
	}
	s.Dst = uint8(c)
	e.step(s)
	e.cells[v] = s.Dst
	e.results = append(e.results, v)
	return s.Dst
}

// constant is the last step that makes a number that is not 0.
func (e *emitter) constant(c int64) Step {
	low := int64(int32(c))
	if low == c {
		return Step{Op: Sum, Size: 8, A: NoCell, B: NoCell, Imm: int32(c)}
	}
	high := e.cell(constant((c - low) >> 32))
	shifted := e.ns.of(node{op: ShiftLeft, size: 8, a: constant((c - low) >> 32), b: constant(32)})
	if low == 0 {
		return Step{Op: ShiftLeft, Size: 8, A: high, B: NoCell, Imm: 32}
	}
	return Step{Op: Sum, Size: 8, A: e.cell(shifted), B: NoCell, Imm: int32(low)}
}

// second is a value as the second operand of a step: a cell and a number.
func (e *emitter) second(v value) (cell uint8, imm int32) {
	if int64(int32(v.add)) != v.add {
		return e.cell(v), 0
	}
	return e.cell(value{node: v.node}), int32(v.add)
}

// make is the step that makes a node.
func (e *emitter) make(n *node) (s Step) {
	s = Step{Op: n.op, Size: n.size, Sign: n.sign, Scale: n.scale, B: NoCell}
	switch n.op {
	case Fetch:
		s.Op = Pick
		for i, g := range e.known {
			if g.holds(n.a, n.size) {
				s.A, s.Imm = uint8(i), int32(n.a.add-g.lo)
				return s
			}
		}
		e.full = true // the read was left out for the same
	case Sum:
		a, b := e.lowest(n.a, n.size), e.lowest(n.b, n.size)
		if int64(int32(a.add)) != a.add {
			s.A = e.cell(a)
		} else {
			s.A, s.Imm = e.cell(value{node: a.node}), int32(a.add)
		}
		s.B = e.cell(b)
	case Extend:
		s.A = e.low(n.a, n.size)
	default:
		s.A = e.low(n.a, n.size)
		s.B, s.Imm = e.second(e.lowest(n.b, n.size))
	}
	return s
}

// low has a value in a cell of which the lowest bytes alone count.
func (e *emitter) low(v value, size uint8) (cell uint8) { return e.cell(e.lowest(v, size)) }

// lowest is a value with the same lowest bytes that takes as few steps or fewer: what only makes
// those above zeroes is left out.
func (e *emitter) lowest(v value, size uint8) value {
	for v.node >= fixed {
		n := &e.ns.list[v.node]
		if _, made := e.cells[v]; made || n.op != Sum || n.size < size || n.size == 8 ||
			n.b != constant(0) {
			break
		}
		v = n.a.plus(v.add)
	}
	return v
}
