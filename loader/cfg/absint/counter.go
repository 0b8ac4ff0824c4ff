package absint

import (
	"math/bits"
	"slices"

	"wpptrace/loader/x86"
)

// A Counter is an induction variable of a block that jumps to itself: a register that each round
// changes by a constant, so that it gives the loop's trip count.
type Counter struct {
	Reg   int8
	Width int   // how many of its low bits count: 64 or 32
	Step  int64 // what is added in each round, modulo 2^Width; not 0
	// Exact says that the loop ends when the register, as it is compared in a round, equals Limit:
	// a function of registers that the block leaves alone, as they are on entry.
	Exact bool
	Limit Linear
	Lead  int64 // what has been added to the register when it is first compared
}

// mostStep bounds what is added in a round: so that no loop runs until 64 bits wrap around.
const mostStep = 1 << 16

// Counters returns what counts the rounds of a block that ends in a conditional jump to itself,
// which is taken for another round or not: first those that give the trip count before the loop
// begins, then those that do not wrap around.
func Counters(body []Effect, taken bool) (list []Counter) {
	after := Unchanged()
	after.Apply(body)
	test := exitTestOf(body, taken)
	var later []Counter
	for reg := range int8(len(after.at)) {
		for _, width := range []int{64, 32} {
			step, ok := Distance(after.at[reg], Held(reg), width)
			if reg == x86.RSP || !ok || !step.IsConstant() || step.Add == 0 ||
				step.Add < -mostStep || step.Add > mostStep {
				continue
			}
			c := Counter{Reg: reg, Width: width, Step: step.Add}
			if exact, ok := test.limit(c, &after); ok {
				list = append(list, exact)
			}
			if width == 64 || test.dependsOn(reg, &after) {
				later = append(later, c)
			}
		}
	}
	slices.SortStableFunc(later, func(a, b Counter) int { return b.Width - a.Width })
	return append(list, later...)
}

// An exitTest is what the jump at the end of a loop goes by: two values in terms of the registers
// at the beginning of the round.
type exitTest struct {
	known   bool
	a, b    Linear
	width   int
	unequal bool // the loop goes on while they differ
}

// exitTestOf finds what the jump that ends a loop goes by.
func exitTestOf(body []Effect, taken bool) (c exitTest) {
	last := len(body) - 1
	i := last - 1
	for ; i >= 0 && body[i].FlagsWritten()&^x86.DF == 0; i-- {
	}
	if i < 0 {
		return c
	}
	e := &body[i]
	if e.Dst.Mem || e.Src.Mem || e.Dst.Size < 4 {
		return c
	}
	regs := Unchanged()
	regs.Apply(body[:i])
	condition := body[last].Condition
	c.known, c.width = true, 8*int(e.Dst.Size)
	c.unequal = condition == x86.NotEqual && taken || condition == x86.Equal && !taken
	asksCarry := condition == x86.Below || condition == x86.AboveOrEqual ||
		condition == x86.BelowOrEqual || condition == x86.Above
	switch operation := e.Operation; {
	case operation == x86.Cmp && e.HasImm:
		c.a, c.b = regs.at[e.Dst.Reg], Linear{Add: e.Imm}
	case operation == x86.Cmp:
		c.a, c.b = regs.at[e.Dst.Reg], regs.at[e.Src.Reg]
	case operation == x86.Test && e.Src == e.Dst:
		c.a = regs.at[e.Dst.Reg]
	case (operation == x86.Add || operation == x86.Sub) &&
		e.HasImm, (operation == x86.Inc || operation == x86.Dec) && !asksCarry:
		// which these leave
		regs.step(e)
		c.a = regs.at[e.Dst.Reg]
	default:
		c.known = false
	}
	return c
}

// limit is the counter as one that gives the trip count before the first round, if it does.
func (t *exitTest) limit(c Counter, after *Registers) (Counter, bool) {
	if !t.known || !t.unequal || t.width != c.Width {
		return c, false
	}
	for _, sides := range [][2]Linear{{t.a, t.b}, {t.b, t.a}} {
		lead, ok := Distance(sides[0], Held(c.Reg), t.width)
		if ok && lead.IsConstant() && sides[1].invariant(after, x86.NoRegister) &&
			!(t.width == 64 && sides[1].Half) {
			c.Exact, c.Limit, c.Lead = true, sides[1], lead.Add
			return c, true
		}
	}
	return c, false
}

// invariant reports whether a value is the same in each round of a loop, but for what one register
// has to do with it.
func (l Linear) invariant(after *Registers, but int8) bool {
	for _, t := range l.Terms[:l.N] {
		reg, _, ok := t.Symbol.Register()
		if !ok || reg != but && after.at[reg] != Held(reg) {
			return false
		}
	}
	return true
}

// dependsOn reports whether the loop goes on by nothing but the low 32 bits of a register and what
// stays the same: then it ends before the register has the same value again, or never.
func (t *exitTest) dependsOn(reg int8, after *Registers) bool {
	return t.known && t.width == 32 && t.a.modulo32().invariant(after, reg) &&
		t.b.modulo32().invariant(after, reg)
}

// Beginning is what a counter begins with, or its distance to its limit if it is Exact, where the
// registers hold this before the loop; ok is false if that is no Linear.
func (c *Counter) Beginning(regs *Registers) (v Linear, ok bool) {
	if !c.Exact {
		return Distance(regs.at[c.Reg], Linear{}, c.Width)
	}
	limit, ok := regs.In(c.Limit)
	if !ok {
		return v, false
	}
	return Distance(limit, regs.at[c.Reg], c.Width)
}

// RoundsTo returns how many rounds an Exact loop runs whose Limit is more, by that distance, than
// the register on entry. Of both the low bits given are known.
func (c *Counter) RoundsTo(distance uint64, known int) (n uint64, ok bool) {
	n, ok = c.steps(distance-uint64(c.Lead), known)
	return n + 1, ok
}

// RoundsBetween returns how many rounds a loop ran that has added distance to the register.
func (c *Counter) RoundsBetween(distance uint64, known int) (n uint64, ok bool) {
	n, ok = c.steps(distance, known)
	if n == 0 && ok && c.Width == 32 {
		n = 1 << (32 - bits.TrailingZeros32(uint32(c.Step)))
	}
	return n, ok && n > 0
}

// RoundsSince returns how many rounds of a loop have begun in which distance has been added to the
// register since the first did. limit is RoundsTo's, if the loop is Exact. ok is false, too, if the
// register may have wrapped around: it does in loops that only a signal ends.
func (c *Counter) RoundsSince(distance, limit uint64, known int) (n uint64, ok bool) {
	n, ok = c.steps(distance, known)
	if c.Width == 64 {
		return n + 1, ok
	}
	most, ends := c.RoundsTo(limit, known)
	return n + 1, ok && c.Exact && ends && n < most
}

// steps returns the least number of steps that make a distance.
func (c *Counter) steps(distance uint64, known int) (n uint64, ok bool) {
	if c.Width == 64 { // all that memory is would not make as many rounds as wrap around
		up := 64 - known
		d := int64(distance<<up) >> up
		return uint64(d / c.Step), d%c.Step == 0 && d/c.Step >= 0
	}
	twos := bits.TrailingZeros32(uint32(c.Step))
	n = distance & (1<<32 - 1) >> twos * inverse(uint64(uint32(c.Step)>>twos)) & (1<<(32-twos) - 1)
	return n, uint32(distance)&(1<<twos-1) == 0
}

// inverse of an odd number modulo 2^64, by Newton's iteration.
func inverse(odd uint64) uint64 {
	x := odd
	for range 6 {
		x *= 2 - odd*x
	}
	return x
}
