package cfg

import (
	"slices"
	"strings"

	"wpptrace/internal/parallel"
	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/cfg/jumptable"
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
	{"parts", func(s *soundness, d *draft) bool { s.r.blocks.checkParts(d); return true }},
	{"second entries", (*soundness).checkEntries},
	{"middles", (*soundness).checkMiddles},
	{"frame", func(s *soundness, d *draft) bool { d.saves = s.r.analyseFrame(d); return true }},
}

// A programCheck looks at all routines. One that leaves out none finds what later ones ask for.
type programCheck struct {
	name string
	run  func(s *soundness)
}

var programChecks = []programCheck{
	{"routines", (*soundness).checkRoutines},
	{"restartable sequences", func(s *soundness) { s.r.leaveOutRestarts() }},
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
	names     map[uint64]string
	taken     *distances
	transfers []int32
	linkage   *linkage
}

// checkRoutines makes the final routines, too.
func (s *soundness) checkRoutines() {
	parallel.Both(func() { s.taken = s.r.findTaken() },
		func() { s.transfers = s.r.findTransfers() })
	parallel.Each(len(s.kept), func(i int) {
		d := s.kept[i]
		d.saves = false
		for _, c := range routineChecks {
			if !c.run(s, d) {
				break
			}
		}
		d.made = s.r.routine(d, s.names[d.addr])
	})
}

// number gives the routines, and those of which only a symbol is known, their numbers, by address.
func (s *soundness) number() {
	p, bare := s.program, s.r.file.uncovered(s.names)
	for _, d := range s.kept {
		if d.saves {
			p.twice[d.addr] = true
		}
		for ; len(bare) > 0 && bare[0].Addr < d.addr; bare = bare[1:] {
			p.add(bare[0])
		}
		for _, at := range d.others {
			p.others[s.r.code.insns[at].Addr] = d.made
		}
		p.add(d.made)
	}
	for _, b := range bare {
		p.add(b)
	}
}

func (s *soundness) checkLinkage() {
	s.linkage = newLinkage(s.program, s.taken, s.transfers)
	s.linkage.leaveOut()
}

func (s *soundness) findPointers() {
	for _, d := range s.kept {
		s.program.addressTaken[d.made.ID] = s.taken.isTaken(d)
	}
}

func (s *soundness) checkTransactions() {
	main := s.program.Main()
	s.r.leaveOutTransactions(s.kept, func(d *draft) bool {
		return s.program.addressTaken[d.made.ID] && d.made != main && d.addr != s.r.file.im.Entry
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
	if !s.r.file.isOutermost(d) {
		return true
	}
	if d.addr == s.r.file.im.Entry && !d.returns {
		s.r.blocks.checkParts(d)
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

// checkParts leaves the routine out when nothing leads to one of its parts.
func (bd *builder) checkParts(d *draft) {
	for _, i := range d.pieces {
		p := &bd.code.pieces[i]
		isReached := func(m uint8) bool { return m&reached != 0 }
		if p.first < p.last && !slices.ContainsFunc(bd.marks[p.first:p.last], isReached) {
			d.leave("nothing leads to its part at %x", p.Lo)
		}
	}
}

func (s *soundness) checkEntries(d *draft) bool {
	for _, i := range d.pieces {
		p := &s.r.code.pieces[i]
		if p.first != d.entry && !slices.Contains(d.others, p.first) && s.r.file.isEntered(d, p) {
			d.leave("has a second entry at %x", p.Lo)
		}
	}
	if at, ok := s.r.file.secondSymbol(d); ok {
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
	entry := s.r.blocks.blockAt[d.entry]
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
