package loads

import (
	"cmp"
	"slices"

	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
	"wpptrace/loader/x86"
)

// What is followed at most for one program: beyond that nothing is read.
const (
	mostInsns = 2000
	mostDepth = 60 // blocks that part, one behind the other
)

// A place is a block of a routine of the plan.
type place struct {
	routine, block int32
}

// A need is a load that no program has to make, or why one makes it.
type need uint8

const (
	toRead        need = iota
	forwarded          // the route itself has stored what is loaded
	private            // in a frame of which nobody else knows the address, or what a return takes
	returnAddress      // what a return takes that external code has stored: it is read all the same
	readOnly           // of the image's file
	notComputable      // the address depends on what is not known at the hit
	byLibrary          // a function reads it that only reads, and is not traced
	behindOther        // none, but external code, which may change what was loaded before
	needs
)

// A load is one of a way.
type load struct {
	at   value
	size uint8
	need need
	left bool   // it would be one read too many
	past bool   // a function that only reads comes before it
	pc   uint64 // of the instruction
}

// A way is a piece of what may run between a hit and the next: what follows it is in next.
type way struct {
	loads  []load
	ends   ending
	leaves bool     // the next hit has to show all registers: external code may run
	cut    bool     // it goes on, and was followed no further
	dies   bool     // it comes to a call that never returns, so that it is hardly ever taken
	flags  compared // of a fork by condition
	code   uint8    // condition code
	index  value    // of a fork by a table: which of cases; by labels, where it leads
	next   []*way   // of a condition: not taken, taken; of labels, in the order of addresses
	cases  []int    // of a table: which of next, by index
	starts []uint64 // of labels: where each of next begins

	routine int32      // of a return
	probe   spot       // the next one
	stores  []store    // up to that
	back    *[16]value // registers there, or at a return
	address value      // the return address
	behind  x86.Set    // the registers that code behind it is known by
	sent    []store    // and what has been stored, as far as its callers may load that

	passed  []passed  // where witnesses may stand, if the follower notes that
	results []result  // what its instructions have, if the follower traces that
	equal   *compared // what has come to nothing where it begins, if that is so
	groups  []*group  // that are read on it
	chooses bool      // the program finds out which of next it is
}

// An ending says what follows a way.
type ending uint8

const (
	ended     ending = iota // external code, or there is no more
	fork                    // one of next
	condition               // the same, and flags and code say which
	table                   // the same, and index and cases
	labels                  // the same, and index, which is the address of the block
	returned                // to a caller that is not known
	probed                  // the next probe
)

// A follower finds the ways of one hit after the other.
type follower struct {
	plan  *plan.Plan
	facts []facts // by Routine.ID
	ns    nodes

	ends     bool  // at functions that only read, too
	notes    bool  // where witnesses may stand
	traces   bool  // the results of instructions
	hides    bool  // hidden loads
	insns    int   // that may still be followed
	until    *spot // as if there were a probe; nil: nowhere
	accesses []x86.Access
	hidden   []spot // if the follower notes that
	// of the hit at hand, used again for the next one
	ways   pool[way]
	states pool[state]
	files  pool[[16]value]
}

// facts are what is found once of a routine.
type facts struct {
	hidesFrame bool                     // and it loses nothing of that to an exception
	returnsOut bool                     // external code calls it, and no traced routine does
	jumps      bool                     // to other routines
	checks     map[int][]*cfg.JumpTable // by the blocks that check their bounds
	// the registers that code behind a return is known by; none: programs end there
	behind x86.Set
	stores bool // and by what the routine has stored
	// by block, the instructions with a probe for values alone, in their order
	extras map[int][]int
	stubs  map[int]*plan.Routine // what blocks most likely call by a stub, or jump to
}

// probe is the instruction of a block with its first probe from an instruction on; the number of
// its instructions if there is none.
func (x *facts) probe(r *plan.Routine, block, insn int) int {
	first := len(r.Blocks[block].Insns)
	if s := r.Site(block); s != nil && s.Insn >= insn {
		first = s.Insn
	}
	list := x.extras[block]
	if i, _ := slices.BinarySearch(list, insn); i < len(list) {
		first = min(first, list[i])
	}
	return first
}

// catches reports whether the routine goes on behind an exception: from a landing pad it may
// return. The place of its frame, and so what that holds, is not known there.
func catches(r *plan.Routine) bool {
	seen := map[int]bool{}
	for left := slices.Clone(r.Pads); len(left) > 0; left = left[1:] {
		n := left[0]
		if n == cfg.Exit || seen[n] {
			continue
		}
		seen[n] = true
		if r.Blocks[n].End == cfg.Ret {
			return true
		}
		left = append(left, r.Blocks[n].Succ...)
	}
	return false
}

func factsOf(r *plan.Routine) (x facts) {
	if !r.Traced() {
		return x
	}
	x.hidesFrame = cfg.HidesFrame(r.Blocks, r.CFA, r.Code) && !catches(r)
	for b := range r.Blocks {
		switch end := r.Blocks[b].End; end {
		case cfg.Tail, cfg.TailInd:
			x.jumps = true
		case cfg.Jcc:
			x.jumps = x.jumps || r.Blocks[b].Succ[0] == cfg.Exit
		}
		if t := r.Blocks[b].Table; t != nil && t.Targets != nil && t.Check >= 0 {
			if x.checks == nil {
				x.checks = map[int][]*cfg.JumpTable{}
			}
			x.checks[t.Check] = append(x.checks[t.Check], t)
		}
	}
	return x
}

// from follows the code from a probe's instruction on; outcome is that of its jump, if it is
// conditional.
func (f *follower) from(s *Site, outcome int) *way {
	st, w := f.begin(), f.way()
	r := f.plan.Routines[s.Routine]
	at := place{int32(s.Routine), int32(s.Block)}
	st.flags = f.flagsBefore(st, r, &r.Blocks[s.Block], s.Insn)
	if s.Condition == plan.NoCondition {
		f.follow(w, st, at, s.Insn, true, 0)
		return w
	}
	f.noteCase(st, at)
	f.goOn(w, st, at, r.Blocks[s.Block].Succ[1-outcome], 0)
	return w
}

// behind follows the code from an instruction on, in terms of what there is then.
func (f *follower) behind(at spot) *way {
	st, w := f.begin(), f.way()
	f.follow(w, st, at.place, at.insn, false, 0)
	return w
}

func (f *follower) begin() *state {
	f.ns.reset()
	f.insns = mostInsns
	f.ways.n, f.states.n, f.files.n = 0, 0, 0
	st := f.states.get()
	st.reset()
	return st
}

// goOn follows the code behind a block from the next one on; cfg.Exit stands for a jump that leaves
// the routine.
func (f *follower) goOn(w *way, st *state, from place, block, depth int) {
	to, ok := place{from.routine, int32(block)}, true
	if block == cfg.Exit {
		to, ok = f.jump(w, from)
	}
	if ok {
		f.follow(w, st, to, 0, false, depth)
	}
}

// jump is where a jump out of its routine leads that ends a block.
func (f *follower) jump(w *way, from place) (to place, ok bool) {
	callee, sure := f.callee(f.plan.Routines[from.routine], int(from.block))
	w.leaves = w.leaves || !sure
	if callee == nil {
		return to, false
	}
	return place{int32(callee.ID), int32(callee.Entry)}, true
}

// follow follows the code from one instruction on up to the next probe. isHit: it is the one that
// is hit.
func (f *follower) follow(w *way, st *state, at place, insn int, isHit bool, depth int) {
	for ; ; insn, isHit = 0, false {
		r := f.plan.Routines[at.routine]
		b := &r.Blocks[at.block]
		w.dies = w.dies || b.End == cfg.Trap || b.End == cfg.NoReturn
		behind := insn
		if isHit {
			behind++
		}
		end := f.facts[r.ID].probe(r, int(at.block), behind)
		if f.until != nil && f.until.place == at && f.until.insn >= behind {
			end = min(end, f.until.insn)
		}
		if f.insns -= max(end-insn, 1); f.insns < 0 {
			if w.cut = true; f.traces {
				w.back = f.registers(st)
			}
			return
		}
		for i := insn; i < end; i++ {
			if i == len(b.Insns)-1 && b.End == cfg.Jcc {
				f.noteCase(st, at)
			}
			if f.notes && i >= behind && !st.passed {
				f.pass(w, st, r, spot{at, i})
			}
			loads := len(w.loads)
			f.execute(w, st, r, &b.Insns[i])
			if f.hides && slices.ContainsFunc(w.loads[loads:], isHidden) {
				f.hidden = append(f.hidden, spot{at, i})
			}
		}
		if end < len(b.Insns) {
			w.ends, w.probe = probed, spot{at, end}
			w.stores, w.back = st.stores, f.registers(st)
			return
		}
		var ok bool
		if at, ok = f.next(w, st, r, at, depth); !ok {
			if f.traces && w.back == nil && len(w.next) == 0 && !w.cut {
				w.back = f.registers(st)
			}
			return
		}
	}
}

// next is where control goes behind a block if there is one place alone; ok is false if there is
// none, or the ways have been followed.
func (f *follower) next(w *way, st *state, r *plan.Routine, at place, depth int,
) (to place, ok bool) {
	b := &r.Blocks[at.block]
	switch b.End {
	case cfg.Fall, cfg.Jmp:
		return place{at.routine, int32(b.Succ[0])}, true
	case cfg.Jcc:
		return f.part(w, st, r, at, depth)
	case cfg.Table:
		return f.choose(w, st, r, at, depth)
	case cfg.Call, cfg.CallInd:
		if callee, sure := f.callee(r, int(at.block)); callee != nil {
			w.leaves = w.leaves || !sure
			st.calls = append(st.calls, place{at.routine, int32(b.Succ[0])})
			return place{int32(callee.ID), int32(callee.Entry)}, true
		}
		if b.CallReturns() && f.passes(w, st, r, int(at.block)) {
			return place{at.routine, int32(b.Succ[0])}, true
		}
		if f.traces && b.CallReturns() {
			w.loads = append(w.loads, load{need: behindOther})
			st.forget()
			return place{at.routine, int32(b.Succ[0])}, true
		}
	case cfg.Tail, cfg.TailInd:
		return f.jump(w, at)
	case cfg.Ret:
		if to, ok = st.goBack(); ok {
			return to, true
		}
		w.ends, w.address, w.behind = returned, st.returns, f.facts[r.ID].behind
		w.routine, w.back = at.routine, f.registers(st)
		if f.facts[r.ID].stores {
			w.sent = st.stores
		}
		return to, false
	case cfg.Trap:
		return to, false
	}
	w.leaves = true
	return to, false
}

// part follows both ways of a conditional jump.
func (f *follower) part(w *way, st *state, r *plan.Routine, at place, depth int,
) (to place, ok bool) {
	b := &r.Blocks[at.block]
	code := b.Insns[len(b.Insns)-1].Condition()
	taken, known := st.flags.decide(code)
	if b.Succ[0] == b.Succ[1] {
		taken, known = true, true
	}
	if known {
		s := b.Succ[1]
		if taken {
			s = b.Succ[0]
		}
		if s == cfg.Exit {
			return f.jump(w, at)
		}
		return place{at.routine, int32(s)}, true
	}
	if depth >= mostDepth {
		w.cut = true
		return to, false
	}
	w.ends, w.next = fork, []*way{f.way(), f.way()}
	if _, _, _, ok := st.flags.branch(code); ok {
		w.ends, w.flags, w.code = condition, st.flags, code
	}
	if f.traces && code&^1 == x86.Equal {
		flags := st.flags
		w.next[code&1^1].equal = &flags
	}
	f.goOn(w.next[0], f.copy(st), at, b.Succ[1], depth+1)
	f.goOn(w.next[1], st, at, b.Succ[0], depth+1)
	return to, false
}

// What a jump by a table may lead to at most for its ways to be followed: where it is not known
// which of them is taken, where the program looks for it, and where it does that first of all, so
// that others do the same.
const (
	mostUnknown = 4
	mostLabels  = 64
	mostFirst   = 1024
)

// choose follows the ways of a jump by a table.
func (f *follower) choose(w *way, st *state, r *plan.Routine, at place, depth int,
) (to place, ok bool) {
	b := &r.Blocks[at.block]
	if len(b.Succ) == 1 {
		return place{at.routine, int32(b.Succ[0])}, true
	}
	w.ends, w.index = f.index(st, r, b)
	most := mostUnknown
	switch {
	case w.ends == table || w.ends == labels && f.isFirst(w, st):
		most = mostFirst
	case w.ends == labels:
		most = mostLabels
	}
	if depth >= mostDepth || len(b.Succ) > most {
		w.ends, w.cut = ended, true
		return to, false
	}
	succ := slices.Clone(b.Succ)
	slices.SortFunc(succ, func(x, y int) int { return cmp.Compare(r.Blocks[x].Lo, r.Blocks[y].Lo) })
	left := f.insns
	for _, s := range succ {
		n := f.way()
		if most == mostFirst {
			f.insns = min(left, mostInsns/4)
		}
		f.goOn(n, f.copy(st), at, s, depth+1)
		w.next, w.starts = append(w.next, n), append(w.starts, r.Blocks[s].Lo)
	}
	f.insns = left
	if w.ends == table {
		w.cases = make([]int, len(b.Table.Targets))
		for i, s := range b.Table.Targets {
			w.cases[i] = slices.Index(succ, s)
		}
	}
	return to, false
}

// isFirst reports whether a way is nothing yet but a jump.
func (f *follower) isFirst(w *way, st *state) bool {
	for i := range st.regs {
		if st.regs[i] != held(i) {
			return false
		}
	}
	return len(st.stores) == 0
}

// index is what a jump by a table goes by, as far as it is known: its index, or its target.
func (f *follower) index(st *state, r *plan.Routine, b *cfg.Block) (ending, value) {
	t := b.Table
	for _, c := range st.cases {
		if t.Targets != nil && c.routine == r.ID && c.check == t.Check && c.index.isKnown() {
			return table, f.ns.low(c.index.plus(t.Bias), t.Index.Size)
		}
	}
	q := &b.Insns[len(b.Insns)-1]
	e := q.Effects(r.Code(q), q.End())
	if v := (execution{f, st, q, &e}).read(&e.Src); v.isKnown() {
		return labels, v
	}
	return fork, value{node: unknown}
}

// noteCase keeps where the index of a switch is, at the end of the block that checks its bound.
func (f *follower) noteCase(st *state, at place) {
	r := f.plan.Routines[at.routine]
	for _, t := range f.facts[r.ID].checks[int(at.block)] {
		o := &t.Index
		var v value
		if o.Mem {
			v, _ = f.content(st, f.ns.address(st, o), o.Size)
		} else {
			v = f.ns.register(st, o)
		}
		st.cases = append(st.cases, choice{r.ID, int(at.block), v})
	}
}
