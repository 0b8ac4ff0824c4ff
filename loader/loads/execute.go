package loads

import (
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
	"wpptrace/loader/x86"
)

// execute runs an instruction on what is known in terms of the hit, and notes what it loads. What
// is not modelled is not known behind it.
func (f *follower) execute(w *way, st *state, r *plan.Routine, q *cfg.Insn) {
	e := q.Effects(r.Code(q), q.End())
	x := execution{f, st, q, &e}
	x.noteLoads(w, r)
	if !x.isModelled() && e.Written() != 0 || x.exchanges() {
		w.leaves = true // an emulator may not have the result: the next hit shows all registers
	}
	flags, changed := compared{}, e.FlagsWritten() != 0
	if changed {
		flags = x.flags()
	}
	if !x.move() && !x.compute() {
		x.forget()
	}
	if changed {
		st.flags = flags
	}
	if f.traces {
		x.trace(w)
	}
}

// A result is what an instruction has written, or where.
type result struct {
	pc uint64
	is value
}

// trace notes what the instruction has written to registers, but for where the stack is, and to
// memory.
func (x execution) trace(w *way) {
	written := x.e.Written() &^ (1 << x86.RSP)
	for reg := range int8(16) {
		if written.Has(reg) {
			w.results = append(w.results, result{x.q.Addr, x.st.regs[reg]})
		}
	}
	for i := len(x.st.stores) - 1; i >= 0 && x.st.stores[i].pc == x.q.Addr; i-- {
		s := &x.st.stores[i]
		w.results = append(w.results, result{x.q.Addr, s.at}, result{x.q.Addr, s.is})
	}
}

// An execution is that of one instruction.
type execution struct {
	f  *follower
	st *state
	q  *cfg.Insn
	e  *x86.Effects
}

// isModelled reports whether what the instruction does to general registers follows from these and
// from memory.
func (x execution) isModelled() bool {
	switch x.e.Operation {
	case x86.Unknown, x86.Vector, x86.X87, x86.State:
		return false
	}
	segment, ok := x.q.Segment()
	return x.e.Complete() || ok && segment == x86.FS && !x.q.Short()
}

// exchanges reports whether the instruction takes from memory to a register what other threads have
// put there up to that moment.
func (x execution) exchanges() bool {
	switch x.e.Operation {
	case x86.Xchg:
		return x.e.Dst.Mem || x.e.Src.Mem
	case x86.XAdd, x86.CmpXchg, x86.CmpXchgPair:
		return x.e.Locked
	}
	return false
}

// noteLoads notes what the instruction loads, in terms of the state before it.
func (x execution) noteLoads(w *way, r *plan.Routine) {
	f, e := x.f, x.e
	f.accesses = e.Accesses(f.accesses[:0])
	for i := range f.accesses {
		a := &f.accesses[i]
		if !a.Reads {
			continue
		}
		l := load{at: value{node: unknown}, size: a.At.Size, pc: x.q.Addr,
			past: x.st.passed}
		if x.repeats() { // how many rounds there are is not known: few, as a rule
			l.size = MostBytes
		}
		// how far away it lies is not known
		if !e.Far() && l.size > 0 {
			l.at = x.address(&a.At)
		}
		l.need = x.need(r, &a.At, l.at, l.size)
		w.leaves = w.leaves || l.need == notComputable
		w.loads = append(w.loads, l)
	}
}

func (x execution) repeats() bool {
	switch x.e.Operation {
	case x86.Movs, x86.Cmps, x86.Stos, x86.Lods, x86.Scas:
		return x.e.Repeat != 0
	}
	return false
}

// need says whether a program has to make a load.
func (x execution) need(r *plan.Routine, o *x86.Operand, at value, size uint8) need {
	switch x.e.Operation {
	case x86.Return:
		out := x.f.facts[r.ID].returnsOut && len(x.st.calls) == 0
		if out && at.isKnown() && !x.st.covers(at, size) {
			return returnAddress
		}
		return private
	case x86.Pop, x86.PopF, x86.Leave:
		return private
	}
	if (o.Base == x86.RSP || o.Base == x86.RBP) && x.f.facts[r.ID].hidesFrame &&
		r.HasPlace(*o, x.q.Addr) {
		return private
	}
	switch {
	case !at.isKnown():
		return notComputable
	case x.f.isReadOnly(at) || x.f.isSealed(at, size):
		return readOnly
	}
	if x.st.covers(at, size) {
		return forwarded
	}
	return toRead
}

// isReadOnly reports whether an address is one of the image's that nobody writes to: itself, or an
// element of what begins there.
func (f *follower) isReadOnly(at value) bool {
	isImage := at.isConstant() || at.node == biasNode
	if n := &f.ns.list[at.node]; !isImage && at.node >= fixed && n.op == Sum {
		isImage = n.a.node == biasNode || n.b.node == biasNode && n.scale == 0 ||
			n.a.isConstant()
	}
	if !isImage {
		return false
	}
	s := f.plan.Program.Image.SectionAt(uint64(at.add))
	return s != nil && !s.Writable
}

// isSealed reports whether the image's file says what an address of the image holds that the loader
// writes to, and nobody after it.
func (f *follower) isSealed(at value, size uint8) bool {
	if at.node != biasNode || size == 0 {
		return false
	}
	from, to := uint64(at.add), uint64(at.add)+uint64(size)
	for from &^= 7; from < to; from += 8 {
		if _, _, ok := f.plan.Program.Image.Sealed(from); !ok {
			return false
		}
	}
	return true
}

// address is where a memory operand lies.
func (x execution) address(o *x86.Operand) value {
	segment, ok := x.q.Segment()
	switch {
	case !ok || segment == x86.GS || x.q.Short():
		return value{node: unknown}
	case segment == x86.FS && x.e.Operation != x86.Lea:
		return x.f.ns.sum(value{node: fsNode}, x.f.ns.address(x.st, o), 0)
	}
	return x.f.ns.address(x.st, o)
}

// content is what a place in memory holds, zeroes above; needed is false if the route itself has
// stored it.
func (f *follower) content(st *state, at value, size uint8) (v value, needed bool) {
	if v, found := st.forwarded(&f.ns, at, size); found {
		return v, false
	}
	switch {
	case size != 1 && size != 2 && size != 4 && size != 8:
		return value{node: unknown}, true
	case at.node == biasNode && size <= 4 && f.isReadOnly(at):
		if b := f.plan.Program.Image.Bytes(uint64(at.add), uint64(at.add)+uint64(size)); b != nil {
			var n uint64
			for i, c := range b {
				n |= uint64(c) << (8 * i)
			}
			return constant(int64(n)), false
		}
	case at.node == biasNode && size == 8:
		switch word, relative, ok := f.plan.Program.Image.Sealed(uint64(at.add)); {
		case ok && relative:
			return value{biasNode, int64(word)}, false
		case ok:
			return constant(int64(word)), false
		}
	}
	return f.ns.of(node{op: Fetch, size: size, a: at}), true
}

// read is what an operand holds, zeroes above.
func (x execution) read(o *x86.Operand) value {
	switch {
	case o.Mem:
		v, _ := x.f.content(x.st, x.address(o), o.Size)
		return v
	case o.Reg >= 0:
		return x.f.ns.register(x.st, o)
	}
	return value{node: unknown}
}

func (x execution) write(o *x86.Operand, v value) {
	switch {
	case o.Mem:
		x.store(x.address(o), o.Size, v)
	case o.Reg >= 0:
		x.f.ns.set(x.st, o, v)
	}
}

func (x execution) store(at value, size uint8, v value) {
	if at.isKnown() && size > 0 {
		x.st.stores = append(x.st.stores, store{at, size, v, x.q.Addr})
	}
}

// source is the operand that is not written: an immediate, if there is one.
func (x execution) source() value {
	if x.e.HasImm {
		return constant(x.e.Imm)
	}
	return x.read(&x.e.Src)
}

// move runs what moves values; ok is false if it is anything else.
func (x execution) move() (ok bool) {
	e, st, ns := x.e, x.st, &x.f.ns
	sp := &st.regs[x86.RSP]
	switch e.Operation {
	case x86.Mov:
		if !x.isModelled() {
			return false
		}
		x.write(&e.Dst, x.source())
	case x86.MovZX:
		x.write(&e.Dst, x.read(&e.Src))
	case x86.MovSX:
		x.write(&e.Dst, ns.signed(x.read(&e.Src), e.Src.Size))
	case x86.Lea:
		x.write(&e.Dst, x.address(&e.Src))
	case x86.Xchg:
		a, b := x.read(&e.Dst), x.read(&e.Src)
		x.write(&e.Dst, b)
		x.write(&e.Src, a)
	case x86.Push:
		v := x.source()
		*sp = sp.plus(-8)
		x.store(*sp, 8, v)
	case x86.Pop:
		v, _ := x.f.content(st, *sp, 8)
		*sp = sp.plus(8)
		x.write(&e.Dst, v)
	case x86.Leave:
		at := st.regs[x86.RBP]
		st.regs[x86.RBP], _ = x.f.content(st, at, 8)
		*sp = at.plus(8)
	case x86.CallTo:
		*sp = sp.plus(-8)
		x.store(*sp, 8, value{biasNode, int64(x.q.End())})
	case x86.Return:
		st.returns, _ = x.f.content(st, *sp, 8)
		delta, _ := e.StackDelta()
		*sp = sp.plus(int64(delta))
	case x86.NoOp, x86.Jump, x86.JumpIf, x86.Stop:
	default:
		return false
	}
	return true
}

// operations are those that are a step.
var operations = map[x86.Operation]Op{
	x86.Add: Sum, x86.Sub: Subtract, x86.And: And, x86.Or: Or, x86.Xor: Xor, x86.Shl: ShiftLeft,
	x86.Shr: ShiftRight, x86.Sar: ShiftRightSigned,
}

// compute runs what computes; ok is false if it is anything else.
func (x execution) compute() (ok bool) {
	v, ok := x.result()
	if ok {
		x.write(&x.e.Dst, v)
	}
	return ok
}

// result is what an instruction computes for its destination.
func (x execution) result() (v value, ok bool) {
	e, ns := x.e, &x.f.ns
	size := e.Dst.Size
	switch e.Operation {
	case x86.Add, x86.Sub, x86.And, x86.Or, x86.Xor, x86.Shl, x86.Shr, x86.Sar:
		if (e.Operation == x86.Xor || e.Operation == x86.Sub) && e.Src == e.Dst && !e.Src.Mem {
			return constant(0), true
		}
		return ns.compute(operations[e.Operation], x.read(&e.Dst), x.source(), size), true
	case x86.Inc:
		return ns.compute(Sum, x.read(&e.Dst), constant(1), size), true
	case x86.Dec:
		return ns.compute(Subtract, x.read(&e.Dst), constant(1), size), true
	case x86.Neg:
		return ns.compute(Subtract, constant(0), x.read(&e.Dst), size), true
	case x86.Not:
		return ns.compute(Xor, x.read(&e.Dst), constant(-1), size), true
	case x86.IMul:
		times := constant(e.Imm)
		if !e.HasImm {
			times = x.read(&x86.Operand{Reg: e.Third, Base: -1, Index: -1, Size: size})
		}
		return ns.compute(Multiply, x.read(&e.Src), times, size), true
	case x86.MovIf:
		return ns.either(&x.st.flags, e.Condition, x.read(&e.Src), x.read(&e.Dst)), true
	case x86.SetIf:
		return ns.either(&x.st.flags, e.Condition, constant(1), constant(0)), true
	case x86.Adc, x86.Sbb:
		op, carry := Sum, ns.either(&x.st.flags, x86.Below, constant(1), constant(0))
		if e.Operation == x86.Sbb {
			op = Subtract
		}
		if op == Subtract && e.Src == e.Dst && !e.Src.Mem {
			return ns.compute(op, constant(0), carry, size), true
		}
		return ns.compute(op, ns.compute(op, x.read(&e.Dst), x.source(), size), carry, size), true
	case x86.Rol, x86.Ror:
		if !e.HasImm {
			return v, false
		}
		by := e.Imm
		if e.Operation == x86.Ror {
			by = -by
		}
		return ns.rotated(x.read(&e.Dst), by, size), true
	case x86.BSwap:
		if size != 4 {
			return v, false
		}
		is := x.read(&e.Dst)
		return ns.compute(Or, ns.compute(And, ns.rotated(is, 8, 4), constant(0x00ff00ff), 4),
			ns.compute(And, ns.rotated(is, -8, 4), constant(-0x00ff0100), 4), 4), true
	case x86.SignFill:
		return ns.compute(ShiftRightSigned, x.read(&e.Src), constant(int64(size)*8-1), size), true
	}
	return v, false
}

// flags are what the flags hold behind the instruction, in terms of the state before it.
func (x execution) flags() compared {
	e := x.e
	size := e.Dst.Size
	switch e.Operation {
	case x86.Cmp, x86.Sub:
		return compared{byDistance, x.read(&e.Dst), x.source(), size}
	case x86.Test:
		return compared{byBits, x.read(&e.Dst), x.source(), size}
	case x86.Neg:
		return compared{byDistance, constant(0), x.read(&e.Dst), size}
	case x86.And, x86.Or, x86.Xor:
		v, _ := x.result()
		return compared{byBits, v, v, size}
	case x86.Shl, x86.Shr, x86.Sar:
		if !e.HasImm || e.Imm&31 == 0 {
			return compared{}
		}
		fallthrough
	case x86.Add, x86.Inc, x86.Dec:
		v, _ := x.result()
		return compared{byResult, v, v, size}
	case x86.Bt:
		if e.HasImm && !e.Dst.Mem {
			bit := constant(1 << (uint64(e.Imm) & (8*uint64(size) - 1)))
			return compared{byBit, x.read(&e.Dst), bit, size}
		}
	}
	return compared{}
}

// flagsBefore are what the flags hold before an instruction of a block, in terms of the state
// there: what they were made of is there still, or at least the result.
func (f *follower) flagsBefore(st *state, r *plan.Routine, b *cfg.Block, insn int) compared {
	var written x86.Set
	stores := false
	for i := insn - 1; i >= 0; i-- {
		q := &b.Insns[i]
		e := q.Effects(r.Code(q), q.End())
		x := execution{f, st, q, &e}
		reads := e.Read()
		if e.FlagsWritten() == 0 {
			_, _, ok := e.Stores()
			if delta, known := e.StackDelta(); delta != 0 || !known {
				written |= 1 << x86.RSP
			}
			written |= e.Written()
			stores = stores || ok || e.StoresUnseen() || !e.Complete()
			continue
		}
		if stores && e.Address().Mem {
			return compared{}
		}
		kept := !written.Has(e.Dst.Reg) // the result
		if e.Dst.Mem {
			kept = reads&written == 0
		}
		switch e.Operation {
		case x86.Cmp, x86.Test, x86.Bt:
			if reads&written == 0 {
				return x.flags()
			}
		case x86.Add, x86.Inc, x86.Dec, x86.Sub, x86.Neg:
			if kept {
				v := x.read(&e.Dst)
				return compared{byResult, v, v, e.Dst.Size}
			}
		case x86.And, x86.Or, x86.Xor:
			if kept {
				v := x.read(&e.Dst)
				return compared{byBits, v, v, e.Dst.Size}
			}
		}
		break
	}
	return compared{}
}

// forget takes what the instruction writes for not known.
func (x execution) forget() {
	e, st := x.e, x.st
	written := e.Written()
	for reg := range int8(16) {
		if written.Has(reg) {
			st.regs[reg] = value{node: unknown}
		}
	}
	if to, bytes, ok := e.Stores(); ok && !e.Far() {
		x.store(x.address(&to), uint8(min(bytes, 255)), value{node: unknown})
	}
	delta, ok := e.StackDelta()
	if st.regs[x86.RSP] = st.regs[x86.RSP].plus(int64(delta)); !ok {
		st.regs[x86.RSP] = value{node: unknown}
	}
}
