package sequitur

// check restores digram uniqueness for the digram whose left node is n: records it, or, when it
// occurs elsewhere without overlapping, replaces both (Larus 1999, figure 3).
func (g *builder) check(n uint32) {
	right := g.at(n).next
	a, b := g.at(n).value, g.at(right).value
	if isGuard(a) || isGuard(b) || g.at(right).next == g.rules[start].guard {
		// the last digram is checked last
		return
	}
	m := g.find(a, b)
	switch {
	case m == 0:
		g.digrams.insert(a, b, n)
	case m == n:
	case g.at(m).next == n:
		// m n right, all equal: the symbol before m may begin a digram that does not overlap n's
		if before := g.at(m).prev; g.at(before).value == a {
			g.match(n, g.move(m, before))
		}
	case right == m: // n m and m's right, all equal: likewise behind
		after := g.at(m).next
		if g.at(g.at(after).next).value == a {
			g.match(n, g.move(m, after))
		}
	default:
		g.match(n, m)
	}
}

// find returns the left node of the digram a b that is recorded or pending, or 0.
func (g *builder) find(a, b uint32) uint32 {
	if p := g.pending; p != 0 && g.at(p).value == a && g.at(g.at(p).next).value == b {
		return p
	}
	return g.digrams.find(&g.arena, a, b)
}

// forget takes the digram at n out of the record, if it is recorded there.
func (g *builder) forget(n uint32) {
	if g.pending == n {
		g.pending = 0
		return
	}
	a, b := g.at(n).value, g.at(g.at(n).next).value
	if !isGuard(a) && !isGuard(b) {
		g.digrams.remove(a, b, n)
	}
}

// move records at node to the digram that is recorded at node from, and returns to.
func (g *builder) move(from, to uint32) uint32 {
	a, b := g.at(to).value, g.at(g.at(to).next).value
	if g.pending == from {
		g.pending = 0
		g.digrams.insert(a, b, to)
	} else {
		g.digrams.move(a, b, from, to)
	}
	return to
}

// cut forgets the digram at left before the link to its right node goes. In a run of equal symbols
// that may have been the recorded one of digrams that overlap; then a neighbour must be recorded
// instead.
func (g *builder) cut(left uint32) {
	g.forget(left)
	v := g.at(left).value
	right := g.at(left).next
	if g.at(right).value != v || isGuard(v) {
		return
	}
	if before := g.at(left).prev; g.at(before).value == v {
		g.suspect(before)
	}
	if after := g.at(right).next; g.at(after).value == v {
		g.suspect(right)
	}
}

// suspect has the digram at n checked again before Append returns; last in, first out.
func (g *builder) suspect(n uint32) { g.suspects = append(g.suspects, n) }

// match makes the digrams at n and m, equal and not overlapping, one of which m is recorded: by a
// rule that is one of them, by lengthening a rule that occurs nowhere else, or by a new rule.
func (g *builder) match(n, m uint32) {
	a, b := g.at(n).value, g.at(g.at(n).next).value
	if r, ok := g.wholeBody(m); ok {
		g.replace(n, r)
		g.inlineEnds(r)
		return
	}
	if r, ok := g.wholeBody(n); ok {
		g.move(m, n)
		g.replace(m, r)
		g.inlineEnds(r)
		return
	}
	// A new rule for a b would leave a rule used only here with one use, to be inlined at once:
	// lengthen that rule instead.
	if a != b && g.usedTwice(a) {
		g.lengthenRight(a&ruleMask, n, m)
		return
	}
	if a != b && g.usedTwice(b) {
		g.lengthenLeft(b&ruleMask, n, m)
		return
	}
	r := g.newRule()
	x, y := g.take(a), g.take(b)
	guard := g.rules[r].guard
	g.link(guard, x)
	g.link(x, y)
	g.link(y, guard)
	g.use(a)
	g.use(b)
	g.move(m, x)
	g.replace(m, r)
	g.replace(n, r)
	g.inlineEnds(r)
}

// wholeBody reports whether the digram at n is the whole body of a rule, and of which.
func (g *builder) wholeBody(n uint32) (r uint32, ok bool) {
	before := g.at(n).prev
	v := g.at(before).value
	return v & ruleMask, isGuard(v) && g.at(g.at(n).next).next == before
}

func (g *builder) usedTwice(v uint32) bool {
	return isNonterminal(v) && g.rules[v&ruleMask].uses == 2
}

// replace puts rule r in the place of the digram at n, which is recorded elsewhere.
func (g *builder) replace(n, r uint32) {
	right := g.at(n).next
	before, after := g.at(n).prev, g.at(right).next
	g.cut(before)
	g.cut(right)
	g.unuse(g.at(n).value)
	g.unuse(g.at(right).value)
	g.giveBack(right)
	g.at(n).value = ruleBit | r
	g.rules[r].uses++
	g.link(n, after)
	g.suspect(n)
	g.suspect(before)
}

// inlineEnds restores rule utility: replacing a digram takes uses away from its two symbols only,
// and where one use is left it is an end of the body of r, the rule that replaced the digram.
func (g *builder) inlineEnds(r uint32) {
	guard := g.rules[r].guard
	g.inlineSingle(g.at(guard).next)
	g.inlineSingle(g.at(guard).prev)
}

// inlineSingle replaces the node n by the body of the rule that it names, if it is that rule's only
// use.
func (g *builder) inlineSingle(n uint32) {
	v := g.at(n).value
	if !isNonterminal(v) || g.rules[v&ruleMask].uses != 1 {
		return
	}
	guard := g.rules[v&ruleMask].guard
	first, last := g.at(guard).next, g.at(guard).prev
	before, after := g.at(n).prev, g.at(n).next
	g.cut(before)
	g.cut(n)
	g.link(before, first)
	g.link(last, after)
	g.giveBack(n)
	g.freeRule(v & ruleMask)
	g.suspect(last)
	g.suspect(before)
}

// lengthenRight lengthens rule r, whose only uses are n and m, by the symbol that follows both.
func (g *builder) lengthenRight(r, n, m uint32) {
	guard := g.rules[r].guard
	last := g.at(guard).prev
	moved := g.cutRight(m)
	dropped := g.cutRight(n)
	g.unuse(g.at(dropped).value)
	g.giveBack(dropped)
	g.link(last, moved)
	g.link(moved, guard)
	g.suspect(last)
	g.inlineSingle(moved)
}

// cutRight takes the symbol that follows n out of its body and returns its node.
func (g *builder) cutRight(n uint32) uint32 {
	right := g.at(n).next
	g.cut(right)
	g.forget(n)
	g.link(n, g.at(right).next)
	g.suspect(n)
	return right
}

// lengthenLeft lengthens rule r, whose only uses follow n and m, by the symbol before both.
func (g *builder) lengthenLeft(r, n, m uint32) {
	guard := g.rules[r].guard
	first := g.at(guard).next
	g.cutLeft(m)
	g.cutLeft(n)
	g.unuse(g.at(n).value)
	g.giveBack(n)
	g.link(guard, m)
	g.link(m, first)
	g.suspect(m)
	g.inlineSingle(m)
}

// cutLeft takes n out of its body.
func (g *builder) cutLeft(n uint32) {
	before := g.at(n).prev
	g.cut(before)
	g.forget(n)
	g.link(before, g.at(n).next)
	g.suspect(before)
}
