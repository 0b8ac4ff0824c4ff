package sequitur

// Following makes long repetitions cheap. SEQUITUR, when it meets a digram again, makes a rule of
// the two occurrences and then lengthens that rule symbol by symbol, each time at the price of
// several digrams. But of a digram there is one other occurrence only, so what lengthens the rule
// is known: the symbols that follow there. A grammar that follows an occurrence compares them with
// those that arrive, into the bodies of the rules that they name, and changes nothing until the
// repetition ends. Then the rule is made at once: of the repeated nodes, as they stand.

// A level is how far a body, or what follows the digram that began the repetition, has been
// repeated.
type level struct {
	first  uint32 // node
	cursor uint32 // the next node to be repeated
	n      int    // nodes repeated
}

// A following is a repetition that has begun and may go on. The first two symbols of the repetition
// stand at the end of the start rule, the others nowhere yet.
type following struct {
	// the occurrence, then the rules that its next symbol begins with; none: nothing is followed
	levels []level
	tail   uint32 // the first of the two nodes at the end of the start rule
}

// follow begins to follow the occurrence of the last digram, whose left node is tail, at node m.
func (g *builder) follow(tail, m uint32) {
	g.following.tail = tail
	g.following.levels = append(g.following.levels, level{m, g.at(g.at(m).next).next, 2})
}

// repeats takes a symbol if it is the next of what is followed.
func (g *builder) repeats(symbol uint32) bool {
	f := &g.following
	top := &f.levels[len(f.levels)-1]
	for {
		v := g.at(top.cursor).value
		if v == symbol {
			break
		}
		if !isNonterminal(v) {
			return false
		}
		first := g.at(g.rules[v&ruleMask].guard).next
		f.levels = append(f.levels, level{first, first, 0})
		top = &f.levels[len(f.levels)-1]
	}
	for {
		top.n++
		top.cursor = g.at(top.cursor).next
		if len(f.levels) == 1 {
			if top.cursor == f.tail || isGuard(g.at(top.cursor).value) {
				g.endRepetition()
				g.settle()
			}
			return true
		}
		if !isGuard(g.at(top.cursor).value) {
			return true
		}
		f.levels = f.levels[:len(f.levels)-1]
		top = &f.levels[len(f.levels)-1]
	}
}

// endRepetition puts what has been repeated into rules, and these to the end of the start rule.
func (g *builder) endRepetition() {
	f := &g.following
	inner := f.levels[1:]
	n := f.tail
	right := g.at(n).next
	before := g.at(n).prev
	a, b := g.at(n).value, g.at(right).value
	guard := g.rules[start].guard
	// the tail
	g.cut(before)
	g.giveBack(right)
	g.link(n, guard)
	r := g.ruleOf(&f.levels[0])
	g.at(n).value = ruleBit | r
	g.rules[r].uses++
	g.unuse(a)
	g.unuse(b)
	g.suspect(before)
	for i := range inner {
		l := &inner[i]
		if l.n == 0 {
			continue
		}
		v := g.at(l.first).value
		if l.n > 1 {
			v = ruleBit | g.ruleOf(l)
		}
		last := g.at(guard).prev
		x := g.take(v)
		g.use(v)
		g.link(last, x)
		g.link(x, guard)
		g.suspect(last)
	}
	f.levels = f.levels[:0]
	first := g.at(g.rules[r].guard).next
	second := g.at(first).next
	g.inlineSingle(second)
	g.inlineSingle(first)
}

// ruleOf returns a rule whose body is what has been repeated of a level: the one that it is the
// whole body of, or a new one in its place.
func (g *builder) ruleOf(l *level) uint32 {
	before, after := g.at(l.first).prev, l.cursor
	if v := g.at(before).value; isGuard(v) && before == after {
		return v & ruleMask
	}
	last := g.at(after).prev
	g.cut(before)
	g.cut(last)
	r := g.newRule()
	guard := g.rules[r].guard
	x := g.take(ruleBit | r)
	g.rules[r].uses++
	g.link(before, x)
	g.link(x, after)
	g.link(guard, l.first)
	g.link(last, guard)
	g.suspect(x)
	g.suspect(before)
	return r
}

// settle checks what is suspect, and the last digram of the start rule after all others: what that
// repeats is followed.
func (g *builder) settle() {
	for again := true; again; again = g.checkLast() {
		for len(g.suspects) > 0 {
			n := g.suspects[len(g.suspects)-1]
			g.suspects = g.suspects[:len(g.suspects)-1]
			g.check(n)
		}
	}
}

// checkLast restores digram uniqueness for the last digram. It reports whether others may be
// suspect then.
func (g *builder) checkLast() bool {
	right := g.at(g.rules[start].guard).prev
	n := g.at(right).prev
	a, b := g.at(n).value, g.at(right).value
	if isGuard(a) || isGuard(b) {
		return false
	}
	m := g.find(a, b)
	switch {
	case m == 0:
		if p := g.pending; p != 0 {
			g.digrams.insert(g.at(p).value, g.at(g.at(p).next).value, p)
		}
		g.pending = n
		return false
	case m == n:
		return false
	case g.at(m).next == n:
		// m n right, all equal: the symbol before m may begin a digram that does not overlap n's
		if before := g.at(m).prev; g.at(before).value == a {
			g.match(n, g.move(m, before))
			return true
		}
		return false
	}
	after := g.at(g.at(m).next).next
	if after == n || isGuard(g.at(after).value) {
		g.match(n, m)
		return true
	}
	g.follow(n, m)
	return false
}
