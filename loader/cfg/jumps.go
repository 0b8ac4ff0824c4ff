package cfg

import (
	"slices"
	"sort"

	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/cfg/jumptable"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// resolveTables resolves the indirect jumps of a routine whose blocks are built, and returns what
// it finds by the jumps' instructions. A jump that d.refused holds stays unresolved.
func (r *recovery) resolveTables(d *draft) map[int]*jumptable.Table {
	jumps := make([]int, 0, 8)
	for b := range d.blocks {
		if i := d.last(b); r.code.insns[i].Kind == x86.JmpInd && !d.refused[i] {
			jumps = append(jumps, b)
		}
	}
	if len(jumps) == 0 {
		return nil
	}
	return jumptable.Resolve(r.input(d), jumps)
}

// input is a routine whose blocks are built, as the search for jump tables takes it.
func (r *recovery) input(d *draft) jumptable.Input {
	d.linkPreds()
	in := jumptable.Input{
		Code: &jumpCode{r, d}, Image: r.file.im, Blocks: make([]jumptable.Block, len(d.blocks)),
		Pads: d.pads, Steps: &r.steps,
		Entries: []int{r.blocks.blockOf(d.entry)},
	}
	for _, i := range d.others {
		in.Entries = append(in.Entries, r.blocks.blockOf(i))
	}
	for b := range d.blocks {
		bl := &d.blocks[b]
		in.Blocks[b] = jumptable.Block{
			First: int(d.first[b]), Count: len(bl.Insns), Lo: bl.Lo, Hi: bl.Hi, Succ: bl.Succ,
			Pads: bl.Pads, Preds: d.preds[b],
			Returns: bl.CallReturns(), Conditional: bl.End == Jcc,
		}
	}
	return in
}

// A jumpCode answers what the search for a routine's jump tables asks.
type jumpCode struct {
	r *recovery
	d *draft
}

func (c *jumpCode) Find(addr uint64) int      { return c.r.code.find(addr) }
func (c *jumpCode) Addr(i int) uint64         { return c.r.code.insns[i].Addr }
func (c *jumpCode) Kind(i int) x86.Kind       { return c.r.code.insns[i].Kind }
func (c *jumpCode) Effects(i int) x86.Effects { return c.r.code.effects(i) }
func (c *jumpCode) CFA(i int) image.CFA       { return c.r.code.frameAt(i) }
func (c *jumpCode) IsFrameless(i int) bool    { return c.r.file.isFrameless(i) }
func (c *jumpCode) Clobbers(i int) x86.Set    { return c.r.clobbered.clobbers(i) }
func (c *jumpCode) Entry() int                { return c.d.entry }
func (c *jumpCode) Inside(i int) int          { return c.r.file.inside(c.d.id, i) }
func (c *jumpCode) Joins(i int) bool          { return c.r.isOrphan(i) }
func (c *jumpCode) IsEntry(i int) bool        { return c.r.routineAt(i) >= 0 }
func (c *jumpCode) IsLabel(i int) bool        { return slices.Contains(c.d.labels, i) }
func (c *jumpCode) Contest(i int)             { c.d.contested = append(c.d.contested, i) }
func (c *jumpCode) TakenAddress(i int) uint64 { return c.r.file.takenAddress(i) }
func (c *jumpCode) NeverTaken(i int) bool     { return c.d.neverTaken(c.r.file, i) }
func (c *jumpCode) IsNamed(addr uint64) bool  { return c.r.file.references.has(addr) }
func (c *jumpCode) IsTaken(addr uint64) bool  { return c.r.file.insnReferences.has(addr) }
func (c *jumpCode) piece(i int) *piece        { return &c.r.code.pieces[c.r.code.pieceOf[i]] }

func (c *jumpCode) EachLabel(visit func(i int) bool) (int, bool) {
	return c.r.eachLabel(c.d, visit)
}

func (c *jumpCode) IsEnd(frame image.CFA, addr uint64) bool {
	return c.d.isEnd(c.r.file, frame, addr)
}

// IsDoubtful: linkers fold equal parts.
func (c *jumpCode) IsDoubtful(i int) bool {
	return i >= 0 && c.Inside(i) < 0 && c.r.file.isUnexplained(i) && !c.piece(i).back
}

func (c *jumpCode) IsAmidFunction(i int) bool {
	p := c.piece(i)
	return p.first != i && !isPart(p.symbol) &&
		(p.called || p.symbol != "" || c.r.file.references.has(p.Lo))
}

func (c *jumpCode) MayBePart(i int, near bool) bool {
	symbol := c.piece(i).symbol
	return c.r.file.isUnexplained(i) && (near || symbol == "" || isPart(symbol))
}

func (c *jumpCode) HasOwnLabels() bool {
	isElsewhere := func(k int) bool { return c.r.code.pieces[k].routine != c.d.id }
	return !slices.ContainsFunc(c.r.file.pointedParts, isElsewhere)
}

func (c *jumpCode) HidesFrame() bool {
	hides := hidesFrame(c.d.blocks,
		func(addr uint64) image.CFA {
			return image.RowAt(c.r.code.pieces[c.r.code.findPiece(addr)].Rows, addr).CFA
		},
		func(q *Insn) []byte { return c.r.code.bytes(c.r.code.find(q.Addr)) })
	return hides && !c.r.mayCallWhatReturnsTwice(c.d)
}

func (c *jumpCode) EndsPart(addr uint64) bool {
	return slices.ContainsFunc(c.d.pieces,
		func(p int) bool { return c.r.code.pieces[p].Hi == addr })
}

func (c *jumpCode) IsBoundary(addr uint64) bool {
	at, before := c.r.code.findPiece(addr), c.r.code.findPiece(addr-1)
	return at >= 0 && c.r.code.pieces[at].Lo == addr ||
		before >= 0 && c.r.code.pieces[before].Hi == addr
}

func (c *jumpCode) IsPointedTo(addr uint64) bool {
	return c.r.file.insnReferences.has(addr) || c.r.file.dataReferences.has(addr) ||
		c.isExported(addr)
}

// isExported says whether other images may know an address by a symbol.
func (c *jumpCode) isExported(addr uint64) bool {
	symbols := c.r.file.im.Symbols()
	i := sort.Search(len(symbols), func(i int) bool { return symbols[i].Addr >= addr })
	for ; i < len(symbols) && symbols[i].Addr == addr; i++ {
		if symbols[i].Dynamic {
			return true
		}
	}
	return false
}

// isFrameless says whether the frame is gone, or not there yet, at an instruction.
func (f *file) isFrameless(i int) bool { return f.code.frameAt(i) == absint.EntryCFA }
