package query

import (
	"math"

	"wpptrace/compress/wpp"
)

// A reader sees all strings of up to margin+1 symbols that a forest derives, without expanding it:
// the boundaries of each rule.
type reader interface {
	// begin says that what is pushed next, of the expansion of a rule, does not follow what was
	// pushed before. It occurs weight times.
	begin(weight uint64)
	// push says that the last terminal of the line was added. Up to margin+1 terminals before it
	// are there yet, but only those pushed since begin count. The reader may change their ranks.
	// The last inside terminals, if any, come from one symbol of the rule that is read: the reader
	// has seen what they hold, when it read the rule that this symbol names. allInside says so of
	// all since begin.
	push(line []terminal, inside int)
	// settle hands out terminals that are more than margin away from both edges of a rule's
	// expansion, whose ranks no rule above can change, once for all derivations of the rule, of
	// which there are weight.
	settle(weight uint64, terminals []terminal)
}

const allInside = math.MaxInt

// A terminal is a symbol of a rule's expansion. Its rank is the reader's; it begins as noPattern.
type terminal struct{ symbol, rank uint32 }

// ruleBoundaries reads a forest from the rules that use no others upwards. What crosses into a rule
// from outside reaches at most margin symbols into it; so of each rule only the edges are kept for
// the rules above.
type ruleBoundaries struct {
	forest *forest
	reader reader
	margin int
	// rule -> its whole expansion, or its first and last margin terminals where it has more than
	// both
	edges  [][]terminal
	unread []int // rule -> uses of its edges yet to come
	// of the rule being read: its first margin terminals, then those not settled yet
	line []terminal
}

// readBoundaries takes time and memory in proportion to the right-hand sides times margin+1, the
// reader's own apart; memory to those of one forest.
func readBoundaries(all *forests, margin int, r reader) {
	var segments [][]terminal // edges of their start rules
	for f := range all.each() {
		s := &ruleBoundaries{forest: f, reader: r, margin: margin,
			edges: make([][]terminal, len(f.begin)), unread: make([]int, len(f.begin))}
		if f.joins {
			for i, edges := range segments {
				s.edges[i+1], s.unread[i+1] = edges, 1
			}
			segments = nil
		}
		for _, rule := range f.upwards {
			s.read(rule)
		}
		if f.isSegment {
			segments = append(segments, s.edges[0])
		}
	}
}

// isTop reports whether no rule is above one.
func (s *ruleBoundaries) isTop(rule uint32) bool {
	return s.forest.used[rule] == 0 && !s.forest.isSegment
}

// isWide reports whether the middle of a rule's expansion is left out of its edges.
func (s *ruleBoundaries) isWide(rule uint32) bool {
	return s.forest.length[rule] > 2*uint64(s.margin)
}

func (s *ruleBoundaries) read(rule uint32) {
	s.line = s.line[:0]
	s.reader.begin(s.forest.derived[rule])
	for _, v := range s.forest.rightSide(rule) {
		if !wpp.IsRule(v) {
			s.push(terminal{v, noPattern}, 0)
		} else if child := uint32(wpp.RuleOf(v)); s.isWide(child) {
			s.pushAll(s.edges[child][:s.margin])
			s.settle(rule, len(s.line))
			s.reader.begin(s.forest.derived[rule])
			for _, x := range s.edges[child][s.margin:] {
				s.push(x, allInside)
			}
			s.release(child)
		} else {
			s.pushAll(s.edges[child])
			s.release(child)
		}
		if len(s.line) > 4*s.margin+1024 {
			s.settle(rule, len(s.line)-s.margin-1)
		}
	}
	s.keepEdges(rule)
}

func (s *ruleBoundaries) push(x terminal, inside int) {
	s.line = append(s.line, x)
	s.reader.push(s.line, inside)
}

// pushAll pushes the beginning of a symbol's expansion.
func (s *ruleBoundaries) pushAll(terminals []terminal) {
	for i, x := range terminals {
		s.push(x, i+1)
	}
}

// settle hands out the line's terminals up to end, but for the first margin ones, and drops them.
func (s *ruleBoundaries) settle(rule uint32, end int) {
	begin := min(s.margin, end)
	if s.isTop(rule) {
		begin = 0 // no rule is above a start rule
	}
	s.reader.settle(s.forest.derived[rule], s.line[begin:end])
	s.line = append(s.line[:begin], s.line[end:]...)
}

func (s *ruleBoundaries) keepEdges(rule uint32) {
	s.unread[rule] = int(s.forest.used[rule])
	switch {
	case s.isTop(rule):
		s.settle(rule, len(s.line))
		return
	case s.isWide(rule):
		s.settle(rule, len(s.line)-s.margin)
	}
	s.edges[rule] = append([]terminal(nil), s.line...)
}

func (s *ruleBoundaries) release(rule uint32) {
	if s.unread[rule]--; s.unread[rule] == 0 {
		s.edges[rule] = nil
	}
}

// costliestWindow returns the most that width symbols in a row, or fewer, cost anywhere. It takes
// time and memory in proportion to the right-hand sides times width.
func costliestWindow(f *forests, width int, cost []uint64) uint64 {
	w := &window{width: width, cost: cost}
	readBoundaries(f, width-1, w)
	return w.costliest
}

type window struct {
	width     int
	cost      []uint64
	length    int
	sum       uint64
	costliest uint64
}

func (w *window) begin(uint64) { w.length, w.sum = 0, 0 }

func (w *window) push(line []terminal, _ int) {
	last := len(line) - 1
	w.sum += w.cost[line[last].symbol]
	if w.length++; w.length > w.width {
		w.length = w.width
		w.sum -= w.cost[line[last-w.width].symbol]
	}
	w.costliest = max(w.costliest, w.sum)
}

func (w *window) settle(uint64, []terminal) {}
