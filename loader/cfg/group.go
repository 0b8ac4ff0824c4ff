package cfg

import (
	"slices"
	"strings"

	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// A crossing is a jump from one piece to the first instruction of another that may be a tail call
// as well as a way into a part of the same routine.
type crossing struct {
	from, to    int
	conditional bool
}

// group joins pieces into routines. A jump into the middle of a piece, or to one whose frame is
// already set up, makes the two one routine; so do a landing pad and the jump to a cold part. It
// returns the pieces of each routine, sorted by their first.
func (c *code) group(m *references) [][]int {
	var doubtful []crossing
	for i := range c.insns {
		if t := int(c.target[i]); t >= 0 {
			doubtful = c.cross(i, t, doubtful)
		}
	}
	for _, x := range doubtful {
		if c.isColdPart(x, m) {
			c.join(x.from, x.to)
		}
	}
	for i := range c.pieces {
		for _, site := range c.pieces[i].Calls {
			if to := c.findPiece(site.Pad); site.Pad != 0 && to >= 0 {
				c.join(i, to)
			}
		}
	}
	for _, x := range doubtful {
		c.pieces[x.to].entered = c.pieces[x.to].entered || c.root(x.from) != c.root(x.to)
	}
	groups := make([][]int, len(c.pieces))
	for i := range c.pieces {
		root := c.root(i)
		groups[root] = append(groups[root], i)
	}
	return slices.DeleteFunc(groups, func(g []int) bool { return len(g) == 0 })
}

// cross notes what the jump or call i, which goes to instruction t, says about the pieces of both.
func (c *code) cross(i, t int, doubtful []crossing) []crossing {
	from, to := int(c.pieceOf[i]), int(c.pieceOf[t])
	first := c.pieces[to].first == t
	kind := c.insns[i].Kind
	if kind == x86.Call {
		c.pieces[to].called = c.pieces[to].called || first
		return doubtful
	}
	if from == to || contradict(c.frameAt(i), c.frameAt(t)) {
		return doubtful
	}
	if p := &c.pieces[to]; len(p.jumpers) < 2 && !slices.Contains(p.jumpers, from) {
		p.jumpers = append(p.jumpers, from)
	}
	if !first || c.frameAt(t) != absint.EntryCFA {
		c.join(from, to)
		return doubtful
	}
	return append(doubtful, crossing{from, to, kind != x86.Jmp})
}

// contradict says whether the frame is another at a jump than at its target. A compiler makes such
// a jump, which is never taken, of one to a cold part in which nothing is left, at whose address
// another one's begins; and a linker that folds such parts makes one that is.
func contradict(from, to image.CFA) bool {
	return from.Reg == to.Reg && from.Off != to.Off &&
		(from.Reg == x86.DwarfRSP || from.Reg == x86.DwarfRBP)
}

// frameAt returns the rule that holds before instruction i.
func (c *code) frameAt(i int) image.CFA {
	return image.RowAt(c.pieces[c.pieceOf[i]].Rows, c.insns[i].Addr).CFA
}

// isColdPart distinguishes a part that the compiler moved away from a routine that is called as the
// last act of another.
func (c *code) isColdPart(x crossing, m *references) bool {
	to := &c.pieces[x.to]
	if isPart(to.symbol) {
		return true
	}
	return x.conditional && to.symbol == "" && !to.called && len(to.jumpers) == 1 && !m.has(to.Lo)
}

// isPart says whether a symbol names a part that a compiler has moved away from a routine: GCC's
// and Clang's cold ones, and the blocks that -fbasic-block-sections gives a section each.
func isPart(symbol string) bool {
	return strings.Contains(symbol, ".cold") || strings.Contains(symbol, ".__part.")
}

// isPartOf says whether a symbol names such a part of a routine.
func isPartOf(symbol, routine string) bool {
	of, ok := strings.CutPrefix(symbol, routine)
	return ok && (strings.HasPrefix(of, ".cold") || strings.HasPrefix(of, ".__part."))
}

func (c *code) root(i int) int {
	for c.pieces[i].parent != i {
		c.pieces[i].parent = c.pieces[c.pieces[i].parent].parent
		i = c.pieces[i].parent
	}
	return i
}

// join makes the smaller root the parent, so that a group's order does not depend on the order of
// joins.
func (c *code) join(i, j int) {
	i, j = c.root(i), c.root(j)
	c.pieces[max(i, j)].parent = min(i, j)
}

// entryOf returns the piece of a group that the routine is entered by.
func (c *code) entryOf(group []int, m *references) int {
	best, bestScore := group[0], -1
	for _, i := range group {
		p := &c.pieces[i]
		score := 0
		if image.RowAt(p.Rows, p.Lo).CFA == absint.EntryCFA {
			score += 4
		}
		if p.called || p.entered || m.has(p.Lo) {
			score += 3
		}
		if p.symbol != "" && !isPart(p.symbol) {
			score += 2
		}
		longer := p.Hi-p.Lo > c.pieces[best].Hi-c.pieces[best].Lo
		if score > bestScore || score == bestScore && longer {
			best, bestScore = i, score
		}
	}
	return best
}

// isOrphan says whether instruction i is in a piece that nothing but a table can lead to: the cold
// parts of cases.
func (r *recovery) isOrphan(i int) bool {
	p := &r.code.pieces[r.code.pieceOf[i]]
	return len(r.drafts[p.routine].pieces) == 1 && r.file.isTables(p)
}

// isTables says whether nothing but a table can lead to a piece, which may be part of a routine by
// that.
func (f *file) isTables(p *piece) bool {
	return !p.called && len(p.jumpers) == 0 && p.isCold()
}

// isCold says whether a piece is a cold part, by its name or, if it has none, by a frame that is
// there when it begins.
func (p *piece) isCold() bool {
	return isPart(p.symbol) || p.symbol == "" && image.RowAt(p.Rows, p.Lo).CFA != absint.EntryCFA
}

// isUnexplained says whether instruction i is in what may be a cold part: nothing is known to lead
// there, or nothing but jumps to what has no name.
func (f *file) isUnexplained(i int) bool {
	p := &f.code.pieces[f.code.pieceOf[i]]
	switch {
	case p.isCold():
		return true
	case p.called:
		return false
	case len(p.jumpers) > 0: // from the rest of its routine, where it has no name
		return p.symbol == ""
	}
	return !f.references.has(p.Lo)
}

// isBack says whether a jump from a piece to instruction t, or none (-1), leads into another of its
// routine: to where that begins a tail call may lead as well.
func (f *file) isBack(p *piece, t int) bool {
	if t < 0 {
		return false
	}
	to := &f.code.pieces[f.code.pieceOf[t]]
	return to != p && to.routine == p.routine && to.first != t
}

// adoptTargets makes the orphans that the tables of a routine lead to parts of it.
func (r *recovery) adoptTargets(d *draft) {
	for _, t := range d.tables {
		for _, to := range t.Targets {
			orphan := r.drafts[r.code.pieces[r.code.pieceOf[to]].routine]
			if orphan == d {
				continue
			}
			d.pieces = append(d.pieces, orphan.pieces...)
			for _, i := range orphan.pieces {
				r.code.pieces[i].routine = d.id
			}
			orphan.pieces, orphan.entry, orphan.adopter = nil, -1, d
		}
	}
	slices.Sort(d.pieces)
}
