package query

import (
	"math"

	"wpptrace/compress/wpp"
)

// A reader sees all strings of up to margin+1 symbols that a forest derives, without expanding it:
// the seams of each rule.
type reader interface {
	// begin says that what is pushed next, of the expansion of a rule, does not follow what was
	// pushed before. It occurs weight times.
	begin(weight uint64)
	// push says that the last cell of the line was added. Up to margin+1 cells before it are there
	// yet, but only those pushed since begin count. The reader may change their ranks. The last
	// inside cells, if any, come from one symbol of the rule that is read: the reader has seen what
	// they hold, when it read the rule that this symbol names. allInside says so of all since
	// begin.
	push(line []cell, inside int)
	// settle hands out cells that are more than margin away from both edges of a rule's expansion,
	// whose ranks no rule above can change, once for all derivations of the rule, of which there
	// are weight.
	settle(weight uint64, cells []cell)
}

const allInside = math.MaxInt

// A cell is a symbol of a rule's expansion. Its rank is the reader's; it begins as noPattern.
type cell struct{ symbol, rank uint32 }

// seams reads a forest from the rules that use no others upwards. What crosses into a rule from
// outside reaches at most margin symbols into it; so of each rule only the edges are kept for the
// rules above.
type seams struct {
	*forest
	reader reader
	margin int
	edges  [][]cell // rule -> its whole expansion, or its first and last margin cells where it has more than both
	unread []int    // rule -> uses of its edges yet to come
	line   []cell   // of the rule being read: its first margin cells, then those not settled yet
}

// readSeams takes time and memory in proportion to the right-hand sides times margin+1, the
// reader's own apart; memory to those of one forest.
func readSeams(all *forests, margin int, r reader) {
	var segments [][]cell // edges of their start rules
	for f := range all.each() {
		s := &seams{forest: f, reader: r, margin: margin, edges: make([][]cell, len(f.begin)), unread: make([]int, len(f.begin))}
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
func (s *seams) isTop(rule uint32) bool { return s.used[rule] == 0 && !s.isSegment }

// isWide reports whether the middle of a rule's expansion is left out of its edges.
func (s *seams) isWide(rule uint32) bool { return s.length[rule] > 2*uint64(s.margin) }

func (s *seams) read(rule uint32) {
	s.line = s.line[:0]
	s.reader.begin(s.derived[rule])
	for _, v := range s.rightSide(rule) {
		if !wpp.IsRule(v) {
			s.push(cell{v, noPattern}, 0)
		} else if child := uint32(wpp.RuleOf(v)); s.isWide(child) {
			s.pushAll(s.edges[child][:s.margin])
			s.settle(rule, len(s.line))
			s.reader.begin(s.derived[rule])
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

func (s *seams) push(x cell, inside int) {
	s.line = append(s.line, x)
	s.reader.push(s.line, inside)
}

// pushAll pushes the beginning of a symbol's expansion.
func (s *seams) pushAll(cells []cell) {
	for i, x := range cells {
		s.push(x, i+1)
	}
}

// settle hands out the line's cells up to end, but for the first margin ones, and drops them.
func (s *seams) settle(rule uint32, end int) {
	begin := min(s.margin, end)
	if s.isTop(rule) {
		begin = 0 // no rule is above a start rule
	}
	s.reader.settle(s.derived[rule], s.line[begin:end])
	s.line = append(s.line[:begin], s.line[end:]...)
}

func (s *seams) keepEdges(rule uint32) {
	s.unread[rule] = int(s.used[rule])
	switch {
	case s.isTop(rule):
		s.settle(rule, len(s.line))
		return
	case s.isWide(rule):
		s.settle(rule, len(s.line)-s.margin)
	}
	s.edges[rule] = append([]cell(nil), s.line...)
}

func (s *seams) release(rule uint32) {
	if s.unread[rule]--; s.unread[rule] == 0 {
		s.edges[rule] = nil
	}
}

// dearestWindow returns the most that width symbols in a row, or fewer, cost anywhere. It takes
// time and memory in proportion to the right-hand sides times width.
func dearestWindow(f *forests, width int, cost []uint64) uint64 {
	w := &window{width: width, cost: cost}
	readSeams(f, width-1, w)
	return w.dearest
}

type window struct {
	width   int
	cost    []uint64
	length  int
	sum     uint64
	dearest uint64
}

func (w *window) begin(uint64) { w.length, w.sum = 0, 0 }

func (w *window) push(line []cell, _ int) {
	last := len(line) - 1
	w.sum += w.cost[line[last].symbol]
	if w.length++; w.length > w.width {
		w.length = w.width
		w.sum -= w.cost[line[last-w.width].symbol]
	}
	w.dearest = max(w.dearest, w.sum)
}

func (w *window) settle(uint64, []cell) {}
