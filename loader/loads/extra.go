package loads

import (
	"slices"

	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
	"wpptrace/loader/x86"
)

// What external code leaves in registers that the code behind it uses: results, and arguments where
// it calls.
const (
	results   = x86.Set(1<<x86.RAX | 1<<x86.RDX)
	arguments = x86.Set(1<<x86.RDI | 1<<x86.RSI | 1<<x86.RDX | 1<<x86.RCX | 1<<x86.R8 | 1<<x86.R9)
)

// extras finds the probes for values alone of a routine, in the order of their blocks: where the
// kernel emulates an instruction for the first time behind where external code may have come to an
// end, or called. They are there only where the next hit of the plan does not show what that has
// left in registers, or what was loaded before it. Where traced routines call as well, an entry has
// none: hits of these would show nothing new.
func (m *maker) extras(r *plan.Routine, called bool) {
	x := placer{m: m, r: r, taken: map[uint64]bool{}}
	if r.ExternalCallers() && !called {
		x.from(r.Entry, arguments)
	}
	for b := range r.Blocks {
		if !r.Blocks[b].CallReturns() {
			continue
		}
		switch kind, _ := r.Callee(b); kind {
		case plan.External, plan.Harmless, plan.Unknown:
			x.from(r.Blocks[b].Succ[0], results)
		}
	}
	m.extra = append(m.extra, x.list...)
}

// calledByTraced says of each routine whether a traced one calls it, or jumps to it, directly.
func calledByTraced(p *plan.Plan) []bool {
	called := make([]bool, len(p.Routines))
	for _, r := range p.Routines {
		if !r.Traced() {
			continue
		}
		for b := range r.Blocks {
			if kind, callee := r.Callee(b); kind == plan.Known {
				called[callee.ID] = true
			}
		}
	}
	return called
}

// add has programs end at a probe for values alone.
func (x *facts) add(s Site) {
	if x.extras == nil {
		x.extras = map[int][]int{}
	}
	list := x.extras[s.Block]
	if i, has := slices.BinarySearch(list, s.Insn); !has {
		x.extras[s.Block] = slices.Insert(list, i, s.Insn)
	}
}

// A placer finds the extra sites of a routine.
type placer struct {
	m     *maker
	r     *plan.Routine
	taken map[uint64]bool
	list  []Site
	left  int // instructions that may still be looked at
}

// from places a probe behind where external code comes to its end, at a block.
func (x *placer) from(block int, regs x86.Set) {
	var left []followed
	for reg := range int8(16) {
		if regs.Has(reg) {
			left = append(left, followed{same: x86.SetOf(reg), derived: x86.SetOf(reg)})
		}
	}
	first := place{int32(x.r.ID), int32(block)}
	for range len(x.r.Blocks) {
		b := &x.r.Blocks[block]
		site := x.r.Site(block)
		for i := range b.Insns {
			q := &b.Insns[i]
			if site != nil && site.Insn == i || x.taken[q.Addr] {
				return
			}
			if q.Class(x.r.Code(q)) != x86.Emulated {
				for k := range left {
					left[k].run(x.r, q)
				}
				continue
			}
			at := spot{place{int32(x.r.ID), int32(block)}, i}
			if x.gains(left, block, i) || x.m.gains(first, at) {
				x.taken[q.Addr] = true
				x.list = append(x.list, Site{Addr: q.Addr, Routine: x.r.ID, Block: block, Insn: i,
					Condition: q.Condition()})
			}
			return
		}
		if b.End != cfg.Fall && b.End != cfg.Jmp {
			return
		}
		block = b.Succ[0]
	}
}

// gains reports whether a probe at an instruction shows of what was left there what the next one of
// the plan does not.
func (x *placer) gains(left []followed, block, insn int) bool {
	for _, v := range left {
		const most = 200
		if x.left = most; !v.lost && x.loses(v, x.r, block, insn) {
			return true
		}
	}
	return false
}

// loses reports whether a value that was left is used, and lost before the next probe of the plan,
// on any way from an instruction on.
func (x *placer) loses(v followed, r *plan.Routine, block, insn int) bool {
	b := &r.Blocks[block]
	site := r.Site(block)
	for i := insn; i < len(b.Insns); i++ {
		if x.left--; x.left < 0 || site != nil && site.Insn == i {
			return false
		}
		if v.run(r, &b.Insns[i]); v.lost || v.points {
			return v.used
		}
	}
	if b.IsCall() {
		if kind, callee := r.Callee(block); kind == plan.Known {
			return x.loses(v, callee, callee.Entry, 0)
		}
		v.used = true // by what is called, perhaps
		return v.same&x86.CalleeSaved == 0
	}
	if b.End == cfg.Ret { // the next hit is the caller's
		return v.used
	}
	for _, s := range b.Succ {
		if s != cfg.Exit && x.loses(v, r, s, 0) {
			return true
		}
	}
	return false
}

// gains reports whether something is loaded behind a place that the next hit of the plan does not
// show, and a hit at an instruction would.
func (m *maker) gains(from place, at spot) bool {
	without := m.lost(from, nil)
	if len(without) == 0 {
		return false
	}
	with := m.lost(from, &at)
	return slices.ContainsFunc(without, func(pc uint64) bool { return !slices.Contains(with, pc) })
}

// lost are the addresses of instructions that load what the next hit, or one before it, does not
// show.
func (m *maker) lost(from place, until *spot) (list []uint64) {
	m.follow.until = until
	w := m.follow.behind(from)
	m.follow.until = nil
	w.ahead(nil, func(w *way, loads []load) {
		m.earlier.ns.reset()
		var t *translator
		if w.ends == probed {
			t = newTranslator(&m.follow.ns, &m.earlier.ns, w, allRegisters)
		}
		for _, l := range loads {
			if l.need == toRead && (t == nil || w.changes(&l) || !t.value(l.at).isKnown()) {
				list = append(list, l.pc)
			}
		}
	})
	return list
}

// A followed value is one that external code has left in a register.
type followed struct {
	same, derived x86.Set // registers that hold it, and what was computed of it
	used, lost    bool    // no register holds it any more
	points        bool    // memory was loaded from where it points to
}

// run follows the value through an instruction.
func (v *followed) run(r *plan.Routine, q *cfg.Insn) {
	e := q.Effects(r.Code(q), q.End())
	read, written := e.Read(), e.Written()
	at := e.Address()
	v.used = v.used || read&v.same != 0
	v.points = v.points || at.Mem && e.Operation != x86.Lea && e.Operation != x86.NoOp &&
		(v.derived.Has(at.Base) || v.derived.Has(at.Index))
	isCopy := e.Operation == x86.Mov && e.Dst.Size == 8 && !e.Dst.Mem && !e.Src.Mem && !e.HasImm &&
		v.same.Has(e.Src.Reg)
	isDerived := read&v.derived != 0 && !at.Mem || e.Operation == x86.Lea && read&v.derived != 0
	v.same, v.derived = v.same&^written, v.derived&^e.SurelyWritten()
	if isCopy {
		v.same |= x86.SetOf(e.Dst.Reg)
	}
	if isDerived {
		v.derived |= written
	}
	v.lost = v.same == 0
}
