//go:build linux && cgo

package decoder_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"wpptrace/bpf"
	"wpptrace/bpf/usermode"
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
	"wpptrace/loader/x86"
)

// Where things are in the simulated process.
const (
	imageBase   = 0x555555554000
	outsideCode = 0x7f1200000000
	restorer    = outsideCode + 0x8f0
	mainStack   = 0x7ffd12340000
	otherStacks = 0x7f0000000000
	stackStride = 0x1000000
)

// Habits are how often things happen: once in so many chances; 0: never.
type habits struct {
	callback int // external code calls back
	throw    int // it throws to a landing pad
	catch    int // it throws to external code
	jump     int // it jumps to a setjmp that has returned
	handler  int // a signal handler interrupts a block, or external code
	altStack int // the handler runs on a stack of its own
	kill     int // a call of external code ends the thread
	// the code that began the thread ends it, and does not call once more; 0: as soon as it can
	end int
}

// An event is what happened: an instruction ran (its link-time address), an activation began
// (entered | routine, with direct by a traced one), or one ended (left).
type event uint64

const (
	entered event = 1 << 63
	left    event = 1 << 62
	probed  event = 1 << 61 // with an instruction: its probe was hit
	direct  event = 1 << 60 // with entered: a traced routine called it, or jumped to it
)

// A frame is an activation, or external code.
type frame struct {
	r        *plan.Routine // nil: external code
	cfa      uint64
	ra       uint64
	block    int
	insn     int // the next to run
	out      int // which way the block goes
	target   int // where the next switch goes; -1: nobody has said
	jumps    []int
	calling  bool
	reported bool // has made an event
	landed   bool // came to its block by an exception or a second return, and has not said so yet
	handler  bool
	// of external code
	sp       uint64
	harmless bool

	values map[x86.Operand]uint64 // what places in its memory hold, as far as anybody has looked
	cpu    cpu
	rounds int // that the loop has made in which the activation is
}

// A process is a simulated thread: it walks the CFGs of a plan at random, along ways that may never
// run in earnest, and runs the C of a hit at each probe.
type process struct {
	plan      *plan.Plan
	machine   *usermode.Machine
	thread    *usermode.Thread // nil: not traced yet
	random    *rand.Rand
	habits    habits
	frames    []*frame
	signalled int // hits when the last signal came
	caught    int // and when external code last caught something; 0: never
	stacks    int // how many there have been
	truth     []event
	handlers  map[int]bool // the events with which signal handlers begin
	hits      int
	// those of rootable that end by returning: what a handler without an event did,
	// nobody can know
	stayers []*plan.Routine
	midRun  bool // it is met in the middle
	dead    bool
	// it died in a handler without an event: for all that can be known, what that
	// interrupted died there
	unknown  bool
	rootable []*plan.Routine
	trouble  error // the CFG contradicts itself
}

func newProcess(p *plan.Plan, h habits, seed uint64) *process {
	s := &process{plan: p, habits: h, random: rand.New(rand.NewPCG(seed, 1)),
		handlers: map[int]bool{}}
	sites := make([]bpf.TracerSite, len(p.Sites))
	for i := range p.Sites {
		sites[i] = kernelSite(p, &p.Sites[i])
	}
	calls := map[uint64]bpf.TracerCall{}
	for ra, c := range p.Calls {
		calls[ra] = bpf.MakeCall(ra, c.Depth, c.AfterEvent, c.Caller)
	}
	s.machine = usermode.New(sites, calls, imageBase, 1<<32)
	s.machine.Memory.Set(restorer, 0x0f0000000fc0c748)
	var first *plan.Routine
	for _, r := range p.Routines {
		if !r.Traced() {
			continue
		}
		if r.Symbol == "main" {
			first = r
		}
		if p.Program.AddressTaken(r.Addr) && r.Addr != p.Program.Image.Entry {
			s.rootable = append(s.rootable, r)
			if !slices.ContainsFunc(r.Blocks, func(b cfg.Block) bool {
				return b.End == cfg.Trap || b.End == cfg.Tail || b.End == cfg.TailInd ||
					b.End == cfg.Jcc && b.Succ[0] < 0
			}) {
				s.stayers = append(s.stayers, r)
			}
		}
	}
	s.beginOutside(mainStack, 0)
	if first == nil && len(s.rootable) > 0 {
		first = s.rootable[s.dice(len(s.rootable))]
	}
	if first != nil {
		s.callBack(first)
	}
	return s
}

func (s *process) dice(n int) int { return s.random.IntN(n) }

// chance is true once in n times.
func (s *process) chance(n int) bool { return n > 0 && s.dice(n) == 0 }

func (s *process) top() *frame { return s.frames[len(s.frames)-1] }

// run runs until the thread ends or so many blocks have run.
func (s *process) run(blocks int) {
	for i := 0; i < blocks && !s.dead && s.trouble == nil; i++ {
		if f := s.top(); f.r != nil {
			s.runBlock(f)
		} else {
			s.runOutside(f)
		}
	}
}

// kill ends the thread where it stands.
func (s *process) kill() {
	if s.dead {
		return
	}
	if s.top().harmless {
		s.finish()
	}
	s.unknown = s.isHidden()
	s.dead = true
	ip := uint64(outsideCode)
	if f := s.top(); f.r != nil {
		ip = imageBase + f.r.Blocks[f.block].Insns[f.insn].Addr
	}
	if s.thread != nil && (s.hits > 0 || !s.midRun) { // else the kernel knows nothing of it
		s.machine.Exit(s.thread, ip, s.top().registers(ip), 0)
	}
}

// registers are what they hold before the instruction at ip: what the frame's address is taken from
// there, too.
func (f *frame) registers(ip uint64) *usermode.Registers {
	regs := &usermode.Registers{General: f.cpu.regs}
	if f.r != nil {
		const dwarfRBP, dwarfRSP, rbp = 6, 7, 5
		switch rule := f.r.CFA(ip - imageBase); rule.Reg {
		case dwarfRSP:
			regs.General[rsp] = f.cfa - uint64(int64(rule.Off))
		case dwarfRBP:
			regs.General[rbp] = f.cfa - uint64(int64(rule.Off))
		}
	}
	return regs
}

// begin begins an activation; by: direct, or 0.
func (s *process) begin(r *plan.Routine, cfa, ra uint64, by event) *frame {
	s.machine.Memory.Set(cfa-8, ra)
	f := &frame{r: r, cfa: cfa, ra: ra, block: r.Entry, target: -1}
	f.cpu.clobber(s.random)
	f.cpu.regs[rsp] = cfa - 8
	s.decide(f)
	s.frames = append(s.frames, f)
	s.truth = append(s.truth, entered|by|event(r.ID))
	return f
}

// beginOutside begins external code.
func (s *process) beginOutside(cfa, ra uint64) *frame {
	if ra != 0 {
		s.machine.Memory.Set(cfa-8, ra)
	}
	f := &frame{cfa: cfa, ra: ra, sp: cfa - 32 - 16*uint64(s.dice(4))}
	s.frames = append(s.frames, f)
	return f
}

// callBack lets external code call a routine.
func (s *process) callBack(r *plan.Routine) {
	f := s.top()
	s.begin(r, f.sp, outsideCode+0x1000+8*uint64(s.dice(4)), 0)
}

// decide chooses the way out of the block that the frame has come to. What the block may store it
// has stored then.
func (s *process) decide(f *frame) {
	f.insn, f.out = 0, 0
	asks := f.r.Asks(f.block)
	switch n := len(f.r.Blocks[f.block].Succ); {
	case asks != nil && !asks.Holds(s.valueOf(f, asks.Place)):
		f.out = 1
	case asks == nil && n > 1:
		f.out = s.dice(n)
	}
	for place := range f.values {
		if !f.r.Keeps(f.block, place) {
			delete(f.values, place)
		}
	}
}

// goesRound decides whether a loop whose rounds are captured makes another, as the registers say
// where it goes by them. No walk goes on for ever: then it reports false, and the thread is dead.
func (s *process) goesRound(f *frame, exact bool) bool {
	const most = 50
	block := &f.r.Blocks[f.block]
	if exact {
		condition := block.Insns[len(block.Insns)-1].Condition()
		f.out = 0
		if f.cpu.equal != (condition == x86.Equal) {
			f.out = 1
		}
	}
	if f.rounds++; block.Succ[f.out] != f.block {
		f.rounds = 0
	}
	if f.rounds > most {
		f.insn = len(block.Insns) - 1
		s.kill()
	}
	return !s.dead
}

// valueOf returns what a place holds.
func (s *process) valueOf(f *frame, place x86.Operand) uint64 {
	if !place.Mem {
		return f.cpu.regs[place.Reg] & (^uint64(0) >> (64 - 8*place.Size))
	}
	v, ok := f.values[place]
	if !ok {
		if v = s.random.Uint64() >> (64 - 8*place.Size); s.dice(2) == 0 {
			v &= 7
		}
		if f.values == nil {
			f.values = map[x86.Operand]uint64{}
		}
		f.values[place] = v
	}
	return v
}

// runBlock runs the rest of a block.
func (s *process) runBlock(f *frame) {
	block := &f.r.Blocks[f.block]
	stop := len(block.Insns)
	if block.End == cfg.Trap {
		stop--
	}
	interrupted := s.mayInterrupt()
	if interrupted {
		stop = f.insn + s.dice(stop-f.insn+1)
		interrupted = stop < len(block.Insns) &&
			(block.End != cfg.Trap || stop < len(block.Insns)-1)
	}
	site := f.r.Site(f.block)
	for ; f.insn < stop; f.insn++ {
		e := event(block.Insns[f.insn].Addr)
		if s.thread != nil && site != nil && site.Insn == f.insn {
			s.hit(f, site)
			e |= probed
		}
		s.truth = append(s.truth, e)
		q := &block.Insns[f.insn]
		f.cpu.step(s.plan.Program.Image.Bytes(q.Addr, q.Addr+uint64(q.Len)), s.random)
	}
	switch {
	case interrupted:
		s.signal(f.cfa-0x2000, imageBase+block.Insns[f.insn].Addr)
	case block.End == cfg.Trap:
		s.kill()
	default:
		s.leaveBlock(f, block)
	}
}

// leaveBlock goes where the block leads.
func (s *process) leaveBlock(f *frame, block *cfg.Block) {
	switch block.End {
	case cfg.Call, cfg.CallInd, cfg.NoReturn:
		s.call(f, block)
	case cfg.Ret:
		s.finish()
	case cfg.Tail, cfg.TailInd:
		s.tail(f)
	case cfg.Table:
		if f.target >= 0 {
			f.block, f.target = f.target, -1
			s.decide(f)
			return
		}
		fallthrough
	default:
		if c := f.r.Counts(f.block); c != nil && !s.goesRound(f, c.Exact) {
			return
		}
		next := block.Succ[f.out]
		if next < 0 {
			s.tail(f)
			return
		}
		f.block = next
		s.decide(f)
	}
}

// call makes the call at the end of a block.
func (s *process) call(f *frame, block *cfg.Block) {
	depth := block.Depth
	if depth < 0 {
		depth = 256 + 16*s.dice(8)
	}
	cfa, ra := f.cfa-uint64(depth), imageBase+block.Hi
	f.calling = true
	if f.r.ReturnsTwice(f.block) {
		f.jumps = append(f.jumps, f.block)
	}
	s.goTo(f, cfa, ra)
	if callee := s.top(); callee.r == nil && f.r.ReturnsTwice(f.block) {
		// setjmp itself does nothing but return
		callee.harmless = true
	}
}

// goTo enters what the block of f calls or jumps to.
func (s *process) goTo(f *frame, cfa, ra uint64) {
	kind, callee := f.r.Callee(f.block)
	switch {
	case kind == plan.Known:
		s.begin(callee, cfa, ra, direct)
	case kind == plan.Unknown && f.r.Blocks[f.block].End != cfg.NoReturn && len(s.rootable) > 0 &&
		s.dice(4) > 0:
		s.begin(s.rootable[s.dice(len(s.rootable))], cfa, ra, direct)
	default:
		s.beginOutside(cfa, ra).harmless = kind == plan.Harmless
	}
}

// tail leaves by a jump.
func (s *process) tail(f *frame) {
	s.truth = append(s.truth, left)
	s.frames = s.frames[:len(s.frames)-1]
	s.goTo(f, f.cfa, f.ra)
	s.top().handler = f.handler
}

// finish returns from the innermost frame.
func (s *process) finish() {
	f := s.top()
	s.frames = s.frames[:len(s.frames)-1]
	if f.r != nil {
		s.truth = append(s.truth, left)
	}
	if len(s.frames) == 0 {
		s.frames = append(s.frames, f)
		s.kill()
		return
	}
	s.goOn()
}

// goOn lets the innermost frame run after its callee has returned.
func (s *process) goOn() {
	f := s.top()
	if f.r == nil || !f.calling {
		return
	}
	block := &f.r.Blocks[f.block]
	if block.End == cfg.NoReturn {
		s.trouble = fmt.Errorf("the call at %x in %s returned and should not", block.Hi, f.r.Name)
		return
	}
	f.block, f.calling = block.Succ[0], false
	f.cpu.clobber(s.random)
	s.decide(f)
}

// runOutside lets external code do something.
func (s *process) runOutside(f *frame) {
	if f.harmless {
		if s.neverReturns() { // a loop for ever has no events, as what it does has none
			s.kill()
			s.unknown = true
		} else {
			s.finish()
		}
		return
	}
	switch {
	case len(s.frames) == 1 && s.habits.end > 0 && !s.chance(s.habits.end) && len(s.rootable) > 0,
		s.chance(s.habits.callback) && len(s.rootable) > 0:
		s.callBack(s.rootable[s.dice(len(s.rootable))])
		return
	case s.mayInterrupt():
		s.signal(f.sp-0x2000, outsideCode+0x77)
		return
	case s.chance(s.habits.throw) && s.throw(), s.chance(s.habits.catch) &&
		s.catch(), s.chance(s.habits.jump) && s.jump():
		return
	case s.chance(s.habits.kill):
		s.kill()
		return
	}
	if !s.neverReturns() {
		s.finish()
	} else if !s.throw() && !s.jump() {
		s.kill()
	}
}

// neverReturns reports whether the innermost frame is that of a call which never returns.
func (s *process) neverReturns() bool {
	if len(s.frames) < 2 {
		return false
	}
	below := s.frames[len(s.frames)-2]
	return below.r != nil && below.calling && below.r.Blocks[below.block].End == cfg.NoReturn
}

// unwindTo leaves the frames above i.
func (s *process) unwindTo(i int) *frame {
	for k := len(s.frames) - 1; k > i; k-- {
		if s.frames[k].r != nil {
			s.truth = append(s.truth, left)
		}
	}
	s.frames = s.frames[:i+1]
	f := s.top()
	f.calling = false
	return f
}

// throw lands at a pad of some caller, if there is one this side of any signal handler.
func (s *process) throw() bool {
	var at []int
	for i := len(s.frames) - 2; i >= 0 && !s.frames[i+1].handler; i-- {
		if f := s.frames[i]; f.r != nil && f.calling && len(f.r.Blocks[f.block].Pads) > 0 {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return false
	}
	f := s.unwindTo(at[s.dice(len(at))])
	pads := f.r.Blocks[f.block].Pads
	f.block, f.landed = pads[s.dice(len(pads))], true
	s.decide(f)
	return true
}

// catch lands in external code, if traced code has been called by some, this side of
// any signal handler.
func (s *process) catch() bool {
	var at []int
	for i := len(s.frames) - 2; i >= 0 && !s.frames[i+1].handler; i-- {
		if s.frames[i].r == nil {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return false
	}
	s.unwindTo(at[s.dice(len(at))])
	s.caught = s.hits
	return true
}

// jump returns a second time from a setjmp of some caller, if there is one this side of any signal
// handler: what a handler that is left interrupted without an event nobody can know.
func (s *process) jump() bool {
	type place struct{ frame, block int }
	var at []place
	for i := len(s.frames) - 2; i >= 0 && !s.frames[i+1].handler; i-- {
		for _, b := range s.frames[i].jumps {
			at = append(at, place{i, b})
		}
	}
	if len(at) == 0 {
		return false
	}
	to := at[s.dice(len(at))]
	f := s.unwindTo(to.frame)
	f.block, f.landed = f.r.Blocks[to.block].Succ[0], true
	s.decide(f)
	return true
}

// mayInterrupt is when a signal comes: not before what the last one interrupted, or its handler,
// has had an event, nor where nobody can know of the innermost activation.
func (s *process) mayInterrupt() bool {
	if s.hits <= s.signalled+3 || len(s.stayers) == 0 || !s.chance(s.habits.handler) {
		return false
	}
	for i := len(s.frames) - 1; i >= 0; i-- {
		switch f := s.frames[i]; {
		case f.landed:
			return false
		case f.r == nil:
			return i == len(s.frames)-1
		case f.reported:
			return true
		}
	}
	return false
}

// isHidden reports whether nobody can know yet what the thread runs in: a handler, or what has gone
// on since something was caught.
func (s *process) isHidden() bool {
	if s.dead || s.trouble != nil {
		return false
	}
	if s.caught > 0 && s.hits == s.caught {
		return true
	}
	for i := len(s.frames) - 1; i >= 0 && s.hits == s.signalled; i-- {
		if s.frames[i].handler {
			return true
		}
	}
	return false
}

// otherStack is the top of an alternate stack below or above the main one: mostly one that has been
// used before, if nothing is on it.
func (s *process) otherStack() uint64 {
	const usual = 2
	base := uint64(otherStacks)
	if s.dice(2) == 0 {
		base = mainStack
	}
	top := base + uint64(1+s.dice(usual))*stackStride
	if slices.ContainsFunc(s.frames,
		func(f *frame) bool { return f.cfa <= top && f.cfa > top-stackStride }) {
		s.stacks++
		top = base + uint64(usual+s.stacks)*stackStride
	}
	return top
}

// signal interrupts the innermost frame at an instruction.
func (s *process) signal(sp, ip uint64) {
	if s.chance(s.habits.altStack) {
		sp = s.otherStack()
	}
	cfa := sp &^ 15
	s.machine.Memory.SetSignalFrame(cfa, ip, s.top().registers(ip))
	s.handlers[len(s.truth)] = true
	s.signalled = s.hits
	s.begin(s.stayers[s.dice(len(s.stayers))], cfa, restorer, 0).handler = true
}
