package query

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"wpptrace/compress/wpp"
)

// A forest is the grammars of one or more threads laid side by side, with what the queries ask of
// them: how often each rule is derived, and where it is used. Rules are numbered through. It takes
// about 12 bytes a right-hand-side symbol and 60 a rule. A query extends the prefixes as it needs
// them, so a forest belongs to one goroutine.
type forest struct {
	body    []uint32 // the right-hand sides, one after the other, each closed by endOfRule
	ruleOf  []uint32 // position in body -> its rule
	begin   []uint32 // rule -> position of its first symbol
	derived []uint64 // rule -> how often it is derived, in all threads together
	length  []uint64 // rule -> symbols in its expansion
	upwards []uint32 // the rules, each after those that it uses
	used    []uint32 // rule -> on how many right-hand sides it is
	uses    postings // rule -> the positions of its uses
	prefix  [][]uint32
	symbols int // terminals are below this

	isSegment bool // a segment of a thread: see forests
	joins     bool // the segments of a thread
}

// endOfRule names a rule that no grammar is large enough to have.
const endOfRule = 1<<32 - 1

// Threads returns the threads that have one of the ids, or all when there are no ids.
func Threads(s *wpp.Snapshot, tids []int) ([]*wpp.Thread, error) {
	var threads []*wpp.Thread
	found := make(map[int]bool)
	for i := range s.Threads {
		t := &s.Threads[i]
		if len(tids) == 0 || slices.Contains(tids, t.TID) {
			threads = append(threads, t)
			found[t.TID] = true
		}
	}
	for _, tid := range tids {
		if !found[tid] {
			return nil, fmt.Errorf("select thread %d: the snapshot has %s", tid, threadList(s))
		}
	}
	return threads, nil
}

// allThreads are those of a snapshot.
func allThreads(s *wpp.Snapshot) []*wpp.Thread {
	threads, _ := Threads(s, nil) // which fails for a thread that is asked for alone
	return threads
}

func threadList(s *wpp.Snapshot) string {
	const most = 8
	var ids []string
	for i := range s.Threads[:min(most, len(s.Threads))] {
		ids = append(ids, strconv.Itoa(s.Threads[i].TID))
	}
	switch {
	case len(ids) == 0:
		return "no threads"
	case len(s.Threads) > most:
		return fmt.Sprintf("%d threads: %s ...", len(s.Threads), strings.Join(ids, " "))
	default:
		return "threads " + strings.Join(ids, " ")
	}
}

// newForest lays out the grammars of threads. Time and memory are linear in their right-hand sides.
func newForest(symbols int, grammars []rules) *forest {
	f := &forest{symbols: symbols}
	for _, g := range grammars {
		f.lay(g)
	}
	f.index()
	return f
}

// Rules are what a forest needs of a grammar. What Body returns is good until it is called again.
type rules interface {
	Rules() int
	Body(rule int) []uint32
	Order() []int
	Length(rule int) uint64
	Uses(rule int) uint64
	BodySymbols() int
}

// index prepares for walking from a place to those around it.
func (f *forest) index() {
	f.prefix = make([][]uint32, len(f.begin))
	for rule := range f.begin {
		for range len(f.rightSide(uint32(rule))) + 1 {
			f.ruleOf = append(f.ruleOf, uint32(rule))
		}
	}
	f.uses = newPostings(f.body, len(f.begin), func(v uint32) (uint32, bool) {
		return uint32(wpp.RuleOf(v)), v != endOfRule && wpp.IsRule(v)
	})
}

// rename gives the terminals other names, below a number of symbols.
func (f *forest) rename(to []uint32, symbols int) {
	for pos, v := range f.body {
		if !wpp.IsRule(v) {
			f.body[pos] = to[v]
		}
	}
	f.symbols = symbols
	clear(f.prefix)
}

func (f *forest) lay(g rules) {
	base := len(f.begin)
	f.body = slices.Grow(f.body, g.BodySymbols()+g.Rules())
	f.used = append(f.used, make([]uint32, g.Rules())...)
	for r := range g.Rules() {
		f.begin = append(f.begin, uint32(len(f.body)))
		f.derived = append(f.derived, g.Uses(r))
		f.length = append(f.length, g.Length(r))
		for _, v := range g.Body(r) {
			if wpp.IsRule(v) {
				v = wpp.RuleSymbol(base + wpp.RuleOf(v))
				f.used[wpp.RuleOf(v)]++
			}
			f.body = append(f.body, v)
		}
		f.body = append(f.body, endOfRule)
	}
	for _, r := range slices.Backward(g.Order()) {
		f.upwards = append(f.upwards, uint32(base+r))
	}
}

// rightSide is the body of a rule.
func (f *forest) rightSide(rule uint32) []uint32 {
	begin := f.begin[rule]
	end := uint32(len(f.body))
	if int(rule)+1 < len(f.begin) {
		end = f.begin[rule+1]
	}
	return f.body[begin : end-1]
}

// weight is how often the symbol at a position of body is derived.
func (f *forest) weight(pos uint32) uint64 { return f.derived[f.ruleOf[pos]] }

// width is the number of terminals that a symbol of a body expands to.
func (f *forest) width(v uint32) uint64 {
	if wpp.IsRule(v) {
		return f.length[wpp.RuleOf(v)]
	}
	return 1
}

// terminal is the terminal at an offset, which must be below width(v), of the expansion of a
// symbol. All that comes before it is expanded too and kept with the rule, so the cost is constant
// on average.
func (f *forest) terminal(v, offset uint32) uint32 {
	if !wpp.IsRule(v) {
		return v
	}
	r := uint32(wpp.RuleOf(v))
	if uint32(len(f.prefix[r])) <= offset {
		f.expand(r, max(4, 2*uint64(offset)))
	}
	return f.prefix[r][offset]
}

// expand makes prefix[rule] the first n terminals of the rule's expansion, or all of it where it is
// shorter.
func (f *forest) expand(rule uint32, n uint64) {
	n = min(n, f.length[rule])
	out := make([]uint32, 0, n)
	stack := []uint32{f.begin[rule]}
	for uint64(len(out)) < n {
		top := len(stack) - 1
		v := f.body[stack[top]]
		stack[top]++
		switch {
		case v == endOfRule:
			stack = stack[:top]
		case wpp.IsRule(v):
			stack = append(stack, f.begin[wpp.RuleOf(v)])
		default:
			out = append(out, v)
		}
	}
	f.prefix[rule] = out
}

// Postings lists positions by key: those of key k are at[first[k]:first[k+1]], in rising order.
type postings struct{ first, at []uint32 }

func (p postings) of(key uint32) []uint32 { return p.at[p.first[key]:p.first[key+1]] }

func newPostings(values []uint32, keys int, key func(v uint32) (k uint32, ok bool)) postings {
	first := make([]uint32, keys+1)
	for _, v := range values {
		if k, ok := key(v); ok {
			first[k+1]++
		}
	}
	for k := range keys {
		first[k+1] += first[k]
	}
	at := make([]uint32, first[keys])
	next := slices.Clone(first)
	for pos, v := range values {
		if k, ok := key(v); ok {
			at[next[k]] = uint32(pos)
			next[k]++
		}
	}
	return postings{first, at}
}
