package decoder

import (
	"slices"

	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
)

// place finds out which activation a word belongs to, ends what must have ended, and walks to the
// word's block. Afterwards the innermost frame is the activation, with its path up to the block.
func (t *Thread) place(a activation, s *plan.Site) {
	chain := t.callers(a, s)
	if len(chain) > 0 && chain[0].Resync() {
		t.resync(a, s.Block, chain)
		return
	}
	i := t.find(a, chain)
	if i < 0 && t.revive(a, s.Block, s.First, chain) {
		i = t.find(a, chain)
	}
	if i >= 0 && t.frames[i].back && len(chain) > 0 {
		t.confirm(&t.frames[i], chain[0])
	}
	if i >= 0 && t.goOn(i, s) || i < 0 && t.reappear(a, s.Block) {
		return
	}
	if !s.First || len(chain) == 0 {
		t.resume(a, s.Block)
		return
	}
	t.enterBy(a, chain)
	f := t.top()
	m := f.st.to(s.Block, false)
	if m == nil {
		t.anomaly("no way from the entry to a first word", "routine", a.r.Name, "block", a.r.Blocks[s.Block].Lo)
		t.sink.Mark(ops.Resume, 1)
		t.resumeAt(f, s.Block)
		return
	}
	t.apply(f, m)
}

// confirm takes the return address of what was taken to be called back, with its first word: a signal
// handler may have been meant.
func (t *Thread) confirm(f *frame, from wire.Event) {
	f.from, f.back = from, false
	if f.handler = isHandler(from); f.handler {
		t.sink.Mark(ops.Cut, 0)
	}
}

func (t *Thread) top() *frame { return &t.frames[len(t.frames)-1] }

// callers is the chain that came with the word, or the one that the kernel remembers and so did not
// send again.
func (t *Thread) callers(a activation, s *plan.Site) []wire.Event {
	if len(t.from) > 0 {
		if !t.from[0].Resync() {
			t.chain, t.saved, t.owner = append(t.chain[:0], t.from...), append(t.saved[:0], t.regs...), a
		} else {
			t.owner = activation{}
		}
		return t.from
	}
	if s.First && t.owner == a {
		t.regs = append(t.regs[:0], t.saved...)
		return t.chain
	}
	return nil
}

// goOn lets frame i go on to a site. It reports false if the word must come from a new activation
// in the same place.
func (t *Thread) goOn(i int, s *plan.Site) bool {
	f := &t.frames[i]
	if f.stopped && f.st.block == s.Block { // the instruction runs anew
		t.finishAbove(i)
		return true
	}
	lands := (f.r.pad[s.Block] || f.r.again[s.Block] && !t.firstReturn(i, s.Block)) && !t.flows(i, s.Block)
	switch {
	case !lands || s.First && !t.mayLand(i, s.Block):
	case f.r.pad[s.Block]:
		t.land(i, s.Block)
		return true
	default:
		t.returnAgain(i, s.Block)
		return true
	}
	m := f.st.to(s.Block, f.called)
	switch {
	case m != nil && (!s.First || calleesReturn(t.frames[i+1:])):
		t.finishAbove(i)
		t.apply(&t.frames[i], m)
	case s.First:
		return false
	case t.returnUnseen(i, s.Block):
	default:
		t.anomaly("no way to a word", "routine", f.r.Name, "from", f.address(), "to", f.r.Blocks[s.Block].Lo)
		t.finishAbove(i)
		t.cut(&t.frames[i])
		t.sink.Mark(ops.Resume, 1)
		t.resumeAt(&t.frames[i], s.Block)
	}
	return true
}

// firstReturn reports whether frame i comes to block b by the first return of the call that it
// follows: it stands at that call, or was interrupted right behind it by what has come to its end.
func (t *Thread) firstReturn(i, b int) bool {
	f := &t.frames[i]
	if f.st.before && f.st.next[0] == b {
		return t.haveReturned(i)
	}
	at := f.st.block
	return at != exit && f.r.Blocks[at].CallReturns() && f.r.Blocks[at].Succ[0] == b
}

// haveReturned reports whether all activations above frame i can have come to their ends.
func (t *Thread) haveReturned(i int) bool {
	for k := len(t.frames) - 1; k > i; k-- {
		if !mayEnd(t.frames, k) {
			return false
		}
	}
	return true
}

func (f *frame) address() uint64 {
	if f.st.block == exit {
		return f.r.Addr
	}
	return f.r.Blocks[f.st.block].Lo
}

// enterBy begins an activation whose chain of callers is known, and those of its callers that have
// made no word yet.
func (t *Thread) enterBy(a activation, chain []wire.Event) {
	from := chain[0]
	caller, known := t.d.returns[from.Address()]
	if from.Origin() != wire.Inside || !known {
		t.enterRoot(a, from)
		return
	}
	depth := caller.r.Blocks[caller.block].Depth
	i := t.findCaller(caller, a.cfa, depth, chain[1:])
	around := caller.r.at(caller.block, 0).to(caller.block, true) != nil // then it may have called anew
	if i < 0 && t.tailJumpFromRoot(a, from, !around) {
		return
	}
	if i < 0 && depth >= 0 && t.reappearAtCall(caller, a.cfa+uint64(depth), a.r) {
		t.enter(frame{activation: a, from: from})
		return
	}
	if i < 0 && depth >= 0 && t.reappear(activation{caller.r, a.cfa + uint64(depth)}, caller.block) {
		i = len(t.frames) - 1
	}
	if i < 0 && depth >= 0 && len(chain) > 1 {
		t.enterBy(activation{caller.r, a.cfa + uint64(depth)}, chain[1:])
		i = len(t.frames) - 1
	}
	if i < 0 {
		t.enter(frame{activation: a, from: from, root: !t.resumeCaller(caller, a.cfa, depth)})
		return
	}
	p := &t.frames[i]
	if p.called && p.st.block == caller.block {
		if t.tailJump(i+1, a, from, true) {
			return
		}
		if k := p.r.kind[caller.block]; p.open || k == plan.External || k == plan.Unknown { // what it called jumped on
			t.finishAbove(i)
			t.enter(frame{activation: a, from: from})
			return
		}
	}
	if !t.callFrom(i, caller.block, a.r) {
		if depth >= 0 && len(chain) > 1 { // the caller runs anew in the same place
			t.enterBy(activation{caller.r, a.cfa + uint64(depth)}, chain[1:])
			if t.callFrom(len(t.frames)-1, caller.block, a.r) {
				t.enter(frame{activation: a, from: from})
				return
			}
			i = len(t.frames) - 1
			p = t.top()
		}
		t.anomaly("no way to a call", "routine", caller.r.Name, "from", p.address(), "to", caller.r.Blocks[caller.block].Lo, "of", a.r.Name)
		t.finishAbove(i)
		p = &t.frames[i]
		t.cut(p)
		t.sink.Mark(ops.Resume, 1)
		p.st, p.called, p.stopped = caller.r.at(caller.block, 0), true, false
	}
	t.enter(frame{activation: a, from: from})
}

// findCaller finds the frame that made the call: where the size of its frame is known, the one at
// that address; else the innermost that can have come to the call, or that stands at it and what it
// called has the same address, or had made no word when a handler came; or else that stands at it,
// if what it called may have jumped on.
func (t *Thread) findCaller(c place, cfa uint64, depth int, chain []wire.Event) int {
	if depth < 0 {
		i := t.innermost(c.r, cfa, chain, func(i int) bool {
			f := &t.frames[i]
			return f.st.block == c.block && (!f.called || t.entered(i, cfa)) || f.st.to(c.block, f.called) != nil
		})
		if i < 0 {
			i = t.innermost(c.r, cfa, chain, func(i int) bool { return t.mayJumpOn(i, c.block, cfa) })
		}
		return i
	}
	a := activation{c.r, cfa + uint64(depth)}
	i := t.find(a, chain)
	if i < 0 && t.revive(a, c.block, false, chain) {
		i = t.find(a, chain)
	}
	return i
}

// entered reports whether what frame i calls is at cfa, or may be: a handler came before its first
// word.
func (t *Thread) entered(i int, cfa uint64) bool {
	return i+1 < len(t.frames) && (t.frames[i+1].cfa == cfa || t.frames[i+1].handler)
}

// innermost finds the innermost frame of a routine above cfa that was called through chain and for
// which is holds, or -1.
func (t *Thread) innermost(r *routine, cfa uint64, chain []wire.Event, is func(i int) bool) int {
	for i := len(t.frames) - 1; i >= 0; i-- {
		if f := &t.frames[i]; f.r == r && f.cfa > cfa && !f.gone && is(i) && t.calledThrough(i, chain) && t.reaches(i, cfa) {
			return i
		}
	}
	return -1
}

// reaches reports whether the frame of activation i, whose size is not known, may come down to cfa:
// not if there is an activation between that a handler, which it is or which it works for, has
// interrupted on a stack below its own.
func (t *Thread) reaches(i int, cfa uint64) bool {
	f := &t.frames[i]
	if i == 0 || t.frames[i-1].lowest >= f.cfa {
		return true
	}
	k := i
	for k > 0 && !t.frames[k].handler {
		k--
	}
	return !slices.ContainsFunc(t.frames[:t.frames[k].over], func(o frame) bool { return cfa < o.cfa && o.cfa < f.cfa })
}

// mayJumpOn reports whether frame i stands at its call at block c, and what that entered may have
// left to another activation at cfa by a tail jump.
func (t *Thread) mayJumpOn(i, c int, cfa uint64) bool {
	f := &t.frames[i]
	if f.st.block != c {
		return false
	}
	k := f.r.kind[c]
	return f.called && f.open || k == plan.External || k == plan.Unknown || i+1 < len(t.frames) && t.frames[i+1].cfa == cfa
}

// callFrom lets frame i come to its call at block c, which enters r, perhaps through silent
// routines that jump on.
func (t *Thread) callFrom(i, c int, r *routine) bool {
	p := &t.frames[i]
	if p.st.block != c || p.called {
		m := p.st.to(c, p.called)
		if m == nil {
			return false
		}
		t.finishAbove(i)
		p = &t.frames[i]
		t.apply(p, m)
		p.st, p.called = p.r.at(c, 0), false
	} else {
		t.finishAbove(i)
		p = &t.frames[i]
	}
	t.makeCall(p)
	if p.r.kind[c] == plan.Known && p.r.callee[c] != r {
		acts, ok := p.r.callee[c].relay(r, 0)
		if !ok {
			t.anomaly("a call entered another routine", "caller", p.r.Name, "routine", r.Name)
		}
		t.emit(acts)
	}
	return true
}

// goToCall lets a frame come silently to the call of block c, and make it.
func (t *Thread) goToCall(f *frame, c int) {
	if f.st.block != c || f.called {
		t.apply(f, f.st.to(c, f.called))
		f.st, f.called = f.r.at(c, 0), false
	}
	t.makeCall(f)
}

// makeCall ends the running path of a frame that stands at a call.
func (t *Thread) makeCall(p *frame) {
	if p.called {
		return
	}
	p.called, p.open, p.stopped = true, false, false
	t.complete(p, p.r.numbers.Finish(p.st.block, callEnd(p.r, p.st.block)))
	p.trail, p.skip = nil, 0
	p.start = origin{exit, ops.StartCall}
}

func (t *Thread) emit(acts []act) {
	t.apply(&frame{}, &move{acts: acts, first: -1, fresh: true})
}

// mostRelays bounds how many silent routines may hand control on by tail jumps: no plan has more.
const mostRelays = plan.MaxProbeFreeJumps

// relay lists the operations of the silent routines from r on that jump to goal.
func (r *routine) relay(goal *routine, depth int) (acts []act, ok bool) {
	if r == goal {
		return nil, true
	}
	if depth == mostRelays || !r.ProbeFree {
		return nil, false
	}
	s := r.atEntry()
	for _, o := range s.outs(false) {
		next := r.tailTarget(o.block)
		if next == nil && !r.jumpsAnywhere(o.block) {
			continue
		}
		var rest []act
		if next != nil {
			if rest, ok = next.relay(goal, depth+1); !ok {
				continue
			}
		}
		run, ok := o.move.fixed()
		if !ok {
			continue
		}
		acts = append([]act{{kind: actEnter, routine: r}}, run...)
		return append(acts, rest...), true
	}
	return nil, false
}

// jumpsAnywhere reports whether the routine leaves at block b by a jump to code that is not
// observed, or not known: which may jump on to any routine.
func (r *routine) jumpsAnywhere(b int) bool {
	e := r.Blocks[b].End
	return (e == cfg.TailInd || e == cfg.Tail || e == cfg.Jcc) && (r.kind[b] == plan.External || r.kind[b] == plan.Unknown)
}

// mayJumpOnTo reports whether tail jumps can lead from the routine to goal.
func (r *routine) mayJumpOnTo(goal *routine) bool {
	list, seen := []*routine{r}, map[*routine]bool{}
	for i := 0; i < len(list); i++ {
		for b := range list[i].Blocks {
			next := list[i].tailTarget(b)
			if next == goal || list[i].jumpsAnywhere(b) {
				return true
			}
			if next != nil && !seen[next] {
				seen[next] = true
				list = append(list, next)
			}
		}
	}
	return false
}

// jumpsOut reports whether the routine leaves at block b by a jump to code that is not observed, or
// through silent routines that do.
func (r *routine) jumpsOut(b int) bool {
	for range mostRelays {
		if r.jumpsAnywhere(b) {
			return true
		}
		if r = r.tailTarget(b); r == nil {
			return false
		}
		o, n := r.atEntry().returnsBy(false)
		if n == 0 {
			return false
		}
		b = o.block
	}
	return false
}

// tailJump handles a new activation with the CFA and return address of the one at frame j: that one
// left by a tail jump (rule 7). unseen: perhaps through code that is not observed.
func (t *Thread) tailJump(j int, a activation, from wire.Event, unseen bool) bool {
	if j >= len(t.frames) {
		return false
	}
	q := &t.frames[j]
	if !q.mayReturnTo(a.cfa, from) || !calleesReturn(t.frames[j+1:]) {
		return false
	}
	for _, o := range q.st.outs(q.called) {
		var acts []act
		ok := unseen && q.r.jumpsAnywhere(o.block)
		mayHaveReturned := ok && q.from == 0 // to a caller that has called anew
		if next := q.r.tailTarget(o.block); next != nil {
			acts, ok = next.relay(a.r, 0)
		}
		if !ok {
			continue
		}
		t.finishAbove(j)
		q = &t.frames[j]
		t.apply(q, o.move)
		t.emit(acts)
		if mayHaveReturned {
			t.sink.Mark(ops.Resume, 0)
		}
		next := frame{activation: a, from: from, root: q.root, handler: q.handler, over: q.over, alive: q.alive, adrift: q.adrift}
		t.frames = t.frames[:j]
		t.enter(next)
		return true
	}
	return false
}

// tailJumpFromRoot handles a tail jump out of an activation whose caller is not observed, or not
// known.
func (t *Thread) tailJumpFromRoot(a activation, from wire.Event, unseen bool) bool {
	for j := len(t.frames) - 1; j >= 0 && t.frames[j].lowest <= a.cfa; j-- {
		if q := &t.frames[j]; q.root && q.mayReturnTo(a.cfa, from) {
			return t.tailJump(j, a, from, unseen)
		}
	}
	return false
}

// mayReturnTo reports whether the activation is at this place and has this return address, as far
// as is known.
func (f *frame) mayReturnTo(cfa uint64, from wire.Event) bool {
	return f.cfa == cfa && (f.from == from || f.from == 0)
}

// enterRoot begins an activation that code which is not observed called: a callback, a handler, a
// thread's or coroutine's first.
func (t *Thread) enterRoot(a activation, from wire.Event) {
	f := frame{activation: a, from: from, root: true, handler: isHandler(from)}
	if t.tailJumpFromRoot(a, from, true) {
		return
	}
	if f.handler {
		t.handle(f)
		return
	}
	if t.toOpenCall(a.cfa) {
		t.leaveOverwritten(a.cfa)
	}
	t.enter(f)
}
