package sweep

import (
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

// Group joins pieces into routines. A jump into the middle of a piece, or to one whose frame is
// already set up, makes the two one routine; so do a landing pad and the jump to a cold part. It
// returns the pieces of each routine, sorted by their first.
func (c *Code) Group(m *References) Groups {
	var doubtful []crossing
	for i := range c.Insns {
		if t := int(c.Target[i]); t >= 0 {
			doubtful = c.cross(i, t, doubtful)
		}
	}
	return c.groups(doubtful, m)
}

// groups joins what is to be by crossings and landing pads, and returns the pieces of each routine.
func (c *Code) groups(doubtful []crossing, m *References) Groups {
	for _, x := range doubtful {
		if c.isColdPart(x, m) {
			c.join(x.from, x.to)
		}
	}
	for i := range c.Pieces {
		for _, site := range c.Pieces[i].Calls() {
			if to := c.FindPiece(site.Pad); site.Pad != 0 && to >= 0 {
				c.join(i, to)
			}
		}
	}
	for _, x := range doubtful {
		c.Pieces[x.to].Entered = c.Pieces[x.to].Entered || c.root(x.from) != c.root(x.to)
	}
	// the root is the first piece of its group: the order is that of the roots
	size := make([]int32, len(c.Pieces)) // by root, then where the next piece of it goes
	for i := range c.Pieces {
		size[c.root(i)]++
	}
	var g Groups
	end := int32(0)
	for root, n := range size {
		if n > 0 {
			size[root] = end
			end += n
			g.ends = append(g.ends, end)
		}
	}
	g.pieces = make([]int32, len(c.Pieces))
	for i := range c.Pieces {
		at := &size[c.root(i)]
		g.pieces[*at] = int32(i)
		*at++
	}
	return g
}

// Groups are the pieces of each of some routines.
type Groups struct {
	pieces, ends []int32 // the latter by routine: of its pieces
	order        []int32 // of the routines, where it is another
}

// Len is how many routines there are.
func (g *Groups) Len() int { return len(g.ends) }

// Of returns the pieces of a routine, sorted, shared.
func (g *Groups) Of(routine int) []int32 {
	if g.order != nil {
		routine = int(g.order[routine])
	}
	begin := int32(0)
	if routine > 0 {
		begin = g.ends[routine-1]
	}
	return g.pieces[begin:g.ends[routine]]
}

// cross notes what the jump or call i, which goes to instruction t, says about the pieces of both.
func (c *Code) cross(i, t int, doubtful []crossing) []crossing {
	from, to := int(c.PieceOf[i]), int(c.PieceOf[t])
	first := c.Pieces[to].First == t
	kind := c.Insns[i].Kind
	if kind == x86.Call {
		c.Pieces[to].Called = c.Pieces[to].Called || first
		return doubtful
	}
	if from == to || Contradict(c.FrameAt(i), c.FrameAt(t)) {
		return doubtful
	}
	return c.crossing(from, to, first && c.FrameAt(t) == absint.EntryCFA, kind != x86.Jmp, doubtful)
}

// crossing notes a jump from one piece to another. It joins the two unless it may be a tail call:
// it leads to the first instruction, and there is no frame yet.
func (c *Code) crossing(from, to int, mayCall, conditional bool, doubtful []crossing) []crossing {
	c.Pieces[to].noteJumper(int32(from))
	if !mayCall {
		c.join(from, to)
		return doubtful
	}
	return append(doubtful, crossing{from, to, conditional})
}

// Contradict says whether the frame is another at a jump than at its target. A compiler makes such
// a jump, which is never taken, of one to a cold part in which nothing is left, at whose address
// another one's begins; and a linker that folds such parts makes one that is.
func Contradict(from, to image.CFA) bool {
	return from.Reg == to.Reg && from.Off != to.Off &&
		(from.Reg == x86.DwarfRSP || from.Reg == x86.DwarfRBP)
}

// FrameAt returns the rule that holds before instruction i.
func (c *Code) FrameAt(i int) image.CFA {
	return c.Pieces[c.PieceOf[i]].CFA(c.Insns[i].Addr)
}

// isColdPart distinguishes a part that the compiler moved away from a routine that is called as the
// last act of another.
func (c *Code) isColdPart(x crossing, m *References) bool {
	to := &c.Pieces[x.to]
	if IsPart(to.Symbol) {
		return true
	}
	return x.conditional && to.Symbol == "" && !to.Called && to.jumpers() == 1 && !m.Has(to.Lo)
}

func (c *Code) root(i int) int {
	for int(c.Pieces[i].parent) != i {
		c.Pieces[i].parent = c.Pieces[c.Pieces[i].parent].parent
		i = int(c.Pieces[i].parent)
	}
	return i
}

// join makes the smaller root the parent, so that a group's order does not depend on the order of
// joins.
func (c *Code) join(i, j int) {
	i, j = c.root(i), c.root(j)
	c.Pieces[max(i, j)].parent = int32(min(i, j))
}

// EntryOf returns the piece of a group that the routine is entered by.
func (c *Code) EntryOf(group []int32, m *References) int {
	best, bestScore := int(group[0]), -1
	for _, piece := range group {
		i := int(piece)
		p := &c.Pieces[i]
		score := 0
		if p.CFA(p.Lo) == absint.EntryCFA {
			score += 4
		}
		if p.Called || p.Entered || m.Has(p.Lo) {
			score += 3
		}
		if p.Symbol != "" && !IsPart(p.Symbol) {
			score += 2
		}
		longer := p.Hi-p.Lo > c.Pieces[best].Hi-c.Pieces[best].Lo
		if score > bestScore || score == bestScore && longer {
			best, bestScore = i, score
		}
	}
	return best
}

// IsTables says whether nothing but a table can lead to a piece, which may be part of a routine by
// that.
func (f *File) IsTables(p *Piece) bool {
	return !p.Called && p.jumpers() == 0 && p.IsCold()
}

// IsCold says whether a piece is a cold part, by its name or, if it has none, by a frame that is
// there when it begins.
func (p *Piece) IsCold() bool {
	return IsPart(p.Symbol) || p.Symbol == "" && p.CFA(p.Lo) != absint.EntryCFA
}

// IsUnexplained says whether instruction i is in what may be a cold part: nothing is known to lead
// there, or nothing but jumps to what has no name.
func (f *File) IsUnexplained(i int) bool {
	p := &f.Code.Pieces[f.Code.PieceOf[i]]
	switch {
	case p.IsCold():
		return true
	case p.Called:
		return false
	case p.jumpers() > 0: // from the rest of its routine, where it has no name
		return p.Symbol == ""
	}
	return !f.References.Has(p.Lo)
}

// IsBack says whether a jump from a piece to instruction t, or none (-1), leads into another of its
// routine: to where that begins a tail call may lead as well.
func (f *File) IsBack(p *Piece, t int) bool {
	if t < 0 {
		return false
	}
	to := &f.Code.Pieces[f.Code.PieceOf[t]]
	return to != p && to.Routine == p.Routine && to.First != t
}

// IsEntryToo says whether a piece that belongs to a routine may itself be entered like one.
func (f *File) IsEntryToo(p *Piece) bool {
	entered := p.Called || p.Entered || p.Symbol != "" && !IsPart(p.Symbol) ||
		f.References.Has(p.Lo)
	return entered && p.First < p.Last && f.Code.Insns[p.First].Addr == p.Lo &&
		p.CFA(p.Lo) == absint.EntryCFA
}
