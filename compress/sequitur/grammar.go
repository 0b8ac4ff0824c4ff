package sequitur

import (
	"runtime"
	"unsafe"
)

// In bodies, as Rules returns them, a symbol below ruleBit is a terminal; one with ruleBit set
// names a rule.
const ruleBit uint32 = 1 << 31

// MaxTerminal is the largest symbol that may be appended, MaxFoldingTerminal where runs are folded:
// those above stand for runs.
const (
	MaxTerminal        = ruleBit - 1
	MaxFoldingTerminal = MaxTerminal / 2
)

// IsRule reports whether a symbol of a body names a rule, not a terminal.
func IsRule(v uint32) bool { return v&ruleBit != 0 }

// RuleOf returns the number of the rule that a symbol of a body names.
func RuleOf(v uint32) int { return int(v &^ ruleBit) }

// RuleSymbol returns the symbol that names a rule in a body.
func RuleSymbol(rule int) uint32 { return uint32(rule) | ruleBit }

// A Grammar is a SEQUITUR grammar under construction. One goroutine uses it at a time.
type Grammar struct {
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
	runs      *runs // nil: runs are not folded

	queue   []uint32 // accepted, but not in the grammar yet
	fetched uint32   // means nothing but that the compiler cannot leave out what fetch loads

	length uint64
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

// queueSize is how many symbols are appended together: their digrams are fewer than what a
// processor waits for at a time.
const queueSize = 32

// start is the number of the start rule.
const start = 0

// New returns the grammar of the empty stream.
func New() *Grammar {
	g := &Grammar{digrams: newDigramTable(), queue: make([]uint32, 0, queueSize)}
	g.take(freeValue) // node 0 is no node
	g.live = 0
	g.newRule()
	runtime.SetFinalizer(g, (*Grammar).Release)
	return g
}

// NewFolding returns the grammar of the empty stream, in which a run of equal symbols will be one
// symbol. Where there are runs that takes less time, much less where they are long, and in most
// cases the grammar is smaller: docs/architecture.md has figures. Digrams are unique in the grammar
// of runs; what Rules adds to derive these may repeat some. NumRules and Symbols count the grammar
// of runs.
func NewFolding() *Grammar {
	g := New()
	g.runs = &runs{}
	return g
}

// Release gives the memory of a grammar back at once. The grammar must not be used any more. One
// that is not released is so when nothing refers to it.
func (g *Grammar) Release() {
	runtime.SetFinalizer(g, nil)
	release(g.nodes)
	release(g.digrams.slots)
	*g = Grammar{}
}

// Append appends a terminal, at most MaxTerminal (MaxFoldingTerminal), to the stream. It takes
// amortised constant time.
func (g *Grammar) Append(terminal uint32) {
	g.accept(terminal)
	runtime.KeepAlive(g)
}

// AppendRun appends a terminal, of those that Append takes, so many times.
// Where runs are folded it takes as many steps as there are 2^32 in them.
func (g *Grammar) AppendRun(terminal uint32, times uint64) {
	for times > 0 {
		g.accept(terminal)
		if times--; g.runs != nil && times > 0 {
			n := g.runs.lengthen(times)
			g.length += n
			times -= n
		}
	}
	runtime.KeepAlive(g)
}

// AppendAll appends terminals in order.
func (g *Grammar) AppendAll(terminals []uint32) {
	for _, t := range terminals {
		g.accept(t)
	}
	runtime.KeepAlive(g)
}

// accept counts a terminal, folds it, and puts it into the queue.
func (g *Grammar) accept(terminal uint32) {
	if terminal > MaxTerminal || g.runs != nil && terminal > MaxFoldingTerminal {
		panic("sequitur: symbol is no terminal")
	}
	g.length++
	if g.runs != nil {
		var ok bool
		if terminal, ok = g.runs.take(terminal); !ok {
			return
		}
	}
	g.enqueue(terminal)
}

func (g *Grammar) enqueue(symbol uint32) {
	g.queue = append(g.queue, symbol)
	if len(g.queue) == cap(g.queue) {
		g.drain()
	}
}

// drain appends what is in the queue.
func (g *Grammar) drain() {
	if len(g.following.levels) == 0 { // else symbols are compared, and few digrams looked for
		g.fetch(g.queue)
	}
	for _, symbol := range g.queue {
		g.append(symbol)
	}
	g.queue = g.queue[:0]
}

// fetch brings what will be looked at for the digrams of symbols into the cache: of memory, each
// digram's is another place, and the time goes into waiting for them, which is done for all at once
// here.
func (g *Grammar) fetch(symbols []uint32) {
	var recorded [queueSize]uint32
	for i := 1; i < len(symbols); i++ {
		recorded[i] = g.digrams.firstGuess(symbols[i-1], symbols[i])
	}
	for _, n := range recorded {
		g.fetched += g.at(g.at(g.at(n).next).next).value
	}
}

func (g *Grammar) append(terminal uint32) {
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
func (g *Grammar) push(symbol uint32) {
	guard := g.rules[start].guard
	n := g.take(symbol)
	g.link(g.at(guard).prev, n)
	g.link(n, guard)
}

// flush ends what is being followed, and the last run.
func (g *Grammar) flush() {
	if g.runs != nil {
		if symbol, ok := g.runs.end(); ok {
			g.enqueue(symbol)
		}
	}
	g.drain()
	for len(g.following.levels) > 0 {
		g.endRepetition()
		g.settle()
	}
}

// Length returns the number of terminals appended.
func (g *Grammar) Length() uint64 { return g.length }

// NumRules returns the number of rules, the start rule included.
func (g *Grammar) NumRules() int {
	g.flush()
	return len(g.rules) - len(g.freeRules)
}

// Symbols returns the number of right-hand-side symbols of all rules.
func (g *Grammar) Symbols() int {
	rules := g.NumRules()
	return g.live - rules
}

// Bytes returns the memory that the grammar holds, to tell when to release it. Where memory cannot
// grow in place, on systems other than Linux, it takes twice that for a moment while it grows. It
// is cheap.
func (g *Grammar) Bytes() uint64 {
	return uint64(g.used)*uint64(unsafe.Sizeof(node{})) +
		uint64(cap(g.rules))*uint64(unsafe.Sizeof(rule{})) +
		g.digrams.bytes() +
		uint64(cap(g.freeRules)+cap(g.suspects)+cap(g.queue))*4 +
		g.runs.bytes()
}

// UnfoldingBytes returns how much memory Rules takes at most, for a moment, to derive runs, besides
// the copy. It is cheap.
func (g *Grammar) UnfoldingBytes() uint64 { return g.runs.unfoldingBytes() }

// Rules returns a copy of the bodies of all rules: the start rule first, the others in the order of
// their first use when bodies are read depth first, those that derive runs in any. IsRule and
// RuleOf tell a body's symbols apart. It takes time and memory in proportion to the grammar, not to
// the stream, and the copy is the caller's while appending goes on.
func (g *Grammar) Rules() [][]uint32 {
	g.flush()
	bodies := make([][]uint32, 1, g.NumRules())
	arena := make([]uint32, 0, g.Symbols())
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
	runtime.KeepAlive(g)
	if g.runs != nil && len(g.runs.all) > 0 {
		return g.runs.unfold(bodies)
	}
	return bodies
}

func (g *Grammar) link(left, right uint32) {
	g.at(left).next = right
	g.at(right).prev = left
}

// newRule returns the number of a new rule with an empty body.
func (g *Grammar) newRule() uint32 {
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

func (g *Grammar) freeRule(r uint32) {
	g.giveBack(g.rules[r].guard)
	g.rules[r] = rule{}
	g.freeRules = append(g.freeRules, r)
}

// use and unuse count a node that names a rule; terminals have no count.
func (g *Grammar) use(v uint32) {
	if isNonterminal(v) {
		g.rules[v&ruleMask].uses++
	}
}

func (g *Grammar) unuse(v uint32) {
	if isNonterminal(v) {
		g.rules[v&ruleMask].uses--
	}
}
