package cfg

import (
	"cmp"
	"slices"
	"strings"

	"wpptrace/internal/parallel"
	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/cfg/jumptable"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// The graph of a routine may be right, and the routine yet be none that can be traced: it is
// entered in its middle, returns elsewhere, or shares its end with another. What is to be left out
// is decided by the checks that stand here, each with a name, in the order that they stand in: the
// first reason that a routine is given stays. Where a check needs another to have run, checkOrder
// says why.

// A routineCheck looks at one routine whose blocks are finished, and at no other: routines are
// checked several at a time. It answers false if the routine needs no further ones.
type routineCheck struct {
	name string
	run  func(s *soundness, d *draft) (goOn bool)
}

var routineChecks = []routineCheck{
	{"decodes", (*soundness).checkEntry},
	{"unwind information", (*soundness).checkFaults},
	{"outermost", (*soundness).checkOutermost},
	{"frame at the entry", (*soundness).checkEntryFrame},
	{"indirect jumps", (*soundness).checkIndirectJumps},
	{"parts", (*soundness).checkParts},
	{"second entries", (*soundness).checkEntries},
	{"middles", (*soundness).checkMiddles},
	{"frame", func(s *soundness, d *draft) bool { d.saves = analyseFrame(s.r, d); return true }},
}

// A programCheck looks at all routines. One that leaves out none finds what later ones ask for.
type programCheck struct {
	name string
	run  func(s *soundness)
}

var programChecks = []programCheck{
	{"routines", (*soundness).checkRoutines},
	{"restartable sequences", (*soundness).checkRestarts},
	{"numbers", (*soundness).number},
	{"linkage", (*soundness).checkLinkage},
	{"returns twice", func(s *soundness) { s.linkage.findTwice() }},
	{"pointers", (*soundness).findPointers},
	{"transactions", (*soundness).checkTransactions},
}

// A linkageCheck looks at how routines enter each other. With each routine that one leaves out more
// code may run: all are gone through until none leaves out any more.
type linkageCheck struct {
	name string
	run  func(l *linkage)
}

var linkageChecks = []linkageCheck{
	{"thunks", (*linkage).leaveOutThunkUsers},
	{"returns elsewhere", (*linkage).leaveOutMovers},
	{"entered in the middle", (*linkage).leaveOutMiddles},
	{"unseen code", (*linkage).searchUnseen},
}

// checkOrder says which check must come before which other, and why.
var checkOrder = []struct{ first, then, why string }{
	{"decodes", "outermost", "what does not decode has no block to look at"},
	{"unwind information", "frame", "rows that are at fault are not followed"},
	{"outermost", "frame", "the program's entry has no caller that its frame is to show"},
	{"second entries", "frame", "the depth of the frame is followed from the entries that are " +
		"known"},
	{"routines", "numbers", "the final routines are made of blocks that have been checked"},
	{"routines", "linkage", "all code of a routine that is left out may run"},
	{"restartable sequences", "linkage", "all code of a routine that is left out may run"},
	{"numbers", "linkage", "linkage finds routines by their addresses in the program"},
	{"linkage", "returns twice", "what may run decides who names a function that returns twice"},
	{"linkage", "pointers", "code that is not known to run takes addresses as well"},
	{"pointers", "transactions", "an indirect call in a transaction may lead to all that " +
		"pointers do"},
}

// soundness is the state of the checks of a program.
type soundness struct {
	r         *recovery
	kept      []*draft
	program   *Program
	facts     *Facts
	taken     *distances
	transfers []int32
	linkage   *linkage
}

// Check makes the program of routines that are built, and leaves out those that cannot be traced:
// each has its reason, also in its draft. Cost: about a third of what building them takes.
func Check(r *recovery) *Program {
	s := &soundness{r: r, facts: &Facts{
		Entries: map[uint64]*Routine{}, Twice: map[uint64]bool{}, LoadsTwice: map[int]bool{},
		Imports: r.file.imports,
	}}
	s.kept = slices.DeleteFunc(slices.Clone(r.drafts),
		func(d *draft) bool { return d.adopter != nil })
	for _, c := range programChecks {
		c.run(s)
	}
	for _, d := range s.kept {
		d.made.LeftOut, d.made.Cause = d.leftOut, d.cause
	}
	return s.program
}

// checkRoutines makes the final routines, too.
func (s *soundness) checkRoutines() {
	parallel.Both(func() { s.taken = findTaken(s.r) },
		func() { s.transfers = findTransfers(s.r) })
	parallel.Each(len(s.kept), func(i int) {
		d := s.kept[i]
		d.saves = false
		for _, c := range routineChecks {
			if !c.run(s, d) {
				break
			}
		}
		d.made = s.routine(d)
	})
}

// number puts the routines, and those of which only a symbol is known, into a program, by address.
func (s *soundness) number() {
	bare := s.r.file.uncovered()
	routines := make([]*Routine, 0, len(s.kept)+len(bare))
	for _, d := range s.kept {
		if d.saves {
			s.facts.Twice[d.addr] = true
		}
		for ; len(bare) > 0 && bare[0].Addr < d.addr; bare = bare[1:] {
			routines = append(routines, bare[0])
		}
		for _, at := range d.others {
			s.facts.Entries[s.r.code.insns[at].Addr] = d.made
		}
		routines = append(routines, d.made)
	}
	s.program = NewProgram(s.r.file.im, append(routines, bare...), s.facts)
}

func (s *soundness) checkLinkage() {
	s.linkage = newLinkage(s.program, s.facts, s.taken, s.transfers)
	s.linkage.leaveOut()
}

func (s *soundness) findPointers() {
	for _, d := range s.kept {
		s.facts.AddressTaken[d.made.ID] = s.taken.isTaken(d)
	}
}

func (s *soundness) checkTransactions() {
	main := s.program.Main()
	leaveOutTransactions(s.r, s.kept, func(d *draft) bool {
		return s.facts.AddressTaken[d.made.ID] && d.made != main && d.addr != s.r.file.im.Entry
	})
}

func (s *soundness) checkEntry(d *draft) bool {
	if d.entry < 0 {
		d.leave("bytes at %x do not decode", d.addr)
	}
	return d.entry >= 0
}

func (s *soundness) checkFaults(d *draft) bool {
	for _, i := range d.pieces {
		p := &s.r.code.pieces[i]
		if p.Signal {
			d.leave("signal trampoline")
		}
		if p.Fault != "" {
			d.leave(p.Fault+" at %x", p.Lo)
		}
	}
	return true
}

func (s *soundness) checkOutermost(d *draft) bool {
	if !s.isOutermost(d) {
		return true
	}
	if d.addr == s.r.file.im.Entry && !d.returns {
		s.checkParts(d)
		return false // it is entered once, and its frame is nobody's caller
	}
	d.leave("outermost frame (no caller)")
	return true
}

func (s *soundness) checkEntryFrame(d *draft) bool {
	if !s.r.file.isFrameless(d.entry) {
		d.leave("what enters it with a frame at %x is not known", d.addr)
	}
	return true
}

func (s *soundness) checkIndirectJumps(d *draft) bool {
	for b := range d.blocks {
		if d.blocks[b].End == Unresolved {
			d.leave("unresolved indirect jump at %x", s.r.code.insns[d.last(b)].Addr)
		}
	}
	return true
}

func (s *soundness) checkEntries(d *draft) bool {
	for _, i := range d.pieces {
		p := &s.r.code.pieces[i]
		if p.first != d.entry && !slices.Contains(d.others, p.first) && s.isEntered(d, p) {
			d.leave("has a second entry at %x", p.Lo)
		}
	}
	if at, ok := s.secondSymbol(d); ok {
		d.leave("has a second entry at %x", at)
	}
	return true
}

// checkMiddles leaves out what may be entered in its middle by what no jump or call shows.
func (s *soundness) checkMiddles(d *draft) bool {
	if s.splitsStack(d) {
		d.leave("may be entered in its middle, on another stack (-fsplit-stack)")
	}
	if i, ok := s.startsThread(d); ok {
		d.leave("starts threads in its middle at %x", s.r.code.insns[i].Addr)
	}
	if i, ok := s.r.receiver(d); ok {
		d.leave("may be entered in its middle at %x (address taken)", s.r.code.insns[i].Addr)
	}
	return true
}

// splitsStack says whether the routine may be called anew in its middle, where too little of its
// stack is left: it compares that with the limit in its thread's control block or, where its frame
// is large, calls __morestack in any case.
func (s *soundness) splitsStack(d *draft) bool {
	const limit = 0x70 // in fs
	entry := s.r.blocks.blockOf(d.entry)
	for i := range d.blocks[entry].Insns {
		e := s.r.code.effects(int(d.first[entry]) + i)
		if at := e.Src; e.Operation == x86.Cmp && e.Elsewhere() && at.Mem && !at.RIP &&
			at.Base < 0 && at.Index < 0 && at.Disp == limit {
			return true
		}
	}
	for b := range d.blocks {
		if d.blocks[b].End != Call {
			continue
		}
		if callee := s.r.code.findPiece(d.blocks[b].Target); callee >= 0 &&
			strings.HasPrefix(s.r.code.pieces[callee].symbol, "__morestack") {
			return true
		}
	}
	return false
}

// startsThread finds a system call by which a thread may begin to run behind it: the library's
// clone has unwind rows that say so. A number that is not known is no sign of one: who hands a
// number to a function that makes system calls has no new stack for it to return on.
func (s *soundness) startsThread(d *draft) (insn int, found bool) {
	const clone, clone3 = 56, 435
	var values *jumptable.Resolver
	for b := range d.blocks {
		for k := range d.blocks[b].Insns {
			if d.blocks[b].Insns[k].Kind != x86.Syscall {
				continue
			}
			if values == nil {
				values = jumptable.New(s.r.input(d))
			}
			starts := false
			known := values.Origins(x86.RAX, b, k, func(v absint.Value, _ bool) bool {
				starts = starts || v.Form == absint.Constant && (v.Off == clone || v.Off == clone3)
				return true
			})
			if starts || !known {
				return int(d.first[b]) + k, true
			}
		}
	}
	return 0, false
}

// isOutermost says whether the routine has no caller by its unwind rows.
func (s *soundness) isOutermost(d *draft) bool {
	return slices.ContainsFunc(d.pieces, func(i int) bool {
		rows := s.r.code.pieces[i].Rows
		return len(rows) > 0 && rows[0].RA == image.RAUndefined
	})
}

// isEntered says whether a part of a routine may be entered from outside. A mention of a part that
// is entered with a frame already, or by a table of the routine's, is no pointer to a function; a
// table of another routine may lead to it.
func (s *soundness) isEntered(d *draft, p *piece) bool {
	if p.called || p.entered || p.symbol != "" && !isPart(p.symbol) {
		return true
	}
	if !p.inTable && (!s.r.file.references.has(p.Lo) || image.RowAt(p.Rows, p.Lo).CFA != absint.EntryCFA) {
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
func (s *soundness) secondSymbol(d *draft) (addr uint64, ok bool) {
	symbols := s.r.file.im.Symbols()
	for _, i := range d.pieces {
		p := &s.r.code.pieces[i]
		at, _ := slices.BinarySearchFunc(symbols, p.Lo+1,
			func(s image.Symbol, addr uint64) int { return cmp.Compare(s.Addr, addr) })
		for ; at < len(symbols) && symbols[at].Addr < p.Hi; at++ {
			if s.r.code.find(symbols[at].Addr) >= 0 {
				return symbols[at].Addr, true
			}
		}
	}
	return 0, false
}

// checkParts leaves the routine out when nothing leads to one of its parts.
func (s *soundness) checkParts(d *draft) bool {
	for _, i := range d.pieces {
		p := &s.r.code.pieces[i]
		isReached := p.first == p.last // what does not decode is another check's
		for k := p.first; k < p.last && !isReached; k++ {
			isReached = s.r.blocks.isReached(k)
		}
		if !isReached {
			d.leave("nothing leads to its part at %x", p.Lo)
		}
	}
	return true
}

// routine makes the final routine of a draft.
func (s *soundness) routine(d *draft) *Routine {
	var ranges []*image.Range
	var code [][]byte
	for _, i := range d.pieces {
		ranges = append(ranges, s.r.code.pieces[i].Range)
		code = append(code, s.r.code.pieces[i].code)
	}
	out := NewRoutine(ranges, code)
	out.Addr, out.Symbol, out.Blocks, out.Pads = d.addr, s.r.file.names[d.addr], d.blocks, d.pads
	out.Faulty = d.faulty && len(d.pads) > 0
	if d.entry >= 0 {
		out.Entry = s.r.blocks.blockOf(d.entry)
		for _, i := range d.others {
			out.Others = append(out.Others, s.r.blocks.blockOf(i))
		}
	}
	for b := range out.Blocks {
		if out.Blocks[b].End == Table {
			out.Blocks[b].Table = s.finish(d.tables[d.last(b)])
		}
	}
	return out
}

// finish translates a table into block indices.
func (s *soundness) finish(t *jumptable.Table) *JumpTable {
	out := &JumpTable{Check: t.Check.Block, Index: t.Check.Index, Bias: t.Check.Bias}
	if t.Indexed {
		out.Targets = make([]int, len(t.Targets))
		for i, to := range t.Targets {
			out.Targets[i] = s.r.blocks.blockOf(to)
		}
	}
	return out
}
