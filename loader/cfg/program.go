package cfg

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/cfg/jumptable"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// A Program is what Recover found in an image. It is read-only.
type Program struct {
	Image    *image.Image
	Routines []*Routine // by entry address, left-out ones too; the index is Routine.ID

	pieces       []piece
	addressTaken []bool              // by routine
	others       map[uint64]*Routine // by entries besides Routine.Addr
	// entries of routines that may return twice, linkage stubs and slots of such
	twice        map[uint64]bool
	twicePointed bool         // something names one of these otherwise than by calling it
	loadsTwice   map[int]bool // routines that have such for calls of their own alone
	imports      map[uint64]string
}

// At returns the routine whose entry is at addr, or nil.
func (p *Program) At(addr uint64) *Routine {
	if r := p.others[addr]; r != nil {
		return r
	}
	i, ok := slices.BinarySearchFunc(p.Routines, addr,
		func(r *Routine, addr uint64) int { return cmp.Compare(r.Addr, addr) })
	if !ok {
		return nil
	}
	return p.Routines[i]
}

// Containing returns the routine that one of whose ranges covers addr, or nil.
func (p *Program) Containing(addr uint64) *Routine {
	if i := p.piece(addr); i >= 0 {
		return p.Routines[p.pieces[i].routine]
	}
	return nil
}

func (p *Program) piece(addr uint64) int {
	i, ok := slices.BinarySearchFunc(p.pieces, addr,
		func(p piece, addr uint64) int { return cmp.Compare(p.Lo, addr) })
	if !ok {
		i--
	}
	if i < 0 || addr >= p.pieces[i].Hi {
		return -1
	}
	return i
}

// Import returns the name of the imported function that the linkage stub at addr jumps to, or whose
// address the slot of the global offset table at addr holds; "" when addr is neither.
func (p *Program) Import(addr uint64) string { return p.imports[addr] }

// Callee returns where the call or tail jump that ends a block goes: a routine of the program, or
// the name of an imported function, called through its stub or its slot. It returns nil and "" when
// neither is known, as for a pointer, or the block ends otherwise.
func (p *Program) Callee(r *Routine, block int) (*Routine, string) {
	b := &r.Blocks[block]
	q := &b.Insns[len(b.Insns)-1]
	switch q.Kind {
	case x86.CallInd, x86.JmpInd:
		if q.IsRIPRelative() {
			_, rm, _ := q.Operands(r.Code(q), q.end())
			if name := p.imports[uint64(rm.Disp)]; name != "" {
				return nil, name
			}
			return p.inSlot(uint64(rm.Disp)), ""
		}
		return nil, ""
	case x86.Jcc, x86.Loop:
		if b.Succ[0] >= 0 {
			return nil, ""
		}
	case x86.Jmp:
		if b.End != Tail {
			return nil, ""
		}
	case x86.Call:
	default:
		return nil, ""
	}
	if to := p.At(b.Target); to != nil {
		return to, ""
	}
	return nil, p.imports[b.Target]
}

// inSlot returns the routine of this program whose address a slot of the global offset table holds,
// or nil.
func (p *Program) inSlot(addr uint64) *Routine {
	s := p.Image.SectionAt(addr)
	if s == nil || s.Name != ".got" {
		return nil
	}
	to, ok := p.Image.Relocations()[addr]
	if b := p.Image.Bytes(addr, addr+8); !ok && len(b) == 8 {
		to = binary.LittleEndian.Uint64(b)
	}
	if slices.Contains(p.Image.Resolvers(), to) {
		return nil // what the resolver chooses will be there
	}
	return p.At(to)
}

// AddressTaken says whether anything but a direct call or jump mentions the routine entry: an
// instruction, a data word, a relocation, a dynamic symbol, the program's entry, a distance from
// elsewhere; code of a routine that is left out which control flow is not known to reach counts as
// such. It answers true for what is no routine's entry.
func (p *Program) AddressTaken(entry uint64) bool {
	r := p.At(entry)
	return r == nil || p.addressTaken[r.ID]
}

// program makes the final routines of the drafts, and leaves out those that cannot be traced.
func (r *recovery) program(names map[uint64]string) *Program {
	p := &Program{
		Image: r.file.im, pieces: r.code.pieces, imports: r.file.imports,
		twice: map[uint64]bool{}, loadsTwice: map[int]bool{}, others: map[uint64]*Routine{},
	}
	s := &soundness{r: r, program: p, names: names}
	s.kept = slices.DeleteFunc(slices.Clone(r.drafts),
		func(d *draft) bool { return d.adopter != nil })
	for _, c := range programChecks {
		c.run(s)
	}
	for _, d := range s.kept {
		d.made.LeftOut, d.made.Cause = d.leftOut, d.cause
	}
	return p
}

// numberPieces gives the pieces, which have had the numbers of drafts, those of the final routines.
func (r *recovery) numberPieces() {
	for _, d := range r.drafts {
		for _, k := range d.pieces {
			r.code.pieces[k].routine = d.made.ID
		}
	}
}

// add gives a routine its number.
func (p *Program) add(r *Routine) {
	r.ID, r.program, r.Name = len(p.Routines), p, fmt.Sprintf("fn_%x", r.Addr)
	if r.Symbol != "" {
		r.Name = image.Demangle(r.Symbol)
	}
	if isReturnsTwiceSymbol(r.Symbol) {
		p.twice[r.Addr] = true
	}
	p.addressTaken = append(p.addressTaken, true) // until it is known
	p.Routines = append(p.Routines, r)
}

// routine makes the final routine of a draft.
func (r *recovery) routine(d *draft, symbol string) *Routine {
	out := &Routine{Addr: d.addr, Symbol: symbol, Blocks: d.blocks, Pads: d.pads,
		Faulty: d.faulty && len(d.pads) > 0}
	if d.entry >= 0 {
		out.Entry = int(r.blocks.blockAt[d.entry])
		for _, i := range d.others {
			out.Others = append(out.Others, int(r.blocks.blockAt[i]))
		}
	}
	for _, i := range d.pieces {
		out.Ranges = append(out.Ranges, [2]uint64{r.code.pieces[i].Lo, r.code.pieces[i].Hi})
		out.rows = append(out.rows, r.code.pieces[i].Range)
		out.code = append(out.code, r.code.pieces[i].code)
	}
	for b := range out.Blocks {
		if out.Blocks[b].End == Table {
			out.Blocks[b].Table = r.finish(d.tables[d.last(b)])
		}
	}
	return out
}

// finish translates a table into block indices.
func (r *recovery) finish(t *jumptable.Table) *JumpTable {
	out := &JumpTable{Check: t.Check.Block, Index: t.Check.Index, Bias: t.Check.Bias}
	if t.Indexed {
		out.Targets = make([]int, len(t.Targets))
		for i, to := range t.Targets {
			out.Targets[i] = int(r.blocks.blockAt[to])
		}
	}
	return out
}

// isOutermost says whether the routine has no caller by its unwind rows.
func (f *file) isOutermost(d *draft) bool {
	return slices.ContainsFunc(d.pieces, func(i int) bool {
		rows := f.code.pieces[i].Rows
		return len(rows) > 0 && rows[0].RA == image.RAUndefined
	})
}

// isEntered says whether a part of a routine may be entered from outside. A mention of a part that
// is entered with a frame already, or by a table of the routine's, is no pointer to a function; a
// table of another routine may lead to it.
func (f *file) isEntered(d *draft, p *piece) bool {
	if p.called || p.entered || p.symbol != "" && !isPart(p.symbol) {
		return true
	}
	if !p.inTable && (!f.references.has(p.Lo) || cfaAt(p.Rows, p.Lo) != absint.EntryCFA) {
		return false
	}
	for _, t := range d.tables {
		if slices.Contains(t.Targets, p.first) {
			return false
		}
	}
	return true
}

// secondSymbol returns where a function begins amidst the routine, by its symbol: hand-written ones
// may run into another.
func (f *file) secondSymbol(d *draft) (addr uint64, ok bool) {
	symbols := f.im.Symbols()
	for _, i := range d.pieces {
		p := &f.code.pieces[i]
		at, _ := slices.BinarySearchFunc(symbols, p.Lo+1,
			func(s image.Symbol, addr uint64) int { return cmp.Compare(s.Addr, addr) })
		for ; at < len(symbols) && symbols[at].Addr < p.Hi; at++ {
			if f.code.find(symbols[at].Addr) >= 0 {
				return symbols[at].Addr, true
			}
		}
	}
	return 0, false
}

// isStub says whether addr lies in a section of linkage stubs.
func (f *file) isStub(addr uint64) bool {
	s := f.im.SectionAt(addr)
	return s != nil && s.Exec && isStubs(s)
}

func isStubs(s *image.Section) bool { return strings.HasPrefix(s.Name, ".plt") }

// isFunction says whether addr is known to begin a function, though no unwind rows describe it.
func (fl *file) isFunction(addr uint64) bool {
	s := fl.im.SectionAt(addr)
	if s == nil || !s.Exec {
		return false
	}
	_, named := slices.BinarySearchFunc(fl.im.Symbols(), addr,
		func(f image.Symbol, addr uint64) int { return cmp.Compare(f.Addr, addr) })
	return named || s.Addr == addr
}
