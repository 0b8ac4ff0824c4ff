package soundness

import (
	"sort"

	"wpptrace/internal/parallel"
	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/draft"
	"wpptrace/loader/cfg/jumptable"
	"wpptrace/loader/cfg/sweep"
	"wpptrace/loader/x86"
)

// A linkage is how the routines of a program enter each other, by which some cannot be traced, or
// may return twice. Of a routine that is left out it counts what control flow is not known to reach
// as well: it may run.
type linkage struct {
	r        *draft.Program
	code     *sweep.Code
	program  *cfg.Program
	facts    *cfg.Facts
	pointers *distances // by which routines are taken
	// instructions: direct calls, jumps that leave their routine, both through a slot
	transfers []int32
	// what changes where it returns to: behind a call of it there may be data
	changesReturn map[uint64]bool
	searched      map[*draft.Routine]bool // see searchUnseen
	inspected     int                     // bytes, see searchCode
	// code that no control flow reaches is taken to run, in whatever routine
	allRuns bool
}

// newLinkage begins with the ways between the routines, and what these do with their return
// addresses.
func newLinkage(p *cfg.Program, facts *cfg.Facts, taken *distances, ways []int32) *linkage {
	l := &linkage{r: taken.r, code: taken.code, program: p, facts: facts, pointers: taken,
		transfers:     ways,
		changesReturn: map[uint64]bool{}, searched: map[*draft.Routine]bool{}}
	l.findUses()
	return l
}

// findTransfers finds the ways between the routines, once all are built.
func findTransfers(r *draft.Program) (ways []int32) {
	r.EachInsn(func(i int) {
		switch q := &r.Code.Insns[i]; {
		case q.Kind == x86.Call, (q.Kind == x86.JmpInd || q.Kind == x86.CallInd) &&
			q.IsRIPRelative():
		case !q.Kind.IsRelative() || r.File.Inside(r.RoutineOf(i).ID, int(r.Code.Target[i])) >= 0:
			return
		}
		ways = append(ways, int32(i))
	})
	return ways
}

// to returns the routine that the call or jump i enters, also in its middle, or nil: one that is
// not recovered is no thunk.
func (l *linkage) to(i int) *draft.Routine {
	if t := l.code.Target[i]; t >= 0 {
		return l.r.RoutineOf(int(t))
	}
	return nil
}

// mayRun says whether instruction i is known to be reached, or its routine is left out.
func (l *linkage) mayRun(i int) bool {
	return l.r.Blocks.IsReached(i) || l.isUnknown(l.r.RoutineOf(i))
}

// isUnknown says whether any code of a routine may run.
func (l *linkage) isUnknown(d *draft.Routine) bool { return d.LeftOut != "" || l.allRuns }

// findUses looks at what the routines, and the code that no frame description entry covers, do with
// their return addresses.
func (l *linkage) findUses() {
	for _, d := range l.r.Routines {
		if d.Moves {
			l.changesReturn[d.Addr] = true
		}
	}
	for _, i := range l.transfers {
		q := &l.code.Insns[i]
		to := q.Target()
		if !q.Kind.IsRelative() || l.code.Target[i] >= 0 || l.r.File.IsStub(to) {
			continue
		}
		l.use(to, q.Kind == x86.Call || l.r.File.IsFrameless(int(i)))
	}
	l.r.EachStrayOutside(l.use)
}

// use looks at what code that no frame description entry covers does with its return address. gone:
// it is called, or jumped to where the frame is gone.
func (l *linkage) use(to uint64, gone bool) {
	use := l.r.Returns.ReturnUse(to)
	if use.Saves {
		l.facts.Twice[to] = true
	}
	if use.Moves || use.Drops && gone {
		l.changesReturn[to] = true
	}
}

// MostRounds bounds how often the linkage is gone through because a routine led to another: real
// programs take two or three.
const MostRounds = 16

// leaveOut leaves out the routines that others, or calls of others, keep from being traced. With
// each one left out more code may run; at the bound all is taken for such.
func (l *linkage) leaveOut() {
	again := true
	for round := 0; again; round++ {
		l.allRuns = round >= MostRounds
		before := l.countLeftOut()
		for _, c := range linkageChecks {
			c.run(l)
		}
		again = before < l.countLeftOut()
	}
}

func (l *linkage) countLeftOut() (n int) {
	for _, d := range l.r.Routines {
		if d.LeftOut != "" {
			n++
		}
	}
	return n
}

// leaveOutThunkUsers leaves out the routines that jump to a thunk: it may return in their place.
func (l *linkage) leaveOutThunkUsers() {
	for _, i := range l.transfers {
		if from, to := l.r.RoutineOf(int(i)), l.to(int(i)); l.code.Insns[i].Kind != x86.Call &&
			to != nil && from != to && to.Thunk && l.r.Blocks.IsReached(int(i)) {
			from.Leave("jumps to a thunk at %x", l.code.Insns[i].Addr)
		}
	}
}

// leaveOutMovers leaves out the routines that call one which changes where it returns to, or one
// that ends by a jump to such.
func (l *linkage) leaveOutMovers() {
	if len(l.changesReturn) == 0 {
		return
	}
	l.spread(l.tailJumps(), l.changesReturn)
	for _, i := range l.transfers {
		if kind := l.code.Insns[i].Kind; kind != x86.Call && kind != x86.CallInd ||
			!l.r.Blocks.IsReached(int(i)) {
			continue
		}
		l.eachLead(int(i), func(addr uint64) {
			if l.changesReturn[addr] {
				l.r.RoutineOf(int(i)).Leave("calls what may return elsewhere at %x",
					l.code.Insns[i].Addr)
			}
		})
	}
	parallel.Each(len(l.r.Routines), func(i int) {
		if d := l.r.Routines[i]; d.LeftOut == "" && d.Has(cfg.CallInd) && l.names(d,
			l.changesReturn) {
			d.Leave("may call through a pointer what may return elsewhere")
		}
	})
}

// leaveOutMiddles leaves out the routines that another one calls or jumps to in their middle, or
// may, by a table of which it is not known where it ends.
func (l *linkage) leaveOutMiddles() {
	for _, way := range l.transfers {
		i := int(way)
		t := int(l.code.Target[i])
		isEntry := l.r.RoutineAt(t) >= 0
		switch {
		case !l.code.Insns[i].Kind.IsRelative() || !l.mayRun(i) ||
			isEntry && l.r.Blocks.IsReached(i):
		case !isEntry && t >= 0 && l.code.Insns[i].Kind != x86.Call &&
			l.code.Pieces[l.code.PieceOf[t]].First == t && l.r.RoutineOf(i).Entry >= 0 &&
			l.r.RoutineOf(i).IsAbsent(l.r.File, l.code.FrameAt(i), l.code.Insns[t].Addr, t):
			// Never taken: what lies there is a part of another routine.
		default:
			l.enter(&l.code.Insns[i], l.r.RoutineOf(i))
		}
	}
	for _, d := range l.r.Routines {
		for _, i := range d.Contested {
			if to := l.r.RoutineOf(i); d.LeftOut != "" && to != nil && to != d {
				to.Leave("jumped to in its middle at %x", l.code.Insns[i].Addr)
			}
		}
	}
	l.r.EachEntryUnseen(func(d *draft.Routine, at uint64) {
		d.Leave("may be jumped to in its middle at %x by what is not recovered", at)
	})
	l.leaveOutShared()
}

// leaveOutShared leaves out the routines with a part that linkers may have made another's as well,
// and to which data leads otherwise than by the routine's own tables: so may a jump of which it is
// not known where it leads, also one in code of no routine.
func (l *linkage) leaveOutShared() {
	for _, d := range l.r.Routines {
		if d.LeftOut != "" || len(d.Pieces) < 2 {
			continue
		}
		own := jumptable.Targets(d.Tables)
		for _, k := range d.Pieces {
			p := &l.code.Pieces[k]
			if p.Back || !p.IsCold() {
				continue
			}
			for at, ok := l.r.File.DataReferences.Next(p.Lo,
				p.Hi); ok; at, ok = l.r.File.DataReferences.Next(at+1, p.Hi) {
				if i := l.code.Find(at); i >= 0 && !own[i] {
					d.Leave("jumped to in its middle at %x", at)
				}
			}
		}
	}
}

// enter notes where a call or jump leads that no known control flow makes or that enters a routine
// in its middle. from may be nil: code in no routine.
func (l *linkage) enter(q *cfg.Insn, from *draft.Routine) {
	p := l.code.FindPiece(q.Target())
	if p < 0 || !l.r.IsKnown(l.code.Pieces[p].Routine) {
		return
	}
	to := l.r.Routines[l.code.Pieces[p].Routine]
	switch id := l.r.RoutineAt(l.code.Find(q.Target())); {
	case id >= 0:
		l.pointers.taken[id] = true
	case to == from:
	case q.Kind == x86.Call:
		to.Leave("called in its middle at %x", q.Target())
	default:
		to.Leave("jumped to in its middle at %x", q.Target())
	}
}

// searchUnseen searches code that control flow is not known to reach: what no frame description
// entry covers, and such of the routines that are left out. Each of its bytes may begin an
// instruction, for there may be data before it.
func (l *linkage) searchUnseen() {
	if !l.searched[nil] {
		l.searchUncovered()
		l.searched[nil] = true
	}
	for _, d := range l.r.Routines {
		if l.isUnknown(d) && !l.searched[d] {
			l.r.Blocks.EachUnreached(d,
				func(code []byte, addr uint64) {
					l.searchCode(code, addr, func(q *cfg.Insn) { l.enter(q, d) })
				})
			l.searched[d] = true
		}
	}
}

// searchUncovered searches what no frame description entry covers. Of a survey, which others read,
// too, what it finds is kept: it is the same whatever is recovered.
func (l *linkage) searchUncovered() {
	v := l.r.Survey
	enter := func(q *cfg.Insn) { l.enter(q, nil) }
	if v != nil {
		if v.Uncovered == nil {
			found := &sweep.UncoveredCode{}
			l.eachUncovered(func(q *cfg.Insn) { found.Ways = append(found.Ways, *q) })
			v.Uncovered, found.Inspected = found, l.inspected
		}
		l.inspected = v.Uncovered.Inspected
		for i := range v.Uncovered.Ways {
			enter(&v.Uncovered.Ways[i])
		}
		return
	}
	l.eachUncovered(enter)
}

// eachUncovered calls back with what may be a direct call or jump where no frame description entry
// covers the code.
func (l *linkage) eachUncovered(visit func(q *cfg.Insn)) {
	for i := range l.r.File.Image.Sections {
		if s := &l.r.File.Image.Sections[i]; s.Exec && !sweep.IsStubs(s) {
			l.code.EachUncovered(s, func(lo, hi uint64) {
				l.searchCode(s.Data[lo-s.Addr:hi-s.Addr], lo, visit)
				l.eachSequence(lo, hi, func(lo, hi uint64) {
					followCode(s.Data[lo-s.Addr:hi-s.Addr], lo, visit)
				})
			})
		}
	}
}

// mostSearched is many times the bytes of code that programs have in no routine, or in routines
// that are left out. Where there are more, all routines are taken for entered by pointers.
const mostSearched = 64 << 20

// searchCode decodes code from each of its bytes, for direct calls and jumps, with which it calls
// back, and for what instructions name. Those of few bytes are left to sequences, for too many
// bytes look like one.
func (l *linkage) searchCode(code []byte, addr uint64, visit func(q *cfg.Insn)) {
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
		q := cfg.Insn{Addr: addr, Inst: in}
		if q.Kind.IsRelative() {
			visit(&q)
		}
		sweep.EachOperand(&q, code[:in.Len], !l.r.File.Image.PIE, l.pointers.note)
	}
}

// eachSequence calls back for what may be one instruction after the other: a part of a section as a
// whole, and from each symbol in it to the next.
func (l *linkage) eachSequence(lo, hi uint64, visit func(lo, hi uint64)) {
	visit(lo, hi)
	symbols := l.r.File.Image.Symbols()
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
func followCode(code []byte, addr uint64, visit func(q *cfg.Insn)) {
	for len(code) > 0 {
		in, ok := x86.Decode(code)
		if q := (cfg.Insn{Addr: addr, Inst: in}); ok && q.Kind.IsRelative() {
			visit(&q)
		}
		n := max(int(in.Len), 1)
		code, addr = code[n:], addr+uint64(n)
	}
}

// tailJumps lists the routines, by their entries, that may end by a jump to an address: an entry, a
// linkage stub, a slot of the global offset table, code in no routine.
type tailJumps map[uint64][]uint64

func (l *linkage) tailJumps() tailJumps {
	jumps := tailJumps{}
	for _, i := range l.transfers {
		if kind := l.code.Insns[i].Kind; kind != x86.Call && kind != x86.CallInd &&
			l.mayRun(int(i)) {
			l.eachLead(int(i),
				func(addr uint64) { jumps[addr] = append(jumps[addr], l.r.RoutineOf(int(i)).Addr) })
		}
	}
	for _, d := range l.r.Routines {
		if l.mayJumpIndirectly(d) {
			l.eachName(d, func(addr uint64) { jumps[addr] = append(jumps[addr], d.Addr) })
		}
	}
	l.r.EachJumpOutside(func(from, to uint64) { jumps[to] = append(jumps[to], from) })
	return jumps
}

// eachLead calls back with where a call or jump goes, directly or through a slot. A routine has its
// address, though it has other entries.
func (l *linkage) eachLead(way int, visit func(addr uint64)) {
	if !l.code.Insns[way].Kind.IsRelative() {
		_, slot, _ := l.code.Operands(way)
		l.eachNamed(uint64(slot.Disp), visit)
	} else if id := l.r.RoutineAt(int(l.code.Target[way])); id >= 0 {
		visit(l.r.AddrOf(id))
	} else {
		visit(l.code.Insns[way].Target())
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
func (l *linkage) spread(jumps tailJumps, set map[uint64]bool) {
	work := make([]uint64, 0, len(set))
	add := func(addr uint64) {
		if !set[addr] {
			set[addr] = true
			work = append(work, addr)
		}
	}
	for addr := range set {
		work = append(work, addr)
	}
	for len(work) > 0 {
		last := len(work) - 1
		at := work[last]
		work = work[:last]
		for _, addr := range jumps[at] {
			add(addr)
		}
		l.r.EachNamingOutside(at, add)
	}
}

// startsDestructors returns the length of how __do_global_dtors_aux begins, which crtbegin.o has
// and with it nearly every program: it asks whether it has run. 0: code does not begin so. What it
// asks for is any distance, which in one program of 128 looks like a call, or jump, to some other
// routine.
func startsDestructors(code []byte, addr uint64) (length int) {
	const aligned = 16
	if addr%aligned != 0 {
		return 0
	}
	q, ok := x86.Decode(code)
	if ok && q.IsEndbr64() {
		length = int(q.Len)
		q, ok = x86.Decode(code[length:])
	}
	if !ok || q.Operation() != x86.Cmp {
		return 0
	}
	asks := q.Effects(code[length:], 0)
	length += int(q.Len)
	jump, ok := x86.Decode(code[length:])
	isByte := asks.Dst.RIP && asks.Dst.Size == 1 && asks.HasImm && asks.Imm == 0
	if !isByte || !ok || jump.Condition() != x86.NotEqual || jump.Len != 2 {
		return 0
	}
	return length
}
