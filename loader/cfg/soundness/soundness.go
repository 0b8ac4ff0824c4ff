package soundness

import (
	"cmp"
	"slices"
	"strings"

	"wpptrace/internal/parallel"
	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/cfg/draft"
	"wpptrace/loader/cfg/jumptable"
	"wpptrace/loader/cfg/sweep"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// What is to be left out is decided by the checks that stand here, each with a name, in this order.

// A routineCheck looks at one routine whose blocks are finished, and at no other: routines are
// checked several at a time. It answers false if the routine needs no further ones.
type routineCheck struct {
	name string
	run  func(s *soundness, d *draft.Routine) (goOn bool)
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
	{"frame", func(s *soundness,
		d *draft.Routine) bool {
		d.Saves = analyseFrame(s.r, d)
		return true
	}},
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
	r         *draft.Program
	kept      []*draft.Routine
	program   *cfg.Program
	facts     *cfg.Facts
	taken     *distances
	transfers []int32
	linkage   *linkage
}

// Check makes the program of routines that are built, and leaves out those that cannot be traced:
// each has its reason, also in its draft. Cost: about a third of what building them takes.
func Check(r *draft.Program) *cfg.Program {
	s := &soundness{r: r, facts: &cfg.Facts{
		Entries: map[uint64]*cfg.Routine{}, Twice: map[uint64]bool{}, LoadsTwice: map[int]bool{},
		Imports: r.File.Imports,
	}}
	s.kept = slices.DeleteFunc(slices.Clone(r.Routines),
		func(d *draft.Routine) bool { return d.Adopter != nil })
	for _, c := range programChecks {
		c.run(s)
	}
	for _, d := range s.kept {
		d.Made.LeftOut, d.Made.Cause = d.LeftOut, d.Cause
	}
	return s.program
}

// checkRoutines makes the final routines, too.
func (s *soundness) checkRoutines() {
	parallel.Both(func() { s.taken = findTaken(s.r) },
		func() { s.transfers = findTransfers(s.r) })
	parallel.Each(len(s.kept), func(i int) {
		d := s.kept[i]
		d.Saves = false
		for _, c := range routineChecks {
			if !c.run(s, d) {
				break
			}
		}
		d.Made = s.routine(d)
	})
}

// number puts the routines, and those of which only a symbol is known, into a program, by address.
func (s *soundness) number() {
	bare := s.r.File.Uncovered()
	routines := make([]*cfg.Routine, 0, len(s.kept)+len(bare))
	for _, d := range s.kept {
		if d.Saves {
			s.facts.Twice[d.Addr] = true
		}
		for ; len(bare) > 0 && bare[0].Addr < d.Addr; bare = bare[1:] {
			routines = append(routines, bare[0])
		}
		for _, at := range d.Others {
			s.facts.Entries[s.r.Code.Insns[at].Addr] = d.Made
		}
		routines = append(routines, d.Made)
	}
	s.program = cfg.NewProgram(s.r.File.Image, append(routines, bare...), s.facts)
}

func (s *soundness) checkLinkage() {
	s.linkage = newLinkage(s.program, s.facts, s.taken, s.transfers)
	s.linkage.leaveOut()
}

func (s *soundness) findPointers() {
	for _, d := range s.kept {
		s.facts.AddressTaken[d.Made.ID] = s.taken.isTaken(d)
	}
}

func (s *soundness) checkTransactions() {
	main := s.program.Main()
	leaveOutTransactions(s.r, s.kept, func(d *draft.Routine) bool {
		return s.facts.AddressTaken[d.Made.ID] && d.Made != main && d.Addr != s.r.File.Image.Entry
	})
}

func (s *soundness) checkEntry(d *draft.Routine) bool {
	if d.Entry < 0 {
		d.Leave("bytes at %x do not decode", d.Addr)
	}
	return d.Entry >= 0
}

func (s *soundness) checkFaults(d *draft.Routine) bool {
	for _, i := range d.Pieces {
		p := &s.r.Code.Pieces[i]
		if p.Signal {
			d.Leave("signal trampoline")
		}
		if p.Fault() != "" {
			d.Leave(p.Fault()+" at %x", p.Lo)
		}
	}
	return true
}

func (s *soundness) checkOutermost(d *draft.Routine) bool {
	if !s.isOutermost(d) {
		return true
	}
	if d.Addr == s.r.File.Image.Entry && !d.Returns {
		s.checkParts(d)
		return false // it is entered once, and its frame is nobody's caller
	}
	d.Leave("outermost frame (no caller)")
	return true
}

func (s *soundness) checkEntryFrame(d *draft.Routine) bool {
	if !s.r.File.IsFrameless(d.Entry) {
		d.Leave("what enters it with a frame at %x is not known", d.Addr)
	}
	return true
}

func (s *soundness) checkIndirectJumps(d *draft.Routine) bool {
	for b := range d.Blocks {
		if d.Blocks[b].End == cfg.Unresolved {
			d.Leave("unresolved indirect jump at %x", s.r.Code.Insns[d.Last(b)].Addr)
		}
	}
	return true
}

func (s *soundness) checkEntries(d *draft.Routine) bool {
	for _, i := range d.Pieces {
		p := &s.r.Code.Pieces[i]
		if p.First != d.Entry && !slices.Contains(d.Others, p.First) && s.isEntered(d, p) {
			d.Leave("has a second entry at %x", p.Lo)
		}
	}
	if at, ok := s.secondSymbol(d); ok {
		d.Leave("has a second entry at %x", at)
	}
	return true
}

// checkMiddles leaves out what may be entered in its middle by what no jump or call shows.
func (s *soundness) checkMiddles(d *draft.Routine) bool {
	if s.splitsStack(d) {
		d.Leave("may be entered in its middle, on another stack (-fsplit-stack)")
	}
	if i, ok := s.startsThread(d); ok {
		d.Leave("starts threads in its middle at %x", s.r.Code.Insns[i].Addr)
	}
	if i, ok := s.r.Receiver(d); ok {
		d.Leave("may be entered in its middle at %x (address taken)", s.r.Code.Insns[i].Addr)
	}
	return true
}

// splitsStack says whether the routine may be called anew in its middle, where too little of its
// stack is left: it compares that with the limit in its thread's control block or, where its frame
// is large, calls __morestack in any case.
func (s *soundness) splitsStack(d *draft.Routine) bool {
	const limit = 0x70 // in fs
	entry := s.r.Blocks.BlockOf(d.Entry)
	for i := range d.Blocks[entry].Insns {
		if !d.Blocks[entry].Insns[i].Elsewhere() { // most: decoded no further
			continue
		}
		e := s.r.Code.Effects(int(d.First[entry]) + i)
		if at := e.Src; e.Operation == x86.Cmp && at.Mem && !at.RIP &&
			at.Base < 0 && at.Index < 0 && at.Disp == limit {
			return true
		}
	}
	for b := range d.Blocks {
		if d.Blocks[b].End != cfg.Call {
			continue
		}
		if callee := s.r.Code.FindPiece(d.Blocks[b].Target); callee >= 0 &&
			strings.HasPrefix(s.r.Code.Pieces[callee].Symbol, "__morestack") {
			return true
		}
	}
	return false
}

// startsThread finds a system call by which a thread may begin to run behind it: the library's
// clone has unwind rows that say so. A number that is not known is no sign of one: who hands a
// number to a function that makes system calls has no new stack for it to return on.
func (s *soundness) startsThread(d *draft.Routine) (insn int, found bool) {
	const clone, clone3 = 56, 435
	var values *jumptable.Resolver
	for b := range d.Blocks {
		for k := range d.Blocks[b].Insns {
			if d.Blocks[b].Insns[k].Kind != x86.Syscall {
				continue
			}
			if values == nil {
				values = jumptable.New(s.r.Input(d))
			}
			starts := false
			known := values.Origins(x86.RAX, b, k, func(v absint.Value, _ bool) bool {
				starts = starts || v.Form == absint.Constant && (v.Off == clone || v.Off == clone3)
				return true
			})
			if starts || !known {
				return int(d.First[b]) + k, true
			}
		}
	}
	return 0, false
}

// isOutermost says whether the routine has no caller by its unwind rows.
func (s *soundness) isOutermost(d *draft.Routine) bool {
	return slices.ContainsFunc(d.Pieces, func(i int) bool {
		rows := s.r.Code.Pieces[i].Rows()
		return len(rows) > 0 && rows[0].RA == image.RAUndefined
	})
}

// isEntered says whether a part of a routine may be entered from outside. A mention of a part that
// is entered with a frame already, or by a table of the routine's, is no pointer to a function; a
// table of another routine may lead to it.
func (s *soundness) isEntered(d *draft.Routine, p *sweep.Piece) bool {
	if p.Called || p.Entered || p.Symbol != "" && !sweep.IsPart(p.Symbol) {
		return true
	}
	if !p.InTable && (!s.r.File.References.Has(p.Lo) ||
		p.CFA(p.Lo) != absint.EntryCFA) {
		return false
	}
	for _, t := range d.Tables {
		if slices.Contains(t.Targets, p.First) {
			return false
		}
	}
	return true
}

// secondSymbol returns where a function begins amidst the routine, by its symbol: hand-written ones
// may run into another.
func (s *soundness) secondSymbol(d *draft.Routine) (addr uint64, ok bool) {
	symbols := s.r.File.Image.Symbols()
	for _, i := range d.Pieces {
		p := &s.r.Code.Pieces[i]
		at, _ := slices.BinarySearchFunc(symbols, p.Lo+1,
			func(s image.Symbol, addr uint64) int { return cmp.Compare(s.Addr, addr) })
		for ; at < len(symbols) && symbols[at].Addr < p.Hi; at++ {
			if s.r.Code.Find(symbols[at].Addr) >= 0 {
				return symbols[at].Addr, true
			}
		}
	}
	return 0, false
}

// checkParts leaves the routine out when nothing leads to one of its parts.
func (s *soundness) checkParts(d *draft.Routine) bool {
	for _, i := range d.Pieces {
		p := &s.r.Code.Pieces[i]
		isReached := p.First == p.Last // what does not decode is another check's
		for k := p.First; k < p.Last && !isReached; k++ {
			isReached = s.r.Blocks.IsReached(k)
		}
		if !isReached {
			d.Leave("nothing leads to its part at %x", p.Lo)
		}
	}
	return true
}

// routine makes the final routine of a draft.
func (s *soundness) routine(d *draft.Routine) *cfg.Routine {
	parts := make([]cfg.Part, len(d.Pieces))
	for i, k := range d.Pieces {
		p := &s.r.Code.Pieces[k]
		parts[i] = cfg.Part{Lo: p.Lo, Hi: p.Hi, Rows: p.Rows(), Code: p.Text()}
	}
	out := cfg.NewRoutine(parts)
	out.Addr, out.Symbol, out.Blocks, out.Pads = d.Addr, s.r.File.NameAt(d.Addr), d.Blocks, d.Pads
	out.Faulty = d.Faulty && len(d.Pads) > 0
	if d.Entry >= 0 {
		out.Entry = s.r.Blocks.BlockOf(d.Entry)
		for _, i := range d.Others {
			out.Others = append(out.Others, s.r.Blocks.BlockOf(i))
		}
	}
	for b := range out.Blocks {
		if out.Blocks[b].End == cfg.Table {
			out.Blocks[b].Table = s.finish(d.Tables[d.Last(b)])
		}
	}
	return out
}

// finish translates a table into block indices.
func (s *soundness) finish(t *jumptable.Table) *cfg.JumpTable {
	out := &cfg.JumpTable{Check: t.Check.Block, Index: t.Check.Index, Bias: t.Check.Bias}
	if t.Indexed {
		out.Targets = make([]int, len(t.Targets))
		for i, to := range t.Targets {
			out.Targets[i] = s.r.Blocks.BlockOf(to)
		}
	}
	return out
}
