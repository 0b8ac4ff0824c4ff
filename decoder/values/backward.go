package values

import (
	"slices"

	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/loader/loads"
)

// mostBackwards is how many instructions a recovery goes back at most.
const mostBackwards = 1024

// An executed is an instruction that runs between external code and the next hit.
type executed struct {
	in      *machine.Insn // nil: external code, which returns to next
	next    uint64        // address behind it
	at      wet.Place
	private bool   // its operand is in a frame of which nobody else knows the address
	written uint16 // registers; only a judge knows them
	// what is foreseen: see oracle.foresee
	stores []loads.Read // where it stores
	used   []loads.Read // what it loads of what the next hit has read
	// that turned out not to be so: it has been overwritten since
	refuses bool
}

// recover finds out what registers and memory hold at a place where external code has returned or
// called, or where an instruction runs that carries no probe or whose hit has come (amid), by what
// the next hit has seen of them.
func (o *oracle) recover(at wet.Place, amid bool) (b backwards) {
	o.after = backwards{}
	s := o.behind(at, amid)
	if s == nil || !s.Whole {
		return b
	}
	b = o.back(s)
	if b.stuck { // once more, by where stores go if memory was as the next hit has read it
		const mostRounds = 4
		reads := o.readsOf(s, (*[17]uint64)(s.Registers), 0, nil)
		for range mostRounds {
			o.foresee(reads)
			if b = o.back(s); !b.differs {
				break
			}
		}
		if b.differs {
			for i := range o.between {
				o.between[i].stores, o.between[i].used = nil, nil
			}
			b = o.back(s)
		}
	}
	o.held = b.reads
	if s.Interrupted || b.external { // a handler, or other code, may have written that amid them
		b.reads, b.doubted = nil, nil
	}
	return b
}

// back goes back from what the next hit has seen.
func (o *oracle) back(s *wire.State) (b backwards) {
	b = allKnown()
	copy(b.values[:], s.Registers)
	b.reads = o.readsOf(s, (*[17]uint64)(s.Registers), 0, o.held[:0])
	b.fs, b.memory, b.recorder, b.interrupted = s.Registers[16], o.memory, o.recorder, s.Interrupted
	zero := s.Flags&machine.ZF != 0 // of what has made the flags last
	for i := len(o.between) - 1; i >= 0; i-- {
		x := &o.between[i]
		switch {
		case x.in == nil:
			zero = false
		case x.in.Op == machine.JumpIf:
			zero = shows(o.between, i, zero)
		case x.in.Op == machine.MovIf:
			zero = zero || b.isZero(x.in) && tests(o.between, i)
		case !keepsFlags(x.in.Op):
			if b.zeroed = zero; zero {
				b.fresh = 0
				b.zero(x.in)
				b.settle(b.unsure != 0)
			}
			zero = false
		}
		if i == 0 {
			o.after = b
			o.after.complete(x.in)
		}
		if b.held = nil; b.asks(x.in) {
			b.held = o.before(i)
			b.learn(x.in)
		}
		b.undo(x, o.recorder.scratch)
		b.zeroed = false
	}
	return b
}

// shows reports whether what has made the flags before a jump has come to nothing, by where it
// leads, or else by what was known of that behind it.
func shows(between []executed, i int, zero bool) bool {
	x := &between[i]
	if i+1 == len(between) || between[i+1].in == nil || x.in.Imm == 0 {
		return zero
	}
	next := &between[i+1]
	falls := next.next-uint64(next.in.Len) == x.next
	switch x.in.Condition {
	case ifEqual:
		return !falls
	case ifEqual ^ 1:
		return falls
	}
	return zero
}

// tests reports whether a conditional move is of the register that has just been tested, where that
// is not zero: where the result is zero the register was, and nothing was moved.
func tests(between []executed, i int) bool {
	move := between[i].in
	if i == 0 || between[i-1].in == nil || move.Condition != ifEqual^1 ||
		move.Src.Class != machine.General {
		return false
	}
	test := between[i-1].in
	return test.Op == machine.Test && test.Src.Class == machine.General && test.Dst == test.Src &&
		test.Dst.Reg == move.Src.Reg && test.Size <= move.Size
}

// keepsFlags reports whether an operation surely leaves the flags as they are.
func keepsFlags(op machine.Op) bool {
	switch op {
	case machine.Mov, machine.MovSX, machine.Lea, machine.Push, machine.Pop, machine.NoOp,
		machine.Jump, machine.MovIf, machine.SetIf, machine.Not, machine.BSwap:
		return true
	}
	return false
}

// ifEqual is the condition code of the processor.
const ifEqual = 4

// zero finds what registers hold behind an instruction that has come to nothing.
func (b *backwards) zero(in *machine.Insn) {
	dst, src, size := in.Dst.Reg&15, in.Src.Reg&15, in.Dst.Size
	if in.Op == machine.Cmp && in.Src.Class == machine.General &&
		in.Dst.Class == machine.General && dst != src {
		switch {
		case b.holds(src, size):
			b.set(dst, b.values[src], size)
		case b.holds(dst, size):
			b.set(src, b.values[dst], size)
		}
		return
	}
	if in.Dst.Class != machine.General {
		return
	}
	switch in.Op {
	case machine.Add, machine.Sub, machine.And, machine.Or, machine.Xor, machine.Inc, machine.Dec,
		machine.Neg:
		if size == 4 { // above it is cleared
			size = 8
		}
		b.set(dst, 0, size)
	case machine.Test:
		if in.Src.Class == machine.General && src == dst {
			b.set(dst, 0, size)
		}
	case machine.Cmp:
		if in.Src.Class == machine.Immediate {
			b.set(dst, uint64(in.Imm), size)
		}
	}
}

// compared is what an instruction has loaded that has compared it with what is the same.
func (b *backwards) compared(in *machine.Insn) (v uint64, ok bool) {
	if !b.zeroed || in.Op != machine.Cmp {
		return 0, false
	}
	other := &in.Src
	if in.Src.Class == machine.Mem {
		other = &in.Dst
	}
	switch {
	case other.Class == machine.Immediate:
		return uint64(in.Imm), true
	case other.Class == machine.General && b.holds(other.Reg, other.Size):
		return b.values[other.Reg&15], true
	}
	return 0, false
}

// complete finds what the registers hold that an instruction has written, whose lower bytes are
// known behind it.
func (b *backwards) complete(in *machine.Insn) {
	if in == nil || in.Dst.Class != machine.General || in.Dst.Size < 4 || !writesAll(in.Op) {
		return
	}
	n, size := in.Dst.Reg&15, in.Dst.Size
	v := b.values[n]
	if in.Op == machine.Mov || in.Op == machine.MovSX {
		size = min(size, in.Src.Size)
	}
	if size == 8 || !b.holds(n, size) {
		return
	}
	v = v << (64 - 8*size) >> (64 - 8*size)
	if in.Op == machine.MovSX {
		v = uint64(int64(v<<(64-8*size)) >> (64 - 8*size))
		v = v << (64 - 8*in.Dst.Size) >> (64 - 8*in.Dst.Size)
	}
	b.set(n, v, 8)
}

// writesAll reports whether an operation surely writes its destination, above four bytes zeroes.
func writesAll(op machine.Op) bool {
	switch op {
	case machine.Mov, machine.MovSX, machine.Lea, machine.Add, machine.Sub, machine.Adc,
		machine.Sbb, machine.And, machine.Or, machine.Xor, machine.Inc, machine.Dec, machine.Neg,
		machine.Not, machine.IMul, machine.MovIf:
		return true
	}
	return false
}

// loaded is what the first instruction of those that were last gone back over has loaded, if it
// moved that to a register that holds it at the next hit still, or if what it made of it and of a
// register is known; ok is false if it is not. sure: it follows from nothing that is not sure.
func (o *oracle) loaded(n int) (v uint64, sure, ok bool) {
	in := o.between[0].in
	dst, size := in.Dst.Reg&15, in.Dst.Size
	v, sure = o.after.values[dst], o.after.unsure == 0
	if in.Dst.Class != machine.General || size < 4 || n > int(size) {
		return 0, false, false
	}
	switch in.Op {
	case machine.Mov, machine.MovSX:
		ok = in.Src.Class == machine.Mem && int(in.Src.Size) == n && o.after.holds(dst, uint8(n))
	case machine.Pop:
		ok = o.after.holds(dst, uint8(n))
	case machine.Add, machine.Sub, machine.Xor:
		before, k := o.thread.walker.General(int(dst))
		ok = in.Src.Class == machine.Mem && int(size) == n && o.after.holds(dst, size) &&
			k != machine.Unknown
		sure = sure && k == machine.Confirmed
		switch in.Op {
		case machine.Add:
			v -= before
		case machine.Sub:
			v = before - v
		default:
			v ^= before
		}
	}
	return v, sure, ok
}

// behind finds the instructions from a place to the next site, and returns what was seen there;
// nil: that is not known, or other code may run before.
func (o *oracle) behind(at wet.Place, amid bool) *wire.State {
	o.between, o.ran = o.between[:0], o.ran[:0]
	for i := range o.ahead {
		p := o.ahead[i].path
		if p == nil {
			return nil
		}
		code, err := o.recorder.routine(p.Routine)
		if err != nil {
			return nil
		}
		var site int
		var found, follows bool
		if i == 0 {
			first := slices.Index(p.Blocks, at.Block)
			if at.Routine != p.Routine || first < 0 || first == 0 && at.Insn < p.Skip ||
				!amid && (first > 0 || at.Insn != p.Skip) {
				return nil
			}
			site, found, follows = o.along(code, p, nil, start{first, at.Insn, amid, at.Symbol})
		} else {
			from := start{0, p.Skip, false, at.Symbol + uint64(i)}
			site, found, follows = o.along(code, p, o.ahead[i-1].path, from)
		}
		switch {
		case !follows:
			return nil
		case found:
			return o.seen(site)
		case len(o.between) > mostBackwards || o.ahead[i].times > 1:
			return nil
		}
	}
	return nil
}

// A start is an instruction of a path: of which block, by its index in the path.
type start struct {
	block, insn int
	hit         bool // the hit of a probe there has come
	symbol      uint64
}

// along adds the instructions of a path from one on up to its first site. before is the path before
// it; nil: it is the first. follows: they surely follow those that are there.
func (o *oracle) along(code *wet.Routine, p, before *path, from start,
) (site int, found, follows bool) {
	bias := o.recorder.code.Bias(code.Image)
	for j := from.block; j < len(p.Blocks); j++ {
		b := &code.Blocks[p.Blocks[j]]
		lo, hi := 0, len(b.Insns)
		if j == from.block {
			lo = from.insn
		}
		if j == len(p.Blocks)-1 {
			hi -= p.Cut
		}
		next := b.Addr + bias
		for i := range b.Insns[:lo] {
			next += uint64(b.Insns[i].Len)
		}
		if j == 0 && before != nil && !leadTo(o.between, p, next) &&
			!o.returnTo(code, p, before, next) && !o.goesTo(next) && !o.comesBack(next) {
			return 0, false, false
		}
		for i := lo; i < hi; i++ {
			for _, s := range b.Sites {
				if s.Insn == i && !(from.hit && j == from.block && i == lo) {
					return s.Number, true, true
				}
			}
			next += uint64(b.Insns[i].Len)
			o.between = append(o.between, executed{in: &b.Insns[i], next: next,
				private: slices.Contains(b.Frame, i),
				at: wet.Place{Symbol: from.symbol, Step: j, Routine: p.Routine,
					Block: p.Blocks[j], Insn: i}})
		}
	}
	return 0, false, true
}

// leadTo reports whether instructions surely lead to where a path begins.
func leadTo(between []executed, p *path, addr uint64) bool {
	if len(between) == 0 || between[len(between)-1].in == nil {
		return false
	}
	last := &between[len(between)-1]
	switch last.in.Op {
	case machine.Call, machine.Jump:
		return last.in.Src.Class == machine.Immediate && last.next+uint64(last.in.Imm) == addr
	case machine.JumpIf:
		return last.next+uint64(last.in.Imm) == addr || last.next == addr
	case machine.Return, machine.Opaque:
		return false
	}
	return last.next == addr && (p.Start == ops.StartLoop || p.Start == ops.StartExtra)
}

// returnTo reports whether the instructions so far end in the return of a path's routine to another
// path, which begins at an address: behind a call of that routine.
func (o *oracle) returnTo(code *wet.Routine, p, before *path, addr uint64) bool {
	if len(o.between) == 0 || o.between[len(o.between)-1].in == nil ||
		o.between[len(o.between)-1].in.Op != machine.Return ||
		p.Start != ops.StartCall || p.Blocks[0] == 0 {
		return false
	}
	from, err := o.recorder.routine(before.Routine)
	if err != nil || from.Image != code.Image {
		return false
	}
	b := &code.Blocks[p.Blocks[0]-1]
	end := b.Addr
	for i := range b.Insns {
		end += uint64(b.Insns[i].Len)
	}
	if len(b.Insns) == 0 || end+o.recorder.code.Bias(code.Image) != addr {
		return false
	}
	call := &b.Insns[len(b.Insns)-1]
	return call.Op == machine.Call && call.Src.Class == machine.Immediate &&
		end+uint64(call.Imm) == o.recorder.plan.Base.Routines[before.Routine].Addr
}

// comesBack reports whether the instructions so far end in external code that returns to an
// address, and adds that: behind the call, or the call of what has jumped to it.
func (o *oracle) comesBack(addr uint64) bool {
	calls := o.between
	switch last := len(calls) - 1; {
	case last < 0 || calls[last].in == nil:
		return false
	case calls[last].in.Op == machine.Call:
		calls = calls[last:]
	case calls[last].in.Op != machine.Jump && calls[last].in.Op != machine.JumpIf:
		return false
	}
	if !slices.ContainsFunc(calls, func(x executed) bool {
		return x.in != nil && x.in.Op == machine.Call && x.next == addr
	}) {
		return false
	}
	o.between = append(o.between, executed{next: addr})
	return true
}

// seen is the state of the next hit, which is of a probe; nil: it is not there.
func (o *oracle) seen(number int) *wire.State {
	if number >= loads.FirstExtra {
		return o.next(number, 0)
	}
	return o.next(number, 1)
}
