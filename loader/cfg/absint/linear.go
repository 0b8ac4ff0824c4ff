package absint

import (
	"math/bits"

	"wpptrace/loader/x86"
)

// A Symbol is a value that registers are functions of: what a register held at the point that is
// looked from, the low half of that, or what an instruction has made since that is not followed.
type Symbol int32

// A Part is what of a register a symbol stands for.
type Part uint8

// The parts of a register.
const (
	Whole        Part = iota
	ZeroExtended      // the low 32 bits, with zeroes above
	SignExtended      // the low 32 bits, with their sign above
)

// Of is the part of a register that holds v.
func (p Part) Of(v uint64) uint64 {
	switch p {
	case ZeroExtended:
		return uint64(uint32(v))
	case SignExtended:
		return uint64(int64(int32(v)))
	}
	return v
}

// registers is how many there are: the symbols of each part are so many.
const registers = 16

// symbolOf is the symbol of a part of a register.
func symbolOf(reg int8, part Part) Symbol { return registers*Symbol(part) + Symbol(reg) }

// unfollowed is the first of the symbols that are of no register.
const unfollowed = registers * Symbol(SignExtended+1)

// Register is the register that a symbol stands for a part of; ok is false for any other.
func (s Symbol) Register() (reg int8, part Part, ok bool) {
	return int8(s % registers), Part(s / registers), s < unfollowed
}

// A Term is a symbol and what it is multiplied with.
type Term struct {
	Symbol Symbol
	Times  int64 // not 0
}

// A Linear is a sum of at most two terms, by their symbols, and a constant.
type Linear struct {
	Terms [2]Term // those beyond N are zero
	N     int
	Add   int64
	Half  bool // that is so modulo 2^32: of the upper half nothing is known
}

// IsConstant reports whether the value is known.
func (l Linear) IsConstant() bool { return l.N == 0 }

// plus adds what another value is, a number of times. ok is false if that has too many terms.
func (l Linear) plus(other Linear, times int64) (sum Linear, ok bool) {
	sum = Linear{Add: l.Add + times*other.Add, Half: l.Half || other.Half}
	i, k := 0, 0
	for i < l.N || k < other.N {
		var t Term
		switch {
		case k == other.N || i < l.N && l.Terms[i].Symbol < other.Terms[k].Symbol:
			t = l.Terms[i]
			i++
		case i == l.N || l.Terms[i].Symbol > other.Terms[k].Symbol:
			t = Term{other.Terms[k].Symbol, times * other.Terms[k].Times}
			k++
		default:
			t = Term{l.Terms[i].Symbol, l.Terms[i].Times + times*other.Terms[k].Times}
			i, k = i+1, k+1
		}
		if t.Times == 0 {
			continue
		}
		if sum.N == len(sum.Terms) {
			return Linear{}, false
		}
		sum.Terms[sum.N] = t
		sum.N++
	}
	return sum, true
}

// modulo32 is the value as far as its low 32 bits go: of its symbols no more counts either.
func (l Linear) modulo32() Linear {
	sum := Linear{Add: int64(int32(l.Add)), Half: true}
	for _, t := range l.Terms[:l.N] {
		if reg, _, ok := t.Symbol.Register(); ok {
			t.Symbol = Symbol(reg)
		}
		sum, _ = sum.plus(Linear{Terms: [2]Term{t}, N: 1}, 1)
	}
	return sum
}

// Distance is what one value is more than another, of which so many low bits count, 64 or 32; ok is
// false if it is not known.
func Distance(to, from Linear, bits int) (d Linear, ok bool) {
	if bits == 32 {
		to, from = to.modulo32(), from.modulo32()
	} else if to.Half || from.Half {
		return d, false
	}
	return to.plus(from, -1)
}

// Registers are what all general registers hold, as functions of what they held at one point of the
// program, from which it is looked: the zero value is of no use, Unchanged is that point itself.
type Registers struct {
	at   [16]Linear
	next Symbol
}

// Held is what a register held at the point that is looked from.
func Held(reg int8) Linear {
	return Linear{Terms: [2]Term{{Symbol(reg), 1}}, N: 1}
}

// Unchanged is where each register holds what it held.
func Unchanged() (regs Registers) {
	for i := range regs.at {
		regs.at[i] = Held(int8(i))
	}
	regs.next = unfollowed
	return regs
}

// At is what a register holds.
func (regs *Registers) At(reg int8) Linear { return regs.at[reg] }

// In is a function of registers, with what they hold.
func (regs *Registers) In(l Linear) (v Linear, ok bool) {
	v = Linear{Add: l.Add, Half: l.Half}
	for _, t := range l.Terms[:l.N] {
		reg, part, ok := t.Symbol.Register()
		if !ok {
			return v, false
		}
		held := regs.at[reg]
		switch part {
		case ZeroExtended:
			held = held.ZeroExtended()
		case SignExtended:
			held = held.SignExtended()
		}
		if v, ok = v.plus(held, t.Times); !ok {
			return v, false
		}
	}
	return v, true
}

// Apply runs instructions, one after the other: after it, regs are what the registers hold in terms
// of the same point as before.
func (regs *Registers) Apply(effects []Effect) {
	for i := range effects {
		regs.step(&effects[i])
	}
}

// ApplyRounds runs the instructions of a loop, nobody knows how often.
func (regs *Registers) ApplyRounds(effects []Effect) {
	once := Unchanged()
	once.Apply(effects)
	for reg := range regs.at {
		if !Held(int8(reg)).invariant(&once, x86.NoRegister) {
			regs.at[reg] = regs.fresh()
		}
	}
}

// Before is what registers hold before some instructions, in terms of what they hold behind them.
func Before(effects []Effect) (regs Registers) {
	regs = Unchanged()
	since := regs
	since.Apply(effects)
	for reg := range since.at {
		added, ok := Distance(since.at[reg], regs.at[reg], 64)
		if ok && added.IsConstant() {
			regs.at[reg].Add -= added.Add
			continue
		}
		if added, ok = Distance(since.at[reg], regs.at[reg], 32); ok && added.IsConstant() {
			regs.at[reg].Add, regs.at[reg].Half = -added.Add, true
		} else {
			regs.at[reg] = regs.fresh()
		}
	}
	return regs
}

func (regs *Registers) fresh() Linear {
	regs.next++
	return Linear{Terms: [2]Term{{regs.next, 1}}, N: 1}
}

// An Effect is what an instruction does to registers, whatever they hold.
type Effect struct {
	x86.Effects
	written    x86.Set
	movesStack bool
	calls      bool
}

// EffectOf prepares an instruction for those who follow it again and again. Cost: ten times that of
// applying it.
func EffectOf(in x86.Effects) Effect {
	e := Effect{Effects: in}
	if e.calls = e.Calls(); e.calls {
		e.written = x86.AllRegisters
	} else {
		delta, ok := e.StackDelta()
		e.written, e.movesStack = e.Written(), !ok || delta != 0
	}
	return e
}

func (regs *Registers) step(e *Effect) {
	to, value := int8(-1), Linear{}
	if e.written != 0 && !e.calls {
		to, value = regs.compute(&e.Effects)
	}
	for written := e.written; written != 0; written &= written - 1 {
		regs.at[bits.TrailingZeros16(uint16(written))] = regs.fresh()
	}
	if to >= 0 {
		regs.at[to] = value
	}
	if e.movesStack {
		regs.at[x86.RSP] = regs.fresh()
	}
}

// compute returns which register, all of it, an instruction writes with what is followed; -1: none.
func (regs *Registers) compute(e *x86.Effects) (to int8, value Linear) {
	size, to := e.Dst.Size, e.Dst.Reg
	if to < 0 || size != 4 && size != 8 {
		return -1, value
	}
	other, ok := Linear{Add: e.Imm}, true
	if !e.HasImm && e.Src.Reg >= 0 && e.Src.Reg < x86.AH {
		other = regs.at[e.Src.Reg]
	} else if !e.HasImm {
		ok = false // memory
	}
	switch e.Operation {
	case x86.Mov:
		value = other
	case x86.MovSX:
		value, ok = other.SignExtended(), ok && size == 8 && e.Src.Size == 4
	case x86.Xor:
		ok = e.Src == e.Dst
	case x86.Add, x86.Sub:
		if ok {
			value, ok = regs.at[to].plus(other, sign(e.Operation == x86.Sub))
		}
	case x86.Inc, x86.Dec:
		value, ok = regs.at[to].plus(Linear{Add: 1}, sign(e.Operation == x86.Dec))
	case x86.Shl:
		if ok = e.HasImm; ok {
			value, ok = Linear{}.plus(regs.at[to], 1<<(uint64(e.Imm)&uint64(8*size-1)))
		}
	case x86.Lea:
		value, ok = regs.address(e)
	default:
		ok = false
	}
	if !ok {
		return -1, value
	}
	return to, value.cut(size)
}

// address is what lea computes.
func (regs *Registers) address(e *x86.Effects) (value Linear, ok bool) {
	if e.Src.RIP || e.Elsewhere() {
		return value, false
	}
	value, ok = Linear{Add: e.Src.Disp}, true
	if e.Src.Base >= 0 {
		value, ok = value.plus(regs.at[e.Src.Base], 1)
	}
	if ok && e.Src.Index >= 0 {
		value, ok = value.plus(regs.at[e.Src.Index], int64(e.Src.Scale))
	}
	return value, ok
}

func sign(minus bool) int64 {
	if minus {
		return -1
	}
	return 1
}

// SignExtended is a value's low half with its sign above.
func (l Linear) SignExtended() Linear {
	if l.IsConstant() {
		return Linear{Add: int64(int32(l.Add))}
	}
	return l.half(SignExtended)
}

// ZeroExtended is a value's low half with zeroes above.
func (l Linear) ZeroExtended() Linear {
	if l.IsConstant() {
		return Linear{Add: int64(uint32(l.Add))}
	}
	return l.half(ZeroExtended)
}

// cut is what an operation of that many bytes, 8 or 4, leaves of a value.
func (l Linear) cut(size uint8) Linear {
	if size == 8 {
		return l
	}
	return l.ZeroExtended()
}

// half is a value of which only the low half is left.
func (l Linear) half(part Part) Linear {
	t := &l.Terms[0]
	if reg, _, ok := t.Symbol.Register(); ok && l.N == 1 && l.Add == 0 && t.Times == 1 {
		t.Symbol, l.Half = symbolOf(reg, part), false
	} else {
		l.Half = true
	}
	return l
}
