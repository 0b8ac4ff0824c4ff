package decoder

import (
	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
)

// interrupt brings the innermost activation to the instruction at pc, which is about to run, and ends its path there: a signal handler
// comes in between, or the thread is dead. Activations that must have returned before are ended, and routines that have made no word yet are
// entered. It reports false if no silent way leads to pc.
func (t *Thread) interrupt(pc uint64) bool {
	for entered := 0; entered < mostRelays; {
		if t.interruptSome(pc) {
			return true
		}
		if !t.enterToward(pc) {
			return false
		}
		entered++
	}
	return false
}

// interruptSome interrupts the innermost activation that can have come to pc.
func (t *Thread) interruptSome(pc uint64) bool {
	for i := len(t.frames) - 1; i >= 0; i-- {
		f := &t.frames[i]
		if b, k, ok := f.r.locate(pc); ok && t.interruptAt(i, b, k) {
			return true
		}
		if _, n := f.st.returnsBy(f.called || i < len(t.frames)-1); n == 0 {
			return false
		}
	}
	return false
}

// enterToward lets the innermost activation that can call the routine that holds pc call it.
func (t *Thread) enterToward(pc uint64) bool {
	for i := len(t.frames) - 1; i >= 0; i-- {
		f := &t.frames[i]
		if t.callToward(i, pc) || t.jumpToward(i, pc) {
			return true
		}
		if _, n := f.st.returnsBy(f.called || i < len(t.frames)-1); n == 0 {
			return false
		}
	}
	return false
}

// callToward lets frame i call the routine that holds pc, if there is just one such call on its way.
func (t *Thread) callToward(i int, pc uint64) bool {
	f := &t.frames[i]
	call, n := exit, 0
	byPointer := t.d.entersByPointer(pc)
	consider := func(b int) {
		if byPointer && f.r.kind[b] == plan.Unknown && f.r.makesCall(b) {
			n++ // it may be this call as well
		}
		if f.r.kind[b] == plan.Known && f.r.makesCall(b) && f.r.Blocks[b].Depth >= 0 && f.r.callee[b].holds(pc) {
			call, n = b, n+1
		}
	}
	if f.st.block != exit && !f.called {
		consider(f.st.block)
	}
	if f.st.passes(f.called) {
		for _, node := range f.st.silentWays().nodes {
			if f.r.Site(node.block) == nil {
				consider(node.block)
			}
		}
	}
	if n != 1 || call == exit {
		return false
	}
	t.finishAbove(i)
	t.goToCall(f, call)
	block := &f.r.Blocks[call]
	t.enter(frame{activation: activation{f.r.callee[call], f.cfa - uint64(block.Depth)}, from: wire.MakeFrom(wire.Inside, block.Hi)})
	return true
}

// jumpToward lets frame i leave by a tail jump to the routine that holds pc, if there is just one such way.
func (t *Thread) jumpToward(i int, pc uint64) bool {
	f := &t.frames[i]
	called := f.called || i < len(t.frames)-1
	var way out
	n := 0
	for _, o := range f.st.outs(called) {
		if r := f.r.tailTarget(o.block); r != nil && r.holds(pc) {
			way, n = o, n+1
		}
	}
	if n != 1 {
		return false
	}
	t.finishAbove(i)
	t.apply(f, f.st.moveOut(way, f.called))
	next := frame{activation: activation{f.r.tailTarget(way.block), f.cfa}, from: f.from, root: f.root, handler: f.handler}
	t.frames = t.frames[:i]
	t.enter(next)
	return true
}

// makesCall reports whether block b ends in a call, be it one that never returns.
func (r *routine) makesCall(b int) bool {
	e := r.Blocks[b].End
	return e == cfg.Call || e == cfg.CallInd || e == cfg.NoReturn
}

// locate finds the block of an instruction and its index there.
func (r *routine) locate(pc uint64) (block, insn int, ok bool) {
	if !r.holds(pc) {
		return 0, 0, false
	}
	for b := range r.Blocks {
		if block := &r.Blocks[b]; block.Lo <= pc && pc < block.Hi {
			for k := range block.Insns {
				if block.Insns[k].Addr == pc {
					return b, k, true
				}
			}
		}
	}
	return 0, 0, false
}

func (r *routine) holds(pc uint64) bool {
	for _, x := range r.Ranges {
		if x[0] <= pc && pc < x[1] {
			return true
		}
	}
	return false
}

// interruptAt ends the running path of frame i before instruction k of block b.
func (t *Thread) interruptAt(i, b, k int) bool {
	f := &t.frames[i]
	if f.st.block == b && !f.called && (!f.beyond(b, k) || f.faulted(b, k)) {
		t.finishAbove(i)
		f = &t.frames[i]
		t.emitPrefix(f, t.blocks(f), k)
		f.trail, f.skip = []int{b}, k
		return true
	}
	m, told := f.st.to(b, f.called), f.st
	if m == nil {
		return false
	}
	t.finishAbove(i)
	f = &t.frames[i]
	t.apply(f, m)
	f.st, f.called = f.r.at(b, 0), false
	blocks := t.blocks(f)
	if k == 0 {
		blocks = blocks[:len(blocks)-1]
	}
	t.emitPrefix(f, blocks, k)
	st := f.r.justBefore(b)
	st.table, st.target = told.table, told.target
	f.st, f.skip = st, k
	return true
}

// faulted reports whether instruction k, where the activation spoke last, cannot have been come to again: its hit was its last, for it faulted.
func (f *frame) faulted(b, k int) bool {
	return k == f.r.Site(b).Insn && f.st.to(b, false) == nil
}

// beyond reports whether instruction k of block b, where the activation stands, has run already: then control has come to the block anew.
func (f *frame) beyond(b, k int) bool {
	s := f.r.Site(b)
	switch {
	case s == nil:
		return false
	case s.Stepped: // it may fault after its hit
		return k < s.Insn
	}
	return k <= s.Insn
}

// endAfter tells how a path ends whose last block is the trail's.
func (r *routine) endAfter(trail []int) ops.End {
	b := trail[len(trail)-1]
	switch r.Blocks[b].End {
	case cfg.Call, cfg.CallInd:
		return ops.EndCall
	case cfg.Ret:
		return ops.EndReturn
	case cfg.Tail, cfg.TailInd:
		return ops.EndTail
	case cfg.NoReturn, cfg.Trap:
		return ops.EndNoReturn
	}
	return ops.EndLoop
}
