package sequitur

import "runtime"

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
	built  builder
	runs   *runs    // nil: runs are not folded
	queue  []uint32 // accepted, but not in the grammar yet
	length uint64
}

// queueSize is how many symbols are appended together: their digrams are fewer than what a
// processor waits for at a time.
const queueSize = 32

// New returns the grammar of the empty stream.
func New() *Grammar {
	g := &Grammar{built: newBuilder(), queue: make([]uint32, 0, queueSize)}
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
	g.built.release()
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

// drain appends what is in the queue. It is not to be inlined, so that enqueue, which runs for each
// symbol, can be.
//
//go:noinline
func (g *Grammar) drain() {
	g.built.appendAll(g.queue)
	g.queue = g.queue[:0]
}

// flush ends what is being followed, and the last run.
func (g *Grammar) flush() {
	if g.runs != nil {
		if symbol, ok := g.runs.end(); ok {
			g.enqueue(symbol)
		}
	}
	g.drain()
	g.built.endRepetitions()
}

// Length returns the number of terminals appended.
func (g *Grammar) Length() uint64 { return g.length }

// NumRules returns the number of rules, the start rule included.
func (g *Grammar) NumRules() int {
	g.flush()
	return g.built.numRules()
}

// Symbols returns the number of right-hand-side symbols of all rules.
func (g *Grammar) Symbols() int {
	rules := g.NumRules()
	return g.built.live - rules
}

// Bytes returns the memory that the grammar holds, to decide when to release it. Where memory
// cannot grow in place, on systems other than Linux, it takes twice that for a moment while it
// grows. It is cheap.
func (g *Grammar) Bytes() uint64 {
	return g.built.bytes() + uint64(cap(g.queue))*4 + g.runs.bytes()
}

// UnfoldingBytes returns how much memory Rules takes at most, for a moment, to derive runs, besides
// the copy. It is cheap.
func (g *Grammar) UnfoldingBytes() uint64 { return g.runs.unfoldingBytes() }

// Rules returns a copy of the bodies of all rules: the start rule first, the others in the order of
// their first use when bodies are read depth first, those that derive runs in any. IsRule and
// RuleOf distinguish a body's symbols. It takes time and memory in proportion to the grammar, not
// to the stream, and the copy is the caller's while appending goes on.
func (g *Grammar) Rules() [][]uint32 {
	g.flush()
	bodies := g.built.bodies()
	runtime.KeepAlive(g)
	if g.runs != nil && len(g.runs.all) > 0 {
		return g.runs.unfold(bodies)
	}
	return bodies
}
