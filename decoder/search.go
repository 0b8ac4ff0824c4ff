package decoder

import (
	"slices"

	"wpptrace/bpf/wire"
	"wpptrace/loader/plan"
)

// A spot is where a thread was interrupted: before the instruction at pc, or in code that is not
// observed.
type spot struct {
	pc      uint64
	outside bool
	returns uint64     // that code's return address, where its stack pointer points to one of the image; 0: nobody knows
	regs    *registers // what they held there; nil: nobody knows
	faulted bool       // the instruction has
	hit     bool       // if it is probed, it has been hit
}

// anywhere reports whether nothing more is known than that it is in code that is not observed.
func (s *spot) anywhere() bool { return s.outside && s.returns == 0 }

// A hop is a step on the way of an activation to the spot.
type hop struct {
	kind  hopKind
	block int        // of the call, or of the spot
	insn  int        // of the spot
	fault bool       // it has faulted
	hit   bool       // it has been hit, if it is probed
	out   out        // of the tail jump
	back  activation // what is called back
}

type hopKind uint8

const (
	hopStop  hopKind = iota // the spot is in the activation itself
	hopCall                 // it calls
	hopTail                 // it leaves by a tail jump
	hopHome                 // it returns to code that is not observed
	hopStay                 // it is in the call where it stands
	hopBack                 // code that is not observed, where the way stands, calls back
	hopBegin                // such code calls first in the thread, or in a signal handler before the thread's first word
)

// found is how many silent ways lead to the spot, two standing for more, the way if there is one,
// and whether one of them ends the activation it begins with, or does not.
type found struct {
	n           int
	way         []hop
	ends, stays bool
}

func (f *found) add(n int, first hop, rest []hop) {
	if n > 0 {
		f.n, f.way = min(f.n+n, unknown), append([]hop{first}, rest...)
		ends := first.kind == hopHome || first.kind == hopTail
		f.ends, f.stays = f.ends || ends, f.stays || !ends
	}
}

// unknown is a way that cannot be told from others.
const unknown = 2

// A search looks for the silent ways to a spot. Cost: the silent code that can be reached.
type search struct {
	spot
	d    *Decoder
	cfa  uint64            // of the activation that the spot is in; 0: nobody knows
	from map[entered]found // from their entries

	mainRan  bool // the thread does not call the main function any more
	behind   bool // a handler that has said nothing has come since the last word
	abroad   bool // since the last word what is not observed has faulted, elsewhere: the handler of that may have led to the spot
	fault    bool // what is not observed has faulted at the spot: its return address is no left-over
	standing bool // what is looked from stands at a call of code that is not observed: what that leads to is left out

	asked  bool
	back   found      // by what code that is not known may have called back and come to the spot silently
	origin activation // that, if it is one
}

// An entered is an activation of a routine, and where it returns to; CFA or address 0: nobody knows.
type entered struct {
	activation
	returns uint64
}

// elsewhere is a return address that leads out of the image.
const elsewhere = 1

// mostEntered bounds how many are looked at: what leads further cannot be told from other ways.
const mostEntered = 1 << 12

// An outlook is what a search has found from where a thread stands.
type outlook struct {
	found         // of all ways; whether they end an activation, of the outermost that they begin with
	frame    int  // the one that the way begins with, of several that of the outermost; -1: none, for nothing was heard of the thread
	returned int  // how many of the innermost activations have returned on all ways
	jumped   bool // the one that called them, or the innermost itself, has left on all ways, by the jump that it stands at
}

// thread looks for the ways from where a thread stands: from its innermost activation, and from
// each caller of those that can have returned.
func (s *search) thread(t *Thread) (all outlook) {
	if !t.heard {
		return outlook{found: s.beginning(), frame: -1}
	}
	if stop, ok := s.lastWord(t); ok {
		all.add(1, stop, nil)
		all.frame = len(t.frames) - 1
		return all
	}
	for i := len(t.frames) - 1; i >= 0; i-- {
		f := &t.frames[i]
		called := inCall(t.frames, i)
		here := s.ofFrame(f, called)
		o, returns := f.st.returnsBy(called)
		if f.atOpenCall() {
			n, way := s.calledBack(t, i)
			here.add(n, hop{kind: hopStay}, way)
			at := entered{f.activation, returnAddress(f.from)}
			here.add(s.there(at.called(f.st.block)), hop{kind: hopStay}, nil)
		}
		if f.root && returns > 0 && !f.r.jumpsOut(o.block) && !s.goesOn(t, i) { // else it is among the ways within
			here.add(s.open(), hop{kind: hopHome}, nil)
		}
		// where stacks are switched, one that stands at a call out of which that may be has perhaps
		// not returned
		certain := !s.abroad && returns == 1 && all.n == 0 && all.returned == len(t.frames)-1-i && (len(t.away) == 0 || !f.atOpenCall())
		switch {
		case here.n > 0:
			all.jumped = all.jumped || certain && !here.stays && o.block == f.st.block && f.r.jumpsAnywhere(o.block)
			all.found, all.frame = found{min(all.n+here.n, unknown), here.way, here.ends, here.stays}, i
		case certain && !f.handler && f.r.tailTarget(o.block) == nil:
			all.returned++
		}
		if returns == 0 || s.anywhere() && f.root {
			break
		}
	}
	return all
}

// lastWord tells where the innermost activation is if the instruction of its last word has faulted: what
// faults, and is probed, has been hit just before.
func (s *search) lastWord(t *Thread) (stop hop, ok bool) {
	if !s.faulted || len(t.frames) == 0 {
		return hop{}, false
	}
	f := t.top()
	b, k, found := f.r.locate(s.pc)
	if !found || f.st.block != b || f.called || f.r.Site(b) == nil || f.r.Site(b).Insn != k || !s.mayBeAt(f.cfa) {
		return hop{}, false
	}
	return hop{kind: hopStop, block: b, insn: k, fault: true, hit: true}, true
}

// goesOn reports whether the code that is not observed to which frame i returns is looked through with
// the next frame: where that has called it, or a handler has interrupted it.
func (s *search) goesOn(t *Thread, i int) bool {
	return i > 0 && !s.anywhere() && (t.frames[i].handler || t.frames[i-1].atOpenCall())
}

// ofFrame looks for the ways from a frame, but out of the call of code that is not observed where it
// stands.
func (s *search) ofFrame(f *frame, called bool) found {
	s.standing = f.atOpenCall()
	return s.within(f.st, f.held, called, entered{f.activation, returnAddress(f.from)})
}

// mayBeAt reports whether the activation that the spot is in may have a CFA.
func (s *search) mayBeAt(cfa uint64) bool { return s.cfa == 0 || cfa == 0 || s.cfa == cfa }

// returnAddress is that of an activation.
func returnAddress(from wire.Event) uint64 {
	switch {
	case from == 0:
		return 0
	case from.Origin() != wire.Inside:
		return elsewhere
	}
	return from.Address()
}

// within looks for the ways from a position in an activation.
func (s *search) within(st *state, h held, called bool, in entered) (f found) {
	if b, k, ok := st.r.locate(s.pc); ok && !s.outside && s.mayBeAt(in.cfa) {
		f.add(s.waysTo(st, h, b, k, called), hop{kind: hopStop, block: b, insn: k, fault: s.faulted, hit: s.hit}, nil)
	}
	if st.block != exit && !called && !s.standing && st.r.Blocks[st.block].IsCall() {
		s.call(&f, in, st.block)
	}
	if st.passes(called) {
		for _, node := range st.silentWays().nodes {
			if st.r.Site(node.block) == nil && st.r.Blocks[node.block].IsCall() {
				s.call(&f, in, node.block)
			}
		}
	}
	for _, o := range st.outs(called) {
		s.tail(&f, in, o)
	}
	return f
}

// waysTo is in how many ways the activation can come silently to instruction k of block b. How
// often a loop ran that words tell of the registers there have to tell.
func (s *search) waysTo(st *state, h held, b, k int, called bool) int {
	if st.standsAt(b, k, called, s.hit) {
		return 1
	}
	site := st.r.Site(b)
	if !st.passes(called) || site != nil && k > site.Insn {
		return 0
	}
	i, found := st.silentWays().find(b)
	switch {
	case !found:
		return 0
	case st.toSpot(i, k, called).tells(h, s.regs):
		return 1
	}
	return unknown
}

// call looks through the call of block b.
func (s *search) call(f *found, in entered, b int) {
	h := hop{kind: hopCall, block: b}
	switch kind := in.r.kind[b]; {
	case kind == plan.Known:
		callee := s.entry(in.called(b))
		if callee.n > 0 && in.r.Blocks[b].Depth < 0 { // where its frame would be is not known
			callee.n = unknown
		}
		f.add(callee.n, h, callee.way)
	default:
		f.add(s.through(in.called(b), kind == plan.Harmless), h, nil)
	}
}

// called is what the call of block b enters.
func (in *entered) called(b int) entered {
	block := &in.r.Blocks[b]
	to := entered{activation{in.r.callee[b], 0}, block.Hi + in.r.Offset()}
	if in.cfa != 0 && block.Depth >= 0 {
		to.cfa = in.cfa - uint64(block.Depth)
	}
	return to
}

// through is how many ways lead to the spot by way of code that is not observed, and has been entered
// so; harmless: code that calls nothing back.
func (s *search) through(in entered, harmless bool) (n int) {
	if !harmless || s.anywhere() {
		n = s.open()
	}
	return n + s.there(in)
}

// there is how many ways lead to a spot whose return address is known in code that is not observed, and
// has been entered so.
func (s *search) there(in entered) int {
	if s.returns != 0 && (in.returns == s.returns || in.returns == 0) && s.mayBeAt(in.cfa) {
		return 1
	}
	return 0
}

// tail looks through a tail jump.
func (s *search) tail(f *found, in entered, o out) {
	h := hop{kind: hopTail, out: o}
	to := in.r.tailTarget(o.block)
	switch {
	case to != nil:
		there := s.entry(entered{activation{to, in.cfa}, in.returns})
		f.add(there.n, h, there.way)
	case in.r.leavesImage(o.block):
		f.add(s.through(in, !in.r.jumpsAnywhere(o.block)), h, nil)
	}
}

// leavesImage reports whether block b jumps to code that is not observed, be it harmless.
func (r *routine) leavesImage(b int) bool {
	return r.jumpsAnywhere(b) || r.kind[b] == plan.Harmless && !r.Blocks[b].IsCall()
}

// entry looks for the ways from the entry of a routine.
func (s *search) entry(in entered) found {
	if s.returns == 0 {
		in.returns = 0 // nobody asks
	}
	if s.cfa == 0 {
		in.cfa = 0
	}
	if f, ok := s.from[in]; ok {
		return f // of a routine that is being searched nothing yet: plans have no silent circles
	}
	switch {
	case s.cfa > in.cfa && in.cfa != 0: // what it enters is further down yet
		return found{}
	case len(s.from) >= mostEntered:
		return found{n: unknown}
	}
	s.from[in] = found{}
	f := s.within(in.r.atEntry(), held{}, false, in)
	s.from[in] = f
	return f
}

// stale reports whether the spot's return address may have been left by what was called before.
func (s *search) stale() bool { return s.returns != 0 && !s.fault }

// open is how many ways lead to the spot through code that is not known: it is there, or has
// silently called back. Of a spot whose return address is known it is the latter: of code that is there
// there is asked.
func (s *search) open() int {
	if s.anywhere() {
		return 1
	}
	if !s.asked {
		s.asked = true
		for _, r := range s.origins() {
			if ways := s.entry(entered{activation{r: r}, elsewhere}); ways.n > 0 {
				s.back.n, s.back.way, s.origin = min(s.back.n+ways.n, unknown), ways.way, activation{r: r}
			}
			if s.back.n == unknown {
				break
			}
		}
		s.origin.cfa, _ = s.outermost(s.origin.r, s.back.way)
	}
	return unknown * min(s.back.n, 1)
}

// origins lists the routines that unknown code may call now and that may come silently to the spot.
func (s *search) origins() []*routine {
	origins := s.d.silentOrigins(s.holder())
	if s.mainRan {
		origins = slices.DeleteFunc(origins, func(r *routine) bool { return r == s.d.main })
	}
	return origins
}

// holder is the observed routine in which the spot is, or to which it returns; nil if there is none.
func (s *search) holder() *routine {
	if s.returns != 0 {
		return s.d.returns[s.returns].r
	}
	if r := s.d.plan.Containing(s.pc); r != nil {
		return s.d.routines[r.ID]
	}
	return nil
}

// signalRoom is less than a signal takes of the stack that it interrupts, bytes: the red zone and the
// registers.
const signalRoom = 512

// calledBack looks for the ways to the spot out of the call of code that is not observed at which
// frame i stands. One is certain if only one routine can have been called back, in one place: below
// the frame, so that nothing can be above it that has not returned, nor is it a handler that has
// interrupted that; on a stack of which all is known: within the frame there may be another. What is
// called back speaks before it ends, so that there is one such activation at a time.
func (s *search) calledBack(t *Thread, i int) (n int, way []hop) {
	n = s.open()
	if s.anywhere() || n == 0 {
		return n, nil
	}
	f, cfa := &t.frames[i], s.origin.cfa
	depth := f.r.Blocks[f.st.block].Depth
	switch {
	case s.back.n != 1, cfa == 0, depth < 0:
		return n, nil
	case cfa == f.cfa: // f is there
		return 0, nil
	case cfa > f.cfa-uint64(depth), t.known != 0, len(t.away) > 0, s.behind, s.abroad, s.stale():
		return n, nil
	case s.pc == s.origin.r.Addr+s.origin.r.Offset(): // it may be a handler that waits for another to end
		return n, nil
	}
	for k := range t.frames {
		switch g := &t.frames[k]; {
		case k > i && cfa <= g.cfa-signalRoom:
			return n, nil
		case k < i && s.ofFrame(g, true).n > 0: // its stack may be another, and be switched back to
			return n, nil
		}
	}
	return 1, append([]hop{{kind: hopBack, back: s.origin}}, s.back.way...)
}

// beginning looks for the ways to the spot from what code that is not observed calls first, which
// speaks before it returns. Where a function begins, the one before it may have ended, in a system
// call.
func (s *search) beginning() (f found) {
	s.open()
	if r := s.holder(); r == nil || s.pc == r.Addr+r.Offset() || s.stale() {
		return found{n: unknown}
	}
	f.add(s.back.n, hop{kind: hopBegin, back: s.origin}, s.back.way)
	return f
}

// outermost is the CFA of the activation of a routine that a way to the spot begins with; ok is false
// if it is not known.
func (s *search) outermost(r *routine, way []hop) (cfa uint64, ok bool) {
	if s.cfa == 0 {
		return 0, false
	}
	cfa = s.cfa
	for _, h := range way {
		switch {
		case h.kind == hopCall && r != nil && r.Blocks[h.block].Depth >= 0:
			cfa += uint64(r.Blocks[h.block].Depth)
			r = r.callee[h.block]
		case h.kind == hopTail && r != nil:
			r = r.tailTarget(h.out.block)
		case h.kind != hopStop:
			return 0, false
		}
	}
	return cfa, r != nil == (s.returns == 0) // it is in r, or in what is not observed
}

// activationAt is the CFA of the activation that a spot is in, by its registers; 0 if they do not
// tell.
func (d *Decoder) activationAt(where spot) uint64 {
	const dwarfRBP, dwarfRSP = 6, 7
	if where.regs == nil {
		return 0
	}
	if where.returns != 0 {
		return where.regs[rsp] + 8
	}
	holder := d.plan.Containing(where.pc)
	if where.outside || holder == nil {
		return 0
	}
	switch rule := holder.CFA(where.pc - holder.Offset()); rule.Reg {
	case dwarfRSP:
		return where.regs[rsp] + uint64(int64(rule.Off))
	case dwarfRBP:
		return where.regs[rbp] + uint64(int64(rule.Off))
	}
	return 0
}

// silentOrigins lists the routines that unknown code may call and that may come silently to another.
func (d *Decoder) silentOrigins(to *routine) (origins []*routine) {
	if to == nil {
		return nil
	}
	if d.callers == nil {
		d.callers = d.silentCallers()
	}
	list, seen := []*routine{to}, map[*routine]bool{to: true}
	for i := 0; i < len(list); i++ {
		r := list[i]
		if r.Traced() && r.ExternalCallers() {
			origins = append(origins, r)
		}
		for _, caller := range d.callers[r] {
			if !seen[caller] {
				seen[caller] = true
				list = append(list, caller)
			}
		}
	}
	return origins
}

// silentCallers lists for each routine those that come to a call of it, or a jump to it, before
// their first word.
func (d *Decoder) silentCallers() map[*routine][]*routine {
	callers := map[*routine][]*routine{}
	for _, r := range d.routines {
		if !r.Traced() {
			continue
		}
		for _, node := range r.atEntry().silentWays().nodes {
			if to := r.callee[node.block]; to != nil && r.Site(node.block) == nil {
				callers[to] = append(callers[to], r)
			}
		}
	}
	return callers
}
