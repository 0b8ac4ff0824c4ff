package cfg

import (
	"sort"

	"wpptrace/internal/parallel"
	"wpptrace/loader/cfg/jumptable"
	"wpptrace/loader/x86"
)

// A linkage is how the routines of a program enter each other, by which some cannot be traced, or
// may return twice. Of a routine that is left out it counts what control flow is not known to reach
// as well: it may run.
type linkage struct {
	r        *recovery
	code     *code
	program  *Program
	facts    *Facts
	pointers *distances // by which routines are taken
	// instructions: direct calls, jumps that leave their routine, both through a slot
	transfers []int32
	// what changes where it returns to: behind a call of it there may be data
	changesReturn map[uint64]bool
	searched      map[*draft]bool // see searchUnseen
	inspected     int             // bytes, see searchCode
	// code that no control flow reaches is taken to run, in whatever routine
	allRuns bool
}

// newLinkage begins with the ways between the routines, and what these do with their return
// addresses.
func newLinkage(p *Program, facts *Facts, taken *distances, ways []int32) *linkage {
	l := &linkage{r: taken.r, code: taken.code, program: p, facts: facts, pointers: taken, transfers: ways,
		changesReturn: map[uint64]bool{}, searched: map[*draft]bool{}}
	l.findUses()
	return l
}

// findTransfers finds the ways between the routines, once all are built.
func findTransfers(r *recovery) (ways []int32) {
	for i := range r.code.insns {
		switch q := &r.code.insns[i]; {
		case q.Kind == x86.Call, (q.Kind == x86.JmpInd || q.Kind == x86.CallInd) &&
			q.IsRIPRelative():
		case !q.Kind.IsRelative() || r.file.inside(r.routineOf(i).id, int(r.code.target[i])) >= 0:
			continue
		}
		ways = append(ways, int32(i))
	}
	return ways
}

// routineOf returns the routine that instruction i belongs to.
func (r *recovery) routineOf(i int) *draft { return r.drafts[r.code.pieces[r.code.pieceOf[i]].routine] }

// to returns the routine that the call or jump i enters, also in its middle, or nil.
func (l *linkage) to(i int) *draft {
	if t := l.code.target[i]; t >= 0 {
		return l.r.routineOf(int(t))
	}
	return nil
}

func (b *builder) isReached(i int) bool { return b.marks[i]&reached != 0 }

// mayRun says whether instruction i is known to be reached, or its routine is left out.
func (l *linkage) mayRun(i int) bool { return l.r.blocks.isReached(i) || l.isUnknown(l.r.routineOf(i)) }

// isUnknown says whether any code of a routine may run.
func (l *linkage) isUnknown(d *draft) bool { return d.leftOut != "" || l.allRuns }

// findUses looks at what the routines, and the code that no frame description entry covers, do with
// their return addresses.
func (l *linkage) findUses() {
	for _, d := range l.r.drafts {
		if d.moves {
			l.changesReturn[d.addr] = true
		}
	}
	for _, i := range l.transfers {
		q := &l.code.insns[i]
		to := q.target()
		if !q.Kind.IsRelative() || l.code.target[i] >= 0 || l.r.file.isStub(to) {
			continue
		}
		use := l.r.returns.returnUse(to)
		if use.saves {
			l.facts.Twice[to] = true
		}
		if use.moves || use.drops && (q.Kind == x86.Call || l.r.file.isFrameless(int(i))) {
			l.changesReturn[to] = true
		}
	}
}

// mostRounds bounds how often the linkage is gone through because a routine led to another: real
// programs take two or three.
const mostRounds = 16

// leaveOut leaves out the routines that others, or calls of others, keep from being traced. With
// each one left out more code may run; at the bound all is taken for such.
func (l *linkage) leaveOut() {
	again := true
	for round := 0; again; round++ {
		l.allRuns = round >= mostRounds
		before := l.countLeftOut()
		for _, c := range linkageChecks {
			c.run(l)
		}
		again = before < l.countLeftOut()
	}
}

func (l *linkage) countLeftOut() (n int) {
	for _, d := range l.r.drafts {
		if d.leftOut != "" {
			n++
		}
	}
	return n
}

// leaveOutThunkUsers leaves out the routines that jump to a thunk: it may return in their place.
func (l *linkage) leaveOutThunkUsers() {
	for _, i := range l.transfers {
		if from, to := l.r.routineOf(int(i)), l.to(int(i)); l.code.insns[i].Kind != x86.Call &&
			to != nil && from != to && to.thunk && l.r.blocks.isReached(int(i)) {
			from.leave("jumps to a thunk at %x", l.code.insns[i].Addr)
		}
	}
}

// leaveOutMovers leaves out the routines that call one which changes where it returns to, or one
// that ends by a jump to such.
func (l *linkage) leaveOutMovers() {
	if len(l.changesReturn) == 0 {
		return
	}
	l.tailJumps().spread(l.changesReturn)
	for _, i := range l.transfers {
		if kind := l.code.insns[i].Kind; kind != x86.Call && kind != x86.CallInd ||
			!l.r.blocks.isReached(int(i)) {
			continue
		}
		l.eachLead(int(i), func(addr uint64) {
			if l.changesReturn[addr] {
				l.r.routineOf(int(i)).leave("calls what may return elsewhere at %x",
					l.code.insns[i].Addr)
			}
		})
	}
	parallel.Each(len(l.r.drafts), func(i int) {
		if d := l.r.drafts[i]; d.leftOut == "" && d.has(CallInd) && l.names(d, l.changesReturn) {
			d.leave("may call through a pointer what may return elsewhere")
		}
	})
}

// leaveOutMiddles leaves out the routines that another one calls or jumps to in their middle, or
// may, by a table of which it is not known where it ends.
func (l *linkage) leaveOutMiddles() {
	for _, way := range l.transfers {
		i := int(way)
		t := int(l.code.target[i])
		isEntry := l.r.routineAt(t) >= 0
		switch {
		case !l.code.insns[i].Kind.IsRelative() || !l.mayRun(i) ||
			isEntry && l.r.blocks.isReached(i):
		case !isEntry && t >= 0 && l.code.insns[i].Kind != x86.Call &&
			l.code.pieces[l.code.pieceOf[t]].first == t && l.r.routineOf(i).entry >= 0 &&
			l.r.routineOf(i).isAbsent(l.r.file, l.code.frameAt(i), l.code.insns[t].Addr, t):
			// Never taken: what lies there is a part of another routine.
		default:
			l.enter(&l.code.insns[i], l.r.routineOf(i))
		}
	}
	for _, d := range l.r.drafts {
		for _, i := range d.contested {
			if to := l.r.routineOf(i); d.leftOut != "" && to != d {
				to.leave("jumped to in its middle at %x", l.code.insns[i].Addr)
			}
		}
	}
	l.leaveOutShared()
}

// leaveOutShared leaves out the routines with a part that linkers may have made another's as well,
// and to which data leads otherwise than by the routine's own tables: so may a jump of which it is
// not known where it leads, also one in code of no routine.
func (l *linkage) leaveOutShared() {
	for _, d := range l.r.drafts {
		if d.leftOut != "" || len(d.pieces) < 2 {
			continue
		}
		own := jumptable.Targets(d.tables)
		for _, k := range d.pieces {
			p := &l.code.pieces[k]
			if p.back || !p.isCold() {
				continue
			}
			for at, ok := l.r.file.dataReferences.next(p.Lo,
				p.Hi); ok; at, ok = l.r.file.dataReferences.next(at+1, p.Hi) {
				if i := l.code.find(at); i >= 0 && !own[i] {
					d.leave("jumped to in its middle at %x", at)
				}
			}
		}
	}
}

// enter notes where a call or jump leads that no known control flow makes or that enters a routine
// in its middle. from may be nil: code in no routine.
func (l *linkage) enter(q *Insn, from *draft) {
	p := l.code.findPiece(q.target())
	if p < 0 {
		return
	}
	to := l.r.drafts[l.code.pieces[p].routine]
	switch id := l.r.routineAt(l.code.find(q.target())); {
	case id >= 0:
		l.pointers.taken[id] = true
	case to == from:
	case q.Kind == x86.Call:
		to.leave("called in its middle at %x", q.target())
	default:
		to.leave("jumped to in its middle at %x", q.target())
	}
}

// searchUnseen searches code that control flow is not known to reach: what no frame description
// entry covers, and such of the routines that are left out. Each of its bytes may begin an
// instruction, for there may be data before it.
func (l *linkage) searchUnseen() {
	if !l.searched[nil] {
		for i := range l.r.file.im.Sections {
			if s := &l.r.file.im.Sections[i]; s.Exec && !isStubs(s) {
				l.code.eachUncovered(s, func(lo, hi uint64) {
					l.searchCode(s.Data[lo-s.Addr:hi-s.Addr], lo, nil)
					l.eachSequence(lo, hi,
						func(lo, hi uint64) { l.followCode(s.Data[lo-s.Addr:hi-s.Addr], lo) })
				})
			}
		}
		l.searched[nil] = true
	}
	for _, d := range l.r.drafts {
		if l.isUnknown(d) && !l.searched[d] {
			l.r.blocks.eachUnreached(d,
				func(code []byte, addr uint64) { l.searchCode(code, addr, d) })
			l.searched[d] = true
		}
	}
}

// mostSearched is many times the bytes of code that programs have in no routine, or in routines
// that are left out. Where there are more, all routines are taken for entered by pointers.
const mostSearched = 64 << 20

// searchCode decodes code from each of its bytes, for direct calls and jumps, and for what
// instructions name. Those of few bytes are left to sequences, for too many bytes look like one.
func (l *linkage) searchCode(code []byte, addr uint64, from *draft) {
	const shortest = 5
	if l.inspected += len(code); l.inspected > mostSearched {
		l.pointers.left = -1
		return
	}
	for ; len(code) >= shortest; code, addr = code[1:], addr+1 {
		if n := startsDestructors(code, addr); n > 0 {
			code, addr = code[n:], addr+uint64(n)
		}
		if code[0] == 0 || x86.IsFiller(code[0]) {
			continue
		}
		in, ok := x86.Decode(code)
		if !ok || in.Len < shortest {
			continue
		}
		q := Insn{Addr: addr, Inst: in}
		if q.Kind.IsRelative() {
			l.enter(&q, from)
		}
		eachOperand(&q, code[:in.Len], !l.r.file.im.PIE, l.pointers.note)
	}
}

// eachSequence calls back for what may be one instruction after the other: a part of a section as a
// whole, and from each symbol in it to the next.
func (l *linkage) eachSequence(lo, hi uint64, visit func(lo, hi uint64)) {
	visit(lo, hi)
	symbols := l.r.file.im.Symbols()
	i := sort.Search(len(symbols), func(i int) bool { return symbols[i].Addr >= lo })
	for ; i < len(symbols) && symbols[i].Addr < hi; i++ {
		end := hi
		if i+1 < len(symbols) {
			end = min(hi, symbols[i+1].Addr)
		}
		visit(symbols[i].Addr, end)
	}
}

// followCode follows a sequence of instructions of code in no routine for its calls and jumps.
func (l *linkage) followCode(code []byte, addr uint64) {
	for len(code) > 0 {
		in, ok := x86.Decode(code)
		if q := (Insn{Addr: addr, Inst: in}); ok && q.Kind.IsRelative() {
			l.enter(&q, nil)
		}
		n := max(int(in.Len), 1)
		code, addr = code[n:], addr+uint64(n)
	}
}

// tailJumps lists the routines that may end by a jump to an address: an entry, a linkage stub, a
// slot of the global offset table, code in no routine.
type tailJumps map[uint64][]*draft

func (l *linkage) tailJumps() tailJumps {
	jumps := tailJumps{}
	for _, i := range l.transfers {
		if kind := l.code.insns[i].Kind; kind != x86.Call && kind != x86.CallInd &&
			l.mayRun(int(i)) {
			l.eachLead(int(i),
				func(addr uint64) { jumps[addr] = append(jumps[addr], l.r.routineOf(int(i))) })
		}
	}
	for _, d := range l.r.drafts {
		if l.mayJumpIndirectly(d) {
			l.eachName(d, func(addr uint64) { jumps[addr] = append(jumps[addr], d) })
		}
	}
	return jumps
}

// eachLead calls back with where a call or jump goes, directly or through a slot. A routine has its
// address, though it has other entries.
func (l *linkage) eachLead(way int, visit func(addr uint64)) {
	if !l.code.insns[way].Kind.IsRelative() {
		_, slot, _ := l.code.operands(way)
		l.eachNamed(uint64(slot.Disp), visit)
	} else if id := l.r.routineAt(int(l.code.target[way])); id >= 0 {
		visit(l.r.drafts[id].addr)
	} else {
		visit(l.code.insns[way].target())
	}
}

// eachNamed calls back with what an instruction names with an address: that, and what a slot there
// holds.
func (l *linkage) eachNamed(addr uint64, visit func(addr uint64)) {
	visit(addr)
	if r := l.program.InSlot(addr); r != nil {
		visit(r.Addr)
	}
}

// spread adds to a set of addresses those of the routines that may end by a jump to one of it.
func (jumps tailJumps) spread(set map[uint64]bool) {
	work := make([]uint64, 0, len(set))
	for addr := range set {
		work = append(work, addr)
	}
	for len(work) > 0 {
		last := len(work) - 1
		from := jumps[work[last]]
		work = work[:last]
		for _, d := range from {
			if !set[d.addr] {
				set[d.addr] = true
				work = append(work, d.addr)
			}
		}
	}
}
