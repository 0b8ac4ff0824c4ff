package decoder

import (
	"wpptrace/compress/ops"
	"wpptrace/loader/cfg"
	"wpptrace/loader/paths"
	"wpptrace/loader/plan"
)

// An act is one operation of a move.
type act struct {
	kind    actKind
	routine *routine
	number  uint64
	times   uint64 // of actPath
	lap     int    // of actRounds: the loop, of those on the way
}

type actKind uint8

const (
	actEnter actKind = iota
	actPath
	actLeave
	actRounds // a path for each round of a loop but the first and the last
)

// A move is a silent way and the operations that it completes: with them a word costs a look-up.
type move struct {
	acts  []act
	first int    // the act whose path began before the move, so that its number is to be added to the running one; -1: none
	fresh bool   // the running path began within the move
	add   uint64 // the running number after the move, or what is to be added to it
	start origin // where the running path began, if it is fresh
	trail []int  // the blocks walked that belong to the path that began before the move
	laps  *laps  // if the way passes loops that words tell the rounds of
}

// An origin is where a path began.
type origin struct {
	block int
	kind  ops.Start
}

// A mover walks blocks and collects a move.
type mover struct {
	move
	r      *routine
	at     int // exit: at the entry, or before the block where the path goes on
	before bool
}

func newMover(s *state) *mover {
	return &mover{move: move{first: -1}, r: s.r, at: s.block, before: s.before}
}

func (m *mover) path(number uint64) {
	if !m.fresh {
		m.first = len(m.acts)
	}
	m.acts = append(m.acts, act{kind: actPath, routine: m.r, number: m.add + number, times: 1})
}

func (m *mover) begin(b int, kind paths.Start) {
	id, _ := m.r.numbers.Begin(b, kind)
	m.fresh, m.add, m.start = true, id, origin{b, ops.Start(kind)}
}

// call ends the path at the call of block b; what it calls runs silently, if it is known.
func (m *mover) call(b int) {
	m.path(m.r.numbers.Finish(b, callEnd(m.r, b)))
	if m.r.kind[b] == plan.Known {
		if s := m.r.callee[b].silent(); s != nil {
			m.acts = append(m.acts, s.acts...)
		}
	}
}

func callEnd(r *routine, b int) paths.End {
	if r.Blocks[b].End == cfg.NoReturn {
		return paths.EndNoReturn
	}
	return paths.EndCall
}

// step goes on to block b. called: the call that the mover stands at has been made and its path is
// out.
func (m *mover) step(b int, called bool) {
	switch {
	case m.at == exit && m.before:
	case m.at == exit:
		m.begin(b, paths.StartEntry)
	case m.r.Blocks[m.at].CallReturns():
		if !called {
			m.call(m.at)
		}
		m.begin(b, paths.StartCall)
	default:
		inc, ends, _, next := m.r.numbers.Step(m.at, b)
		if ends {
			m.path(inc)
			m.begin(b, next)
		} else {
			m.add += inc
		}
	}
	if !m.fresh {
		m.trail = append(m.trail, b)
	}
	m.at = b
}

// finish ends the path where the routine is left.
func (m *mover) finish() {
	end := paths.EndReturn
	if m.r.Blocks[m.at].End != cfg.Ret {
		end = paths.EndTail
	}
	m.path(m.r.numbers.Finish(m.at, end))
}

// leave ends the activation.
func (m *mover) leave() {
	m.finish()
	m.acts = append(m.acts, act{kind: actLeave, routine: m.r})
}

// to returns the move to block b, nil if no silent way leads there.
func (s *state) to(b int, called bool) *move {
	for i := range s.moves {
		if c := &s.moves[i]; c.to == b && c.called == called {
			return c.move
		}
	}
	var found *move
	if s.passes(called) {
		if i, ok := s.silentWays().find(b); ok {
			found = s.walk(s.silentWays().way(i), called, false)
		}
	}
	s.moves = append(s.moves, cached{b, called, found})
	return found
}

// passes reports whether the activation can go on from where it stands: not if it stands at a call
// of a routine that has to speak and has not.
func (s *state) passes(called bool) bool {
	return called || s.block == exit || !s.r.Blocks[s.block].CallReturns() || s.r.quiet(s.block)
}

// An out is a way out of a routine.
type out struct {
	block int // the one that leaves
	move  *move
}

// An exits is what outs and returnsBy found from a state.
type exits struct {
	found   bool
	list    []out
	returns out // of the list, the first that makes no further word
	n       int // how many of them do
}

// outs lists the silent ways out. Cost: a look-up, where it was asked for before.
func (s *state) outs(called bool) []out { return s.leaving(called).list }

// returnsBy finds the way out that made no further word: by return, or by a tail jump to code that
// made none.
func (s *state) returnsBy(called bool) (o out, n int) {
	e := s.leaving(called)
	return e.returns, e.n
}

func (s *state) leaving(called bool) *exits {
	e := &s.exits[0]
	if called {
		e = &s.exits[1]
	}
	if e.found {
		return e
	}
	e.found = true
	if !s.passes(called) {
		return e
	}
	w := s.silentWays()
	for _, i := range w.exits {
		o := out{block: s.block}
		if i != exit {
			o.block = w.nodes[i].block
		}
		if o.move = s.walk(w.way(i), called, true); o.move == nil {
			continue
		}
		e.list = append(e.list, o)
		if t := s.r.tailTarget(o.block); t == nil || t.silent() != nil {
			if e.n == 0 {
				e.returns = o
			}
			e.n++
		}
	}
	return e
}

// tailTarget is the observed routine that block b jumps to as it leaves, if it is known.
func (r *routine) tailTarget(b int) *routine {
	if r.kind[b] == plan.Known && !r.Blocks[b].IsCall() {
		return r.callee[b]
	}
	return nil
}

// A silence is what a routine does when it makes no word.
type silence struct {
	acts    []act
	working bool
	none    bool
}

// silent returns the one silent run of the routine, nil if it cannot be silent.
func (r *routine) silent() *silence {
	if r.silence == nil {
		r.silence = &silence{working: true}
		r.silence.fill(r)
		r.silence.working = false
	}
	if r.silence.none || r.silence.working { // plans have no silent circles
		return nil
	}
	return r.silence
}

// mostActs bounds what a routine may do silently: silent routines that call each other twice would
// double it at each level.
const mostActs = 1 << 16

func (q *silence) fill(r *routine) {
	q.none = true
	if !r.ProbeFree {
		return
	}
	s := r.atEntry()
	o, n := s.returnsBy(false)
	if n != 1 {
		return
	}
	acts, ok := o.move.fixed()
	if !ok {
		return
	}
	q.acts = append([]act{{kind: actEnter, routine: r}}, acts...)
	if t := r.tailTarget(o.block); t != nil {
		q.acts = append(q.acts, t.silent().acts...)
	}
	q.none = len(q.acts) > mostActs
	if q.none {
		q.acts = nil
	}
}
