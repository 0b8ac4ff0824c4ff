package sequitur

import "unsafe"

// A builder is the rules, and keeps both invariants after every symbol that is appended: digram
// uniqueness and rule utility. What it appends has been folded and queued: see Grammar.
type builder struct {
	arena

	rules     []rule
	freeRules []uint32

	digrams digramTable
	// pending is the left node of the start rule's last digram while that is not in the table yet,
	// or 0. Most last digrams are replaced by the next symbol; so they never enter the table.
	pending uint32

	// suspects are left nodes of digrams whose uniqueness must be checked again. A node freed
	// meanwhile is harmless: check sees that it is no digram, or checks another digram in vain.
	suspects []uint32

	following following

	fetched uint32 // means nothing but that the compiler cannot leave out what fetch loads
}

// A node is a symbol in the doubly linked body of a rule. Bodies are rings closed by a guard node.
// Node 0 is no node.
//
//	value < 2^31           a terminal
//	value = ruleBit + r    rule r
//	value = guardBits + r  the guard of rule r, r < 2^30
type node struct {
	value, prev, next uint32
}

const (
	guardBits uint32 = 3 << 30
	ruleMask  uint32 = 1<<30 - 1
	freeValue        = ^uint32(0) // looks like a guard, so that a free node is never a digram's
)

func isGuard(v uint32) bool       { return v >= guardBits }
func isNonterminal(v uint32) bool { return v>>30 == 2 }

// A rule is found through its guard; uses counts the nodes that name it.
type rule struct {
	guard uint32 // 0: the rule does not exist
	uses  uint32
}

// start is the number of the start rule.
const start = 0

func newBuilder() builder {
	g := builder{digrams: newDigramTable()}
	g.take(freeValue) // node 0 is no node
	g.live = 0
	g.newRule()
	return g
}

// release gives the memory back at once.
func (g *builder) release() {
	release(g.nodes)
	release(g.digrams.slots)
}

// appendAll appends symbols, queueSize at most.
func (g *builder) appendAll(symbols []uint32) {
	if len(g.following.levels) == 0 { // else symbols are compared, and few digrams looked for
		g.fetch(symbols)
	}
	for _, symbol := range symbols {
		g.append(symbol)
	}
}

// fetch brings what will be looked at for the digrams of symbols into the cache: of memory, each
// digram's is another place, and the time goes into waiting for them, which is done for all at once
// here.
func (g *builder) fetch(symbols []uint32) {
	var recorded [queueSize]uint32
	for i := 1; i < len(symbols); i++ {
		recorded[i] = g.digrams.firstGuess(symbols[i-1], symbols[i])
	}
	for _, n := range recorded {
		g.fetched += g.at(g.at(g.at(n).next).next).value
	}
}

func (g *builder) append(terminal uint32) {
	for len(g.following.levels) > 0 {
		if g.repeats(terminal) {
			return
		}
		g.endRepetition()
		g.settle()
	}
	g.push(terminal)
	g.settle()
}

// push puts a symbol at the end of the start rule.
func (g *builder) push(symbol uint32) {
	guard := g.rules[start].guard
	n := g.take(symbol)
	g.link(g.at(guard).prev, n)
	g.link(n, guard)
}

// endRepetitions ends what is being followed.
func (g *builder) endRepetitions() {
	for len(g.following.levels) > 0 {
		g.endRepetition()
		g.settle()
	}
}

// numRules is the number of rules, the start rule included.
func (g *builder) numRules() int { return len(g.rules) - len(g.freeRules) }

// bytes is the memory that is held.
func (g *builder) bytes() uint64 {
	return uint64(g.used)*uint64(unsafe.Sizeof(node{})) +
		uint64(cap(g.rules))*uint64(unsafe.Sizeof(rule{})) +
		g.digrams.bytes() +
		uint64(cap(g.freeRules)+cap(g.suspects))*4
}

// bodies copies the bodies of all rules, in the order of Grammar.Rules.
func (g *builder) bodies() [][]uint32 {
	bodies := make([][]uint32, 1, g.numRules())
	arena := make([]uint32, 0, g.live-g.numRules())
	number := make([]uint32, len(g.rules)) // by internal rule number; 0: not met yet
	// A frame is a body being copied: where its symbols begin in the arena, and the next one to
	// look into.
	type frame struct{ at, end int }
	copyBody := func(r uint32) frame {
		at := len(arena)
		guard := g.rules[r].guard
		for n := g.at(guard).next; n != guard; n = g.at(n).next {
			arena = append(arena, g.at(n).value)
		}
		return frame{at, len(arena)}
	}
	first := copyBody(start)
	bodies[0] = arena[first.at:first.end:first.end]
	for stack := []frame{first}; len(stack) > 0; {
		top := &stack[len(stack)-1]
		if top.at == top.end {
			stack = stack[:len(stack)-1]
			continue
		}
		v := &arena[top.at]
		top.at++
		if !isNonterminal(*v) {
			continue
		}
		r := *v & ruleMask
		if number[r] == 0 {
			number[r] = uint32(len(bodies))
			body := copyBody(r)
			bodies = append(bodies, arena[body.at:body.end:body.end])
			stack = append(stack, body)
		}
		*v = RuleSymbol(int(number[r]))
	}
	return bodies
}

func (g *builder) link(left, right uint32) {
	g.at(left).next = right
	g.at(right).prev = left
}

// newRule returns the number of a new rule with an empty body.
func (g *builder) newRule() uint32 {
	var r uint32
	if k := len(g.freeRules); k > 0 {
		r = g.freeRules[k-1]
		g.freeRules = g.freeRules[:k-1]
	} else {
		r = uint32(len(g.rules))
		g.rules = appendTightly(g.rules, rule{})
	}
	guard := g.take(guardBits | r)
	g.link(guard, guard)
	g.rules[r] = rule{guard: guard}
	return r
}

func (g *builder) freeRule(r uint32) {
	g.giveBack(g.rules[r].guard)
	g.rules[r] = rule{}
	g.freeRules = append(g.freeRules, r)
}

// use and unuse count a node that names a rule; terminals have no count.
func (g *builder) use(v uint32) {
	if isNonterminal(v) {
		g.rules[v&ruleMask].uses++
	}
}

func (g *builder) unuse(v uint32) {
	if isNonterminal(v) {
		g.rules[v&ruleMask].uses--
	}
}
