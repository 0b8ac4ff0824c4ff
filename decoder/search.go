package decoder

import (
	"slices"

	"wpptrace/bpf/wire"
	"wpptrace/decoder/route"
	"wpptrace/loader/plan"
)

// A step is one step on the way of an activation to a location.
type step struct {
	kind  stepKind
	block int        // of the call, or of the location
	insn  int        // of the location
	fault bool       // it has faulted
	hit   bool       // it has been hit, if it is probed
	out   route.Out  // of the tail jump
	back  activation // what is called back
}

type stepKind uint8

const (
	stepStop   stepKind = iota // the location is in the activation itself
	stepCall                   // it calls
	stepTail                   // it leaves by a tail jump
	stepReturn                 // it returns to external code
	stepStay                   // the location is in the call where it stands
	stepBack                   // external code, where the way stands, calls back
	// External code calls first in the thread, or in a signal handler before the thread's first
	// event.
	stepBegin
)

// A count is how many ways there are.
type count uint8

const (
	none count = iota
	one
	several // which cannot be distinguished
)

func (n count) plus(m count) count { return min(n+m, several) }

// ways are those without an event to a location: how many, which if there is one, and whether some
// end the activation that they begin with, or do not.
type ways struct {
	n           count
	way         []step
	ends, stays bool
}

func (w *ways) add(n count, first step, rest []step) {
	if n == none {
		return
	}
	w.n, w.way = w.n.plus(n), append([]step{first}, rest...)
	ends := first.kind == stepReturn || first.kind == stepTail
	w.ends, w.stays = w.ends || ends, w.stays || !ends
}

// A search looks for the ways without an event from where a thread stands to a location where it
// was interrupted. It changes nothing. Cost: the code that can be reached without an event.
type search struct {
	d       *Decoder
	stack   *stack
	to      location
	cfa     uint64           // of the activation that the location is in; 0: it is not known
	entries map[entered]ways // from the entries of routines

	// sawHandler: a handler of external code has come since the last event.
	sawHandler bool
	// faultedOutside: since the last event external code has faulted, elsewhere: the handler of
	// that may have led to the location.
	faultedOutside bool
	// faultedThere: external code has faulted at the location: its return address is not stale.
	faultedThere bool
	// atCallOutside: what is looked from stands at a call of external code: what that leads to is
	// left out.
	atCallOutside bool

	// back are the ways by which external code may have called back and come to the location
	// without an event, if that was askedBack.
	back      ways
	askedBack bool
	origin    activation // that, if it is one
}

// An entered is an activation of a routine, and where it returns to; CFA or address 0: it is not
// known.
type entered struct {
	activation
	returns uint64
}

// elsewhere is a return address that leads out of the image.
const elsewhere = 1

// mostEntered bounds how many are looked at: what leads further cannot be distinguished from other
// ways.
const mostEntered = 1 << 12

// A result is what a search has found from where a thread stands.
type result struct {
	ways  ways // whether they end an activation: of the outermost that they begin with
	frame int  // the one that the way begins with, of several that of the outermost; -1: none
	// returned is how many of the innermost activations have returned on all ways.
	returned int
	// jumped: the one that called them, or the innermost itself, has left on all ways, by the jump
	// that it stands at.
	jumped bool
}

// run looks for the ways from where the thread stands: from its innermost activation, and from each
// caller of those that can have returned.
func (s *search) run() (all result) {
	frames := s.stack.frames
	if !s.stack.hasRun {
		return result{ways: s.beginning(), frame: -1}
	}
	if stop, ok := s.lastEvent(); ok {
		all.ways.add(one, stop, nil)
		all.frame = len(frames) - 1
		return all
	}
	for i := len(frames) - 1; i >= 0; i-- {
		f := &frames[i]
		called := inCall(frames, i)
		o, returns := f.pos.ReturnsBy(called)
		here := s.fromFrame(i, o, returns > 0)
		// Where stacks are switched, one that stands at a call out of which that may be has perhaps
		// not returned.
		certain := !s.faultedOutside && returns == 1 && all.ways.n == none &&
			all.returned == len(frames)-1-i && (len(s.stack.away) == 0 || !f.atExternalCall())
		switch {
		case here.n > none:
			jumped := certain && !here.stays && o.Block == f.pos.Block && f.r.JumpsOutside(o.Block)
			all.jumped = all.jumped || jumped
			here.n = here.n.plus(all.ways.n)
			all.ways, all.frame = here, i
		case certain && !f.handler && f.r.TailTarget(o.Block) == nil:
			all.returned++
		}
		if returns == 0 || s.to.isAnywhere() && f.fromExternal {
			break
		}
	}
	return all
}

// fromFrame looks for all ways from frame i; out is by which it returns, if it can.
func (s *search) fromFrame(i int, out route.Out, returns bool) ways {
	f := &s.stack.frames[i]
	here := s.within(f, inCall(s.stack.frames, i))
	if f.atExternalCall() {
		n, way := s.calledBack(i)
		here.add(n, step{kind: stepStay}, way)
		at := entered{f.activation, returnAddress(f.caller)}
		here.add(s.there(at.called(f.pos.Block)), step{kind: stepStay}, nil)
	}
	// A jump outside is among the ways within.
	if f.fromExternal && returns && !f.r.LeadsOutside(out.Block) && !s.goesOn(i) {
		here.add(s.throughUnknown(), step{kind: stepReturn}, nil)
	}
	return here
}

// lastEvent reports where the innermost activation is if the instruction of its last event has
// faulted: what faults, and is probed, has been hit just before.
func (s *search) lastEvent() (stop step, ok bool) {
	if !s.to.faulted || len(s.stack.frames) == 0 {
		return step{}, false
	}
	f := s.stack.top()
	b, k, found := f.r.Locate(s.to.pc)
	if !found || f.pos.Block != b || f.called || !s.mayBeAt(f.cfa) {
		return step{}, false
	}
	if site := f.r.Site(b); site == nil || site.Insn != k {
		return step{}, false
	}
	return step{kind: stepStop, block: b, insn: k, fault: true, hit: true}, true
}

// goesOn reports whether the external code to which frame i returns is looked through with the next
// frame: where that has called it, or a handler has interrupted it.
func (s *search) goesOn(i int) bool {
	frames := s.stack.frames
	return i > 0 && !s.to.isAnywhere() && (frames[i].handler || frames[i-1].atExternalCall())
}

// within looks for the ways from a frame, but out of the call of external code where it stands.
func (s *search) within(f *frame, called bool) ways {
	s.atCallOutside = f.atExternalCall()
	return s.from(f.pos, f.regs, called, entered{f.activation, returnAddress(f.caller)})
}

// mayBeAt reports whether the activation that the location is in may have a CFA.
func (s *search) mayBeAt(cfa uint64) bool { return s.cfa == 0 || cfa == 0 || s.cfa == cfa }

// returnAddress is that of an activation.
func returnAddress(caller wire.Event) uint64 {
	switch {
	case caller == 0:
		return 0
	case caller.Origin() != wire.Inside:
		return elsewhere
	}
	return caller.Address()
}

// from looks for the ways from a position in an activation.
func (s *search) from(p *route.Position, h route.RegisterState, called bool, in entered) (w ways) {
	r := p.Routine
	if b, k, ok := r.Locate(s.to.pc); ok && !s.to.outside && s.mayBeAt(in.cfa) {
		stop := step{kind: stepStop, block: b, insn: k, fault: s.to.faulted, hit: s.to.hit}
		w.add(s.waysTo(p, h, b, k, called), stop, nil)
	}
	if p.Block != route.Exit && !called && !s.atCallOutside && r.Blocks[p.Block].IsCall() {
		s.call(&w, in, p.Block)
	}
	if p.Passes(called) {
		for _, node := range p.Free().Nodes {
			if r.Site(node.Block) == nil && r.Blocks[node.Block].IsCall() {
				s.call(&w, in, node.Block)
			}
		}
	}
	for _, o := range p.Outs(called) {
		s.tail(&w, in, o)
	}
	return w
}

// waysTo is in how many ways the activation can come without an event to instruction k of block b.
// How often a loop ran whose rounds events decide the registers there have to say.
func (s *search) waysTo(p *route.Position, h route.RegisterState, b, k int, called bool) count {
	if p.StandsAt(b, k, called, s.to.hit) {
		return one
	}
	site := p.Routine.Site(b)
	if !p.Passes(called) || site != nil && k > site.Insn {
		return none
	}
	switch {
	case !p.Free().Reaches(b):
		return none
	case p.CanCount(b, k, called, h, s.to.regs):
		return one
	}
	return several
}

// call looks through the call of block b.
func (s *search) call(w *ways, in entered, b int) {
	call := step{kind: stepCall, block: b}
	kind := in.r.Kinds[b]
	if kind != plan.Known {
		w.add(s.through(in.called(b), kind == plan.Harmless), call, nil)
		return
	}
	callee := s.entry(in.called(b))
	if callee.n > none && in.r.Blocks[b].Depth < 0 { // where its frame would be is not known
		callee.n = several
	}
	w.add(callee.n, call, callee.way)
}

// called is what the call of block b enters.
func (in *entered) called(b int) entered {
	to := entered{activation{in.r.Callees[b], 0}, in.r.ReturnTo(b)}
	if depth := in.r.Blocks[b].Depth; in.cfa != 0 && depth >= 0 {
		to.cfa = in.cfa - uint64(depth)
	}
	return to
}

// through is how many ways lead to the location by way of external code that has been entered so;
// harmless: code that calls nothing back.
func (s *search) through(in entered, harmless bool) (n count) {
	if !harmless || s.to.isAnywhere() {
		n = s.throughUnknown()
	}
	return n.plus(s.there(in))
}

// there is how many ways lead to a location whose return address is known in external code that has
// been entered so.
func (s *search) there(in entered) count {
	if s.to.returns != 0 && (in.returns == s.to.returns || in.returns == 0) && s.mayBeAt(in.cfa) {
		return one
	}
	return none
}

// tail looks through a tail jump.
func (s *search) tail(w *ways, in entered, o route.Out) {
	jump := step{kind: stepTail, out: o}
	to := in.r.TailTarget(o.Block)
	switch {
	case to != nil:
		there := s.entry(entered{activation{to, in.cfa}, in.returns})
		w.add(there.n, jump, there.way)
	case in.r.LeavesTraced(o.Block):
		w.add(s.through(in, !in.r.JumpsOutside(o.Block)), jump, nil)
	}
}

// entry looks for the ways from the entry of a routine.
func (s *search) entry(in entered) ways {
	if s.to.returns == 0 {
		in.returns = 0 // nobody asks
	}
	if s.cfa == 0 {
		in.cfa = 0
	}
	if w, ok := s.entries[in]; ok {
		// Of a routine that is being searched nothing yet: plans have no circles without an event.
		return w
	}
	switch {
	case s.cfa > in.cfa && in.cfa != 0: // what it enters is further down yet
		return ways{}
	case len(s.entries) >= mostEntered:
		return ways{n: several}
	}
	s.entries[in] = ways{}
	w := s.from(in.r.AtEntry(), route.RegisterState{}, false, in)
	s.entries[in] = w
	return w
}

// mayBeStale reports whether the location's return address may have been left by what was called
// before.
func (s *search) mayBeStale() bool { return s.to.returns != 0 && !s.faultedThere }

// throughUnknown is how many ways lead to the location through external code of which nothing is
// known: the location is there, or that code has called back without an event. Of a location whose
// return address is known it is the latter: whether the code is there is asked of there.
func (s *search) throughUnknown() count {
	if s.to.isAnywhere() {
		return one
	}
	if !s.askedBack {
		s.askedBack = true
		for _, r := range s.origins() {
			w := s.entry(entered{activation{r: r}, elsewhere})
			if w.n > none {
				s.back.n, s.back.way, s.origin = s.back.n.plus(w.n), w.way, activation{r: r}
			}
			if s.back.n == several {
				break
			}
		}
		s.origin.cfa, _ = s.outermost(s.origin.r, s.back.way)
	}
	if s.back.n > none {
		return several
	}
	return none
}

// origins lists the routines that external code may call now and from which ways without an event
// lead to the location.
func (s *search) origins() []*route.Routine {
	origins := s.d.program.Origins(s.d.routineAt(s.to))
	if s.stack.main == nil { // it does not call the main function any more
		isMain := func(r *route.Routine) bool { return r == s.d.program.Main }
		origins = slices.DeleteFunc(origins, isMain)
	}
	return origins
}

// signalRoom is less than a signal takes of the stack that it interrupts, bytes: the red zone and
// the registers.
const signalRoom = 512

// calledBack looks for the ways to the location out of the call of external code at which frame i
// stands. One is certain if only one routine can have been called back, in one place: below the
// frame, so that nothing can be above it that has not returned, nor is it a handler that has
// interrupted that; on a stack of which all is known: within the frame there may be another. What
// is called back has an event before it ends, so that there is one such activation at a time.
func (s *search) calledBack(i int) (n count, way []step) {
	n = s.throughUnknown()
	if s.to.isAnywhere() || n == none {
		return n, nil
	}
	f, cfa := &s.stack.frames[i], s.origin.cfa
	depth := f.r.Blocks[f.pos.Block].Depth
	switch {
	case s.back.n != one, cfa == 0, depth < 0:
		return n, nil
	case cfa == f.cfa: // f is there
		return none, nil
	case cfa > f.cfa-uint64(depth), s.stack.knownUpTo != 0, len(s.stack.away) > 0:
		return n, nil
	case s.sawHandler, s.faultedOutside, s.mayBeStale():
		return n, nil
	case s.to.pc == s.origin.r.Address(): // it may be a handler that waits for another to end
		return n, nil
	}
	for k := range s.stack.frames {
		switch g := &s.stack.frames[k]; {
		case k > i && cfa <= g.cfa-signalRoom:
			return n, nil
		case k < i && s.within(g, true).n > none:
			// Its stack may be another, and be switched back to.
			return n, nil
		}
	}
	return one, append([]step{{kind: stepBack, back: s.origin}}, s.back.way...)
}

// beginning looks for the ways to the location from what external code calls first, which has an
// event before it returns. Where a function begins, the one before it may have ended, in a system
// call.
func (s *search) beginning() (w ways) {
	s.throughUnknown()
	r := s.d.routineAt(s.to)
	if r == nil || s.to.pc == r.Address() || s.mayBeStale() {
		return ways{n: several}
	}
	w.add(s.back.n, step{kind: stepBegin, back: s.origin}, s.back.way)
	return w
}

// outermost is the CFA of the activation of a routine that a way to the location begins with; ok is
// false if it is not known.
func (s *search) outermost(r *route.Routine, way []step) (cfa uint64, ok bool) {
	if s.cfa == 0 {
		return 0, false
	}
	cfa = s.cfa
	for _, h := range way {
		switch {
		case h.kind == stepCall && r != nil && r.Blocks[h.block].Depth >= 0:
			cfa += uint64(r.Blocks[h.block].Depth)
			r = r.Callees[h.block]
		case h.kind == stepTail && r != nil:
			r = r.TailTarget(h.out.Block)
		case h.kind != stepStop:
			return 0, false
		}
	}
	return cfa, r != nil == (s.to.returns == 0) // it is in r, or in external code
}
