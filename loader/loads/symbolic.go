package loads

import (
	"slices"

	"wpptrace/loader/x86"
)

// A value is what a register or a place in memory holds, in terms of the hit: a node plus a
// constant.
type value struct {
	node int32
	add  int64
}

// The first nodes. What is computed from what is not known is not known.
const (
	nothing  int32 = iota // 0: constants are it plus something
	unknown               // not known
	firstReg              // the general registers
	biasNode = firstReg + 16
	fsNode   = biasNode + 1
	fixed    = fsNode + 1
)

func constant(c int64) value     { return value{nothing, c} }
func held(reg int) value         { return value{firstReg + int32(reg), 0} }
func (v value) isKnown() bool    { return v.node != unknown }
func (v value) isConstant() bool { return v.node == nothing }
func (v value) plus(c int64) value {
	if !v.isKnown() {
		return v
	}
	return value{v.node, v.add + c}
}

// A node is how a value is made of others; equal ones are one. op is that of the step that makes
// it; of Fetch a is the address of size bytes in memory, as they are at the hit.
type node struct {
	op         Op
	size, sign uint8
	scale      uint8
	asks       int32 // of either: which of nodes.asked
	a, b       value
}

// either is the op of a value that is a if a condition holds, else b.
const either Op = 255

// nodes are those of the programs of a hit.
type nodes struct {
	list   []node
	number map[node]int32
	asked  []question
}

// A question is whether a condition holds.
type question struct {
	flags compared
	code  uint8 // condition code
}

func (ns *nodes) reset() {
	if ns.number == nil {
		ns.number = map[node]int32{}
		ns.list = make([]node, fixed)
	}
	clear(ns.number)
	ns.list, ns.asked = ns.list[:fixed], ns.asked[:0]
}

func (ns *nodes) of(n node) value {
	if !n.a.isKnown() || !n.b.isKnown() {
		return value{node: unknown}
	}
	id, ok := ns.number[n]
	if !ok {
		id = int32(len(ns.list))
		ns.list = append(ns.list, n)
		ns.number[n] = id
	}
	return value{id, 0}
}

// sum is a + b<<scale.
func (ns *nodes) sum(a, b value, scale uint8) value {
	add := a.add + b.add<<scale
	a.add, b.add = 0, 0
	switch {
	case !a.isKnown() || !b.isKnown():
		return value{node: unknown}
	case b.isConstant():
		return a.plus(add)
	case a.isConstant() && scale == 0:
		return b.plus(add)
	case scale == 0 && (a.node > b.node):
		a, b = b, a
	}
	return ns.of(node{op: Sum, size: 8, scale: scale, a: a, b: b}).plus(add)
}

// width is in how many low bytes a value lies for sure.
func (ns *nodes) width(v value) uint8 {
	if v.isConstant() {
		for _, size := range [...]uint8{1, 2, 4} {
			if truncated(uint64(v.add), size) == uint64(v.add) {
				return size
			}
		}
		return 8
	}
	if v.node < fixed || v.add != 0 {
		return 8
	}
	if n := &ns.list[v.node]; n.sign == 0 {
		return n.size
	}
	return 8
}

// low is the low bytes of a value, zeroes above.
func (ns *nodes) low(v value, size uint8) value {
	switch {
	case !v.isKnown() || size == 8 || ns.width(v) <= size:
		return v
	case v.isConstant():
		return constant(int64(truncated(uint64(v.add), size)))
	case v.node >= fixed:
		switch n := ns.list[v.node]; n.op {
		case Sum:
			if n.size == 8 {
				n.a.add, n.size = v.add, size
				return ns.of(n)
			}
		case Fetch: // the low bytes of what memory holds; of a part of them nothing else is read
			if v.add == 0 && n.sign == 0 {
				n.size = size
				return ns.of(n)
			}
		}
	}
	return ns.of(node{op: Sum, size: size, a: v})
}

// signed is the low bytes of a value, their sign above.
func (ns *nodes) signed(v value, size uint8) value {
	switch {
	case !v.isKnown() || size == 8 || ns.width(v) < size:
		return v
	case v.isConstant():
		return constant(int64(signed(uint64(v.add), size)))
	case v.node >= fixed && v.add == 0:
		if n := ns.list[v.node]; n.op == Fetch && n.size == size {
			n.sign = 1
			return ns.of(n)
		}
	}
	return ns.of(node{op: Extend, size: size, sign: 1, a: v})
}

// compute is an operation on the low bytes of two values, zeroes above the result.
func (ns *nodes) compute(op Op, a, b value, size uint8) value {
	switch {
	case !a.isKnown() || !b.isKnown():
		return value{node: unknown}
	case a.isConstant() && b.isConstant():
		s := Step{Op: op, Size: size}
		return constant(int64(truncated(computed(&s, uint64(a.add), uint64(b.add)), size)))
	case op == Sum:
		return ns.low(ns.sum(a, b, 0), size)
	case op == Subtract && b.isConstant():
		return ns.low(a.plus(-b.add), size)
	case (op == Subtract || op == Xor) && a == b:
		return constant(0)
	case op == Subtract && size == 8:
		add := a.add - b.add
		a.add, b.add = 0, 0
		if a == b {
			return constant(add)
		}
		return ns.of(node{op: op, size: 8, a: a, b: b}).plus(add)
	case op == ShiftLeft && size == 8 && b.isConstant() && uint64(b.add) <= 3:
		return ns.sum(constant(0), a, uint8(b.add))
	case op == And && b.isConstant() && b.add == 0xff:
		return ns.low(a, 1)
	case op == And && b.isConstant() && b.add == 0xffff:
		return ns.low(a, 2)
	}
	return ns.of(node{op: op, size: size, a: a, b: b})
}

// rotated is the low bytes of a value, moved up by so many bits, those that leave come in below.
func (ns *nodes) rotated(v value, by int64, size uint8) value {
	width := 8 * int64(size)
	if by &= width - 1; by == 0 {
		return ns.low(v, size)
	}
	return ns.compute(Or, ns.compute(ShiftLeft, v, constant(by), size),
		ns.compute(ShiftRight, v, constant(width-by), size), size)
}

// either is one of two values, by a condition.
func (ns *nodes) either(flags *compared, code uint8, a, b value) value {
	if holds, known := flags.decide(code); known {
		if holds {
			return a
		}
		return b
	}
	if _, _, _, ok := flags.branch(code); !ok {
		return value{node: unknown}
	}
	q := question{*flags, code}
	asks := slices.Index(ns.asked, q)
	if asks < 0 {
		asks = len(ns.asked)
		ns.asked = append(ns.asked, q)
	}
	return ns.of(node{op: either, size: max(ns.width(a), ns.width(b)), asks: int32(asks),
		a: a, b: b})
}

// A compared is what the flags are made of.
type compared struct {
	how  comparison
	a, b value
	size uint8
}

// A comparison is how.
type comparison uint8

const (
	byNothing comparison = iota // that is known
	byDistance
	byBits   // that two have in common
	byResult // of arithmetic: it is a, and only whether that is zero and its sign are known
	byBit    // of a, that b has: the carry flag is it, nothing else is known
)

// Condition codes that package x86 does not name, without the lowest bit.
const (
	ifSign   = 8
	ifParity = 10
)

// branch is the step that asks for a condition, but for its cells; ok is false if it is not known
// by the flags. x and y are what it compares.
func (c *compared) branch(code uint8) (s Step, x, y value, ok bool) {
	if c.how == byNothing || !c.a.isKnown() || !c.b.isKnown() || code > 15 ||
		code&^1 == ifParity {
		return s, x, y, false
	}
	s = Step{Op: Branch, Size: c.size, Condition: code}
	switch c.how {
	case byBits:
		s.Sign = 1
	case byResult:
		s.Sign = 1
		if asks := code &^ 1; asks != x86.Equal && asks != ifSign {
			return s, x, y, false
		}
	case byBit:
		if code&^1 != x86.Below {
			return s, x, y, false
		}
		s.Sign, s.Condition = 1, x86.NotEqual^code&1
	}
	return s, c.a, c.b, true
}

// decide says whether a condition holds, where that is known.
func (c *compared) decide(code uint8) (holding, known bool) {
	s, x, y, ok := c.branch(code)
	if !ok || !x.isConstant() || !y.isConstant() {
		return false, false
	}
	return holds(&s, uint64(x.add), uint64(y.add)), true
}

// A store is one of the routes own.
type store struct {
	at   value
	size uint8
	is   value  // its low bytes
	pc   uint64 // of the instruction; what it has changed follows from what is there behind it
}

// A state is what is known in terms of the hit, at one point behind it.
type state struct {
	regs   [16]value
	flags  compared
	stores []store
	calls  []place  // where calls that were made since the hit go on
	cases  []choice // indices of switches that were checked
	passed bool     // a function that only reads, and is not traced, has returned
	// what the last return took for its address
	returns value
}

// forget has nothing be known that external code may change, which is called and returns.
func (s *state) forget() {
	for reg := range s.regs {
		if !kept.Has(int8(reg)) {
			s.regs[reg] = value{node: unknown}
		}
	}
	s.regs[x86.RSP] = s.regs[x86.RSP].plus(8)
	s.flags, s.stores, s.cases = compared{}, nil, nil
}

// goBack returns from the last of the calls; false: there is none. What is called next takes no
// place in a list that other states have, too.
func (s *state) goBack() (to place, ok bool) {
	n := len(s.calls)
	if n == 0 {
		return to, false
	}
	to, s.calls = s.calls[n-1], s.calls[:n-1:n-1]
	return to, true
}

// A choice is where the index of a switch was at its check.
type choice struct {
	routine, check int
	index          value
}

func (s *state) reset() {
	*s = state{}
	for i := range s.regs {
		s.regs[i] = held(i)
	}
}

// address is where a memory operand lies.
func (ns *nodes) address(s *state, o *x86.Operand) value {
	v := constant(o.Disp)
	if o.RIP {
		v = value{biasNode, o.Disp}
	}
	if o.Base >= 0 {
		v = s.regs[o.Base].plus(o.Disp)
	}
	if o.Index >= 0 {
		v = ns.sum(v, s.regs[o.Index], scaleShift(o.Scale))
	}
	return v
}

func scaleShift(scale uint8) (shift uint8) {
	for ; scale > 1; scale >>= 1 {
		shift++
	}
	return shift
}

// register is what an operand that is a register holds, zeroes above.
func (ns *nodes) register(s *state, o *x86.Operand) value {
	if o.Reg >= x86.AH {
		return ns.low(ns.compute(ShiftRight, s.regs[o.Reg-x86.AH], constant(8), 8), 1)
	}
	return ns.low(s.regs[o.Reg], min(o.Size, 8))
}

// set writes a register.
func (ns *nodes) set(s *state, o *x86.Operand, v value) {
	switch {
	case o.Reg >= x86.AH:
		s.regs[o.Reg-x86.AH] = value{node: unknown}
	case o.Size == 8 || o.Size == 4:
		s.regs[o.Reg] = ns.low(v, o.Size)
	case o.Size == 1 || o.Size == 2:
		above := constant(-1 << (8 * o.Size))
		s.regs[o.Reg] = ns.compute(Or, ns.compute(And, s.regs[o.Reg], above, 8),
			ns.low(v, o.Size), 8)
	default:
		s.regs[o.Reg] = value{node: unknown}
	}
}

// forwarded is what the route's own stores have left at a place: found is false if it is what
// memory holds at the hit. Places of which it is not known whether they are the same are taken for
// different ones: what comes of it is a read that is of no use.
func (s *state) forwarded(ns *nodes, at value, size uint8) (v value, found bool) {
	for i := len(s.stores) - 1; i >= 0; i-- {
		w := &s.stores[i]
		d := at.add - w.at.add
		switch {
		case w.at.node != at.node || d >= int64(w.size) || d+int64(size) <= 0:
		case d == 0 && size <= w.size:
			return ns.low(w.is, size), true
		default:
			return value{node: unknown}, true
		}
	}
	return value{}, false
}

// covers reports whether the last of the route's own stores to a place has all of it.
func (s *state) covers(at value, size uint8) bool {
	for i := len(s.stores) - 1; i >= 0; i-- {
		w := &s.stores[i]
		d := at.add - w.at.add
		if w.at.node == at.node && d < int64(w.size) && d+int64(size) > 0 {
			return d >= 0 && d+int64(size) <= int64(w.size)
		}
	}
	return false
}
