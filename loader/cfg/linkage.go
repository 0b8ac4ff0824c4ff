package cfg

import "wpptrace/loader/x86"

// A linkage is how the routines of a program enter each other, by which some cannot be observed, or
// may return twice. Of a routine that is left out it counts what control flow is not known to reach
// as well: it may run.
type linkage struct {
	program    *Program
	*distances                 // by which routines are taken
	ways       []int32         // instructions: direct calls, jumps that leave their routine, jumps through a slot
	moving     map[uint64]bool // what changes where it returns to: behind a call of it there may be data
	searched   map[*draft]bool // see searchUnseen
	allRuns    bool            // code that no control flow reaches is taken to run, in whatever routine
}

// newLinkage finds the ways between the routines, once all are built.
func newLinkage(p *Program, taken *distances) *linkage {
	l := &linkage{program: p, distances: taken, moving: map[uint64]bool{}, searched: map[*draft]bool{}}
	for i := range l.insns {
		switch q := &l.insns[i]; {
		case q.Kind == x86.Call, q.Kind == x86.JmpInd && isRIPRelative(&q.Inst):
		case !isRelative(q.Kind) || l.inside(l.from(i), int(l.target[i])) >= 0:
			continue
		}
		l.ways = append(l.ways, int32(i))
	}
	l.findUses()
	return l
}

// from returns the routine that instruction i belongs to.
func (r *recovery) from(i int) *draft { return r.drafts[r.pieces[r.pieceOf[i]].routine] }

// to returns the routine that the call or jump i enters, be it in its middle, or nil.
func (r *recovery) to(i int) *draft {
	if t := r.target[i]; t >= 0 {
		return r.from(int(t))
	}
	return nil
}

func (r *recovery) isReached(i int) bool { return r.marks[i]&reached != 0 }

// mayRun says whether instruction i is known to be reached, or its routine is left out.
func (l *linkage) mayRun(i int) bool { return l.isReached(i) || l.isUnknown(l.from(i)) }

// isUnknown says whether any code of a routine may run.
func (l *linkage) isUnknown(d *draft) bool { return d.leftOut != "" || l.allRuns }

// findUses looks at what the routines, and the code that no frame description entry covers, do with
// their return addresses.
func (l *linkage) findUses() {
	for _, d := range l.drafts {
		if d.moves {
			l.moving[d.addr] = true
		}
	}
	known := map[uint64]bool{}
	for _, i := range l.ways {
		q := &l.insns[i]
		if to := q.target(); isRelative(q.Kind) && l.target[i] < 0 && !l.isStub(to) && !known[to] {
			known[to] = true
			use := l.returnUse(to)
			if use.saves {
				l.program.twice[to] = true
			}
			if use.moves {
				l.moving[to] = true
			}
		}
	}
}

// mostRounds bounds how often the linkage is gone through because a routine led to another: real
// programs take two or three.
const mostRounds = 16

// leaveOut leaves out the routines that others, or calls of others, keep from being observed. With
// each one left out more code may run; at the bound all is taken for such.
func (l *linkage) leaveOut() {
	again := true
	for round := 0; again; round++ {
		l.allRuns = round >= mostRounds
		before := l.countLeftOut()
		l.leaveOutThunkUsers()
		l.leaveOutMovers()
		l.leaveOutMiddles()
		l.searchUnseen()
		again = before < l.countLeftOut()
	}
}

func (l *linkage) countLeftOut() (n int) {
	for _, d := range l.drafts {
		if d.leftOut != "" {
			n++
		}
	}
	return n
}

// leaveOutThunkUsers leaves out the routines that jump to a thunk: it may return in their place.
func (l *linkage) leaveOutThunkUsers() {
	for _, i := range l.ways {
		if from, to := l.from(int(i)), l.to(int(i)); l.insns[i].Kind != x86.Call && to != nil && from != to && to.thunk && l.isReached(int(i)) {
			from.leave("jumps to a thunk at %x", l.insns[i].Addr)
		}
	}
}

// leaveOutMovers leaves out the routines that call one which changes where it returns to, or one
// that ends by a jump to such.
func (l *linkage) leaveOutMovers() {
	if len(l.moving) == 0 {
		return
	}
	l.tailJumps().spread(l.moving)
	for _, i := range l.ways {
		if l.insns[i].Kind == x86.Call && l.isReached(int(i)) && l.moving[l.calleeAddr(int(i))] {
			l.from(int(i)).leave("calls what may return elsewhere at %x", l.insns[i].Addr)
		}
	}
}

// leaveOutMiddles leaves out the routines that another one calls or jumps to in their middle.
func (l *linkage) leaveOutMiddles() {
	for _, way := range l.ways {
		i := int(way)
		t := int(l.target[i])
		isEntry := l.routineAt(t) >= 0
		switch {
		case !isRelative(l.insns[i].Kind) || !l.mayRun(i) || isEntry && l.isReached(i):
		case !isEntry && t >= 0 && l.insns[i].Kind != x86.Call && l.pieces[l.pieceOf[t]].first == t && l.contradict(i, t):
			// Never taken: nothing is left in the cold part that it leads to.
		default:
			l.enter(&l.insns[i], l.from(i))
		}
	}
}

// enter notes where a call or jump leads that no known control flow makes or that enters a routine
// in its middle. from may be nil: code in no routine.
func (l *linkage) enter(q *Insn, from *draft) {
	p := l.findPiece(q.target())
	if p < 0 {
		return
	}
	to := l.drafts[l.pieces[p].routine]
	switch id := l.routineAt(l.find(q.target())); {
	case id >= 0:
		l.taken[id] = true
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
		for i := range l.im.Sections {
			if s := &l.im.Sections[i]; s.Exec && !isStubs(s) {
				l.eachUncovered(s, func(lo, hi uint64) { l.searchCode(s.Data[lo-s.Addr:hi-s.Addr], lo, nil) })
			}
		}
		l.searched[nil] = true
	}
	for _, d := range l.drafts {
		if l.isUnknown(d) && !l.searched[d] {
			l.eachUnreached(d, func(code []byte, addr uint64) { l.searchCode(code, addr, d) })
			l.searched[d] = true
		}
	}
}

// eachUnreached calls back for each part of a routine that no instruction reached covers.
func (l *linkage) eachUnreached(d *draft, visit func(code []byte, addr uint64)) {
	for _, k := range d.pieces {
		p := &l.pieces[k]
		at := p.Lo
		for i := p.first; i <= p.last; i++ {
			next := p.Hi
			if i < p.last {
				if !l.isReached(i) {
					continue
				}
				next = l.insns[i].Addr
			}
			if at < next {
				visit(p.code[at-p.Lo:next-p.Lo], at)
			}
			if i < p.last {
				at = max(at, l.insns[i].end())
			}
		}
	}
}

// searchCode decodes code from each of its bytes, for direct calls and jumps, and for what
// instructions name. Those of few bytes lead nowhere far, and too many bytes look like one.
func (l *linkage) searchCode(code []byte, addr uint64, from *draft) {
	const shortest = 5
	for ; len(code) >= shortest; code, addr = code[1:], addr+1 {
		in, ok := x86.Decode(code)
		if !ok || in.Len < shortest {
			continue
		}
		q := Insn{addr, in}
		if isRelative(q.Kind) {
			l.enter(&q, from)
		}
		eachOperand(&q, code[:in.Len], !l.im.PIE, l.note)
	}
}

// tailJumps lists the routines that may end by a jump to an address: an entry, a linkage stub, a
// slot of the global offset table, code in no routine.
type tailJumps map[uint64][]*draft

func (l *linkage) tailJumps() tailJumps {
	jumps := tailJumps{}
	for _, i := range l.ways {
		q, d := &l.insns[i], l.from(int(i))
		switch {
		case q.Kind == x86.Call || !l.mayRun(int(i)):
		case isRelative(q.Kind):
			to := l.calleeAddr(int(i))
			jumps[to] = append(jumps[to], d)
		default:
			_, slot, _ := l.operands(int(i))
			to := uint64(slot.Disp)
			jumps[to] = append(jumps[to], d)
			if r := l.program.inSlot(to); r != nil {
				jumps[r.Addr] = append(jumps[r.Addr], d)
			}
		}
	}
	return jumps
}

// calleeAddr is where the relative call or jump i goes; of a routine, its address, though it has
// other entries.
func (l *linkage) calleeAddr(i int) uint64 {
	if id := l.routineAt(int(l.target[i])); id >= 0 {
		return l.drafts[id].addr
	}
	return l.insns[i].target()
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
