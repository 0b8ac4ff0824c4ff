package draft

import (
	"slices"
	"sort"

	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/jumptable"
	"wpptrace/loader/cfg/sweep"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// resolveTables resolves the indirect jumps of a routine whose blocks are built, and returns what
// it finds by the jumps' instructions. A jump that d.refused holds stays unresolved.
func (r *Program) resolveTables(d *Routine) map[int]*jumptable.Table {
	jumps := make([]int, 0, 8)
	for b := range d.Blocks {
		if i := d.Last(b); r.Code.Insns[i].Kind == x86.JmpInd && !d.refused[i] {
			jumps = append(jumps, b)
		}
	}
	if len(jumps) == 0 {
		return nil
	}
	found, contested := jumptable.Resolve(r.Input(d), jumps)
	d.Contested = append(d.Contested, contested...)
	return found
}

// Input is a routine whose blocks are built, as the search for jump tables takes it.
func (r *Program) Input(d *Routine) jumptable.Input {
	d.linkPreds()
	in := jumptable.Input{
		Code: &jumpCode{r, d}, Image: r.File.Image, Entry: d.Entry,
		Blocks:  make([]jumptable.Block, len(d.Blocks)),
		Entries: []int{r.Blocks.BlockOf(d.Entry)}, Pads: d.Pads, Receivers: d.labels,
		Labels: r.labelsOf(d), OwnLabels: r.hasOwnLabels(d),
		HidesFrame: func() bool { return r.hidesFrame(d) }, Steps: &r.Steps,
	}
	for _, p := range d.Pieces {
		in.Ends = append(in.Ends, r.Code.Pieces[p].Hi)
	}
	for _, i := range d.Others {
		in.Entries = append(in.Entries, r.Blocks.BlockOf(i))
	}
	for b := range d.Blocks {
		bl := &d.Blocks[b]
		in.Blocks[b] = jumptable.Block{
			First: int(d.First[b]), Count: len(bl.Insns), Lo: bl.Lo, Hi: bl.Hi, Succ: bl.Succ,
			Pads: bl.Pads, Preds: d.preds[b],
			Returns: bl.CallReturns(), Conditional: bl.End == cfg.Jcc,
			NeverTaken: bl.End == cfg.Jcc && bl.Succ[0] == bl.Succ[1] &&
				d.neverTaken(r.File, d.Last(b)),
		}
	}
	return in
}

// hasOwnLabels reports whether no part of another routine may have labels of this one.
func (r *Program) hasOwnLabels(d *Routine) bool {
	isElsewhere := func(k int) bool { return r.Code.Pieces[k].Routine != d.ID }
	return !slices.ContainsFunc(r.File.PointedParts, isElsewhere)
}

// hidesFrame reports whether the routine takes no address in its frame, as far as it is known, and
// calls nothing that returns once more when other code of the routine has run.
func (r *Program) hidesFrame(d *Routine) bool {
	hides := cfg.HidesFrame(d.Blocks,
		func(addr uint64) image.CFA {
			return r.Code.Pieces[r.Code.FindPiece(addr)].CFA(addr)
		},
		func(q *cfg.Insn) []byte { return r.Code.Bytes(r.Code.Find(q.Addr)) })
	return hides && !r.Twice.mayBeCalledBy(d)
}

// A jumpCode answers what the search for a routine's jump tables asks.
type jumpCode struct {
	r *Program
	d *Routine
}

func (c *jumpCode) Find(addr uint64) int      { return c.r.Code.Find(addr) }
func (c *jumpCode) Kind(i int) x86.Kind       { return c.r.Code.Insns[i].Kind }
func (c *jumpCode) Effects(i int) x86.Effects { return c.r.Code.Effects(i) }
func (c *jumpCode) CFA(i int) image.CFA       { return c.r.Code.FrameAt(i) }
func (c *jumpCode) Clobbers(i int) x86.Set    { return c.r.Clobbered.Clobbers(i) }
func (c *jumpCode) Inside(i int) int          { return c.r.File.Inside(c.d.ID, i) }
func (c *jumpCode) Joins(i int) bool          { return c.r.isOrphan(i) }
func (c *jumpCode) IsEntry(i int) bool        { return c.r.RoutineAt(i) >= 0 }
func (c *jumpCode) TakenAddress(i int) uint64 { return c.r.File.TakenAddress(i) }
func (c *jumpCode) IsNamed(addr uint64) bool  { return c.r.File.References.Has(addr) }
func (c *jumpCode) piece(i int) *sweep.Piece  { return &c.r.Code.Pieces[c.r.Code.PieceOf[i]] }

func (c *jumpCode) IsTaken(i int) bool {
	return c.r.File.InsnReferences.Has(c.r.Code.Insns[i].Addr)
}

func (c *jumpCode) IsEnd(frame image.CFA, addr uint64) bool {
	return c.d.isEnd(c.r.File, frame, addr)
}

// IsDoubtful: linkers fold equal parts.
func (c *jumpCode) IsDoubtful(i int) bool {
	return i >= 0 && c.Inside(i) < 0 && c.r.File.IsUnexplained(i) && !c.piece(i).Back
}

func (c *jumpCode) IsAmidFunction(i int) bool {
	p := c.piece(i)
	return p.First != i && !sweep.IsPart(p.Symbol) &&
		(p.Called || p.Symbol != "" || c.r.File.References.Has(p.Lo))
}

func (c *jumpCode) MayBePart(i int, near bool) bool {
	symbol := c.piece(i).Symbol
	return c.r.File.IsUnexplained(i) && (near || symbol == "" || sweep.IsPart(symbol))
}

func (c *jumpCode) IsBoundary(addr uint64) bool {
	at, before := c.r.Code.FindPiece(addr), c.r.Code.FindPiece(addr-1)
	return at >= 0 && c.r.Code.Pieces[at].Lo == addr ||
		before >= 0 && c.r.Code.Pieces[before].Hi == addr
}

func (c *jumpCode) IsPointedTo(addr uint64) bool {
	return c.r.File.InsnReferences.Has(addr) || c.r.File.DataReferences.Has(addr) ||
		c.isExported(addr)
}

// isExported says whether other images may know an address by a symbol.
func (c *jumpCode) isExported(addr uint64) bool {
	symbols := c.r.File.Image.Symbols()
	i := sort.Search(len(symbols), func(i int) bool { return symbols[i].Addr >= addr })
	for ; i < len(symbols) && symbols[i].Addr == addr; i++ {
		if symbols[i].Dynamic {
			return true
		}
	}
	return false
}
