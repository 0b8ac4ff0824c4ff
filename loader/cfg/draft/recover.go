package draft

import (
	"cmp"
	"slices"
	"sync/atomic"

	"wpptrace/internal/parallel"
	"wpptrace/loader/cfg/jumptable"
	"wpptrace/loader/cfg/sweep"
	"wpptrace/loader/x86"
)

// A Program is the routines of a file in the making. What the file says is File's, the blocks are
// the Builder's.
type Program struct {
	Code       *sweep.Code
	File       *sweep.File
	Blocks     *Builder
	Clobbered  *Clobbers
	Returns    *Returns
	Twice      *Twice
	Routines   []*Routine
	noReturn   []bool // by routine
	distrusted []bool // by routine: never returns as it seems, but is left out
	attempts   int
	Steps      atomic.Int64 // left to the search for jump tables, in instructions executed

	// Survey is what is known of the whole image where some of its routines are recovered; nil: all
	// are. Routines has these alone; the others keep the numbers that the survey gives them.
	Survey *sweep.Survey
}

// New begins the routines of a file. Cost: a few passes over its instructions.
func New(f *sweep.File) *Program {
	r := &Program{Code: f.Code, File: f}
	r.Blocks, r.Clobbered = newBuilder(r), &Clobbers{r: r, code: f.Code}
	r.Returns = &Returns{r: r, code: f.Code, file: f}
	r.Twice = newTwice(f, r.Returns)
	r.makeDrafts()
	for i, t := range r.Code.Target {
		p := &r.Code.Pieces[r.Code.PieceOf[i]]
		p.Back = p.Back || r.Code.Insns[i].Kind != x86.Call && r.File.IsBack(p, int(t))
	}
	r.File.FindPointedParts()
	r.distrusted = make([]bool, len(r.Routines))
	r.findLabels()
	return r
}

// NewPart begins some routines of a file: those of whose pieces all are taken.
func NewPart(s *sweep.Survey) *Program {
	f := s.File
	r := &Program{Code: f.Code, File: f, Survey: s}
	r.Blocks, r.Clobbered = newBuilder(r), &Clobbers{r: r, code: f.Code}
	r.Returns = &Returns{r: r, code: f.Code, file: f}
	r.Twice = newTwice(f, r.Returns)
	for i := range s.Group.Len() {
		if group := s.Group.Of(i); s.IsKnown(int(group[0])) {
			r.makeDraft(int(s.Entry[i]), group)
		}
	}
	r.distrusted = make([]bool, len(r.Routines))
	seen := map[int]bool{}
	for _, m := range s.Taken {
		if piece := r.Code.FindPiece(m.Addr); r.IsKnown(r.Code.Pieces[piece].Routine) {
			r.addLabel(seen, r.Code.Pieces[m.From].Routine, r.Code.Find(m.Addr))
		}
	}
	return r
}

// IsKnown says whether a routine is one of Routines: it is recovered.
func (r *Program) IsKnown(routine int) bool { return routine < len(r.Routines) }

// Build builds all routines, once more after some were found to be distrusted. The search for jump
// tables may execute so many instructions.
func (r *Program) Build(steps int64) {
	r.Steps.Store(steps)
	r.Returns.forget() // found without ways that were taken never to return, and now are not
	r.solve()
}

// makeDrafts groups the pieces into routines, sorted by entry.
func (r *Program) makeDrafts() {
	groups := r.Code.Group(r.File.References)
	entries := make([]int, 0, groups.Len())
	byEntry := make(map[int][]int32, groups.Len())
	for i := range groups.Len() {
		g := groups.Of(i)
		e := r.Code.EntryOf(g, r.File.References)
		entries = append(entries, e)
		byEntry[e] = g
	}
	slices.Sort(entries)
	for _, e := range entries {
		r.makeDraft(e, byEntry[e])
	}
}

func (r *Program) makeDraft(e int, group []int32) {
	d := &Routine{ID: len(r.Routines), Addr: r.Code.Pieces[e].Lo, Pieces: make([]int, len(group)),
		Entry: r.Code.Pieces[e].First}
	for i, piece := range group {
		d.Pieces[i] = int(piece)
	}
	if p := &r.Code.Pieces[e]; p.First == p.Last || r.Code.Insns[p.First].Addr != d.Addr {
		d.Entry = -1
	}
	for _, i := range d.Pieces {
		r.Code.Pieces[i].Routine = d.ID
		if i != e && d.Entry >= 0 && r.File.IsEntryToo(&r.Code.Pieces[i]) {
			d.Others = append(d.Others, r.Code.Pieces[i].First)
		}
	}
	r.Routines = append(r.Routines, d)
}

// RoutineAt returns the routine that instruction i is the entry of, or -1.
func (r *Program) RoutineAt(i int) int {
	if i < 0 {
		return -1
	}
	piece := int(r.Code.PieceOf[i])
	id := r.Code.Pieces[piece].Routine
	if !r.IsKnown(id) {
		if r.Survey.IsEntry(piece) {
			return id
		}
		return -1
	}
	if d := r.Routines[id]; d.Entry == i || slices.Contains(d.Others, i) {
		return id
	}
	return -1
}

// AddrOf returns the address of a routine's entry.
func (r *Program) AddrOf(routine int) uint64 {
	if r.IsKnown(routine) {
		return r.Routines[routine].Addr
	}
	return r.Code.Pieces[r.Survey.EntryOf(routine)].Lo
}

// solve builds all routines. A routine found never to return changes its callers, which are built
// again; whether a routine returns can only change from yes to no, so that comes to an end.
func (r *Program) solve() {
	r.noReturn = make([]bool, len(r.Routines))
	r.Clobbered.forget(len(r.Routines))
	for _, d := range r.Routines {
		r.noReturn[d.ID] = d.isNamedNoReturn(r.File)
	}
	var callers *callLists
	parallel.Both(r.Clobbered.findClobbers, func() { callers = r.callers() })
	built := r.resolveMost()
	queued := make([]bool, len(r.Routines))
	queue := make([]int, len(r.Routines))
	for i := range queue {
		queue[i], queued[i] = i, true
	}
	for len(queue) > 0 {
		id := queue[0]
		queue = queue[1:]
		queued[id] = false
		d := r.Routines[id]
		if d.Entry < 0 {
			continue
		}
		if !built[id] {
			r.resolveAll(d, true)
		}
		if d.Returns || r.noReturn[id] || d.LeftOut != "" || r.distrusted[id] {
			// of what is left out it is not known where it goes
			continue
		}
		if _, ok := r.Receiver(d); ok {
			continue // who jumps there may have it return
		}
		r.noReturn[id] = true
		for _, from := range callers.of(id) {
			if by := r.Routines[from].Adopter; by != nil {
				from = int32(by.ID)
			}
			if built[from] = false; !queued[from] {
				queue, queued[from] = append(queue, int(from)), true
			}
		}
	}
}

// resolveMost builds the routines, several at a time, but for those that adopt parts of others: the
// largest first, lest all wait for it in the end. It returns which are built. findClobbers must
// have run.
func (r *Program) resolveMost() (built []bool) {
	built = make([]bool, len(r.Routines))
	bySize := slices.Clone(r.Routines)
	slices.SortStableFunc(bySize,
		func(a, b *Routine) int { return cmp.Compare(b.size(r.File), a.size(r.File)) })
	parallel.Each(len(bySize), func(i int) {
		d := bySize[i]
		built[d.ID] = d.Entry >= 0 && r.resolveAll(d, false)
	})
	return built
}

// size is how many instructions the pieces of a routine have.
func (d *Routine) size(f *sweep.File) (insns int) {
	for _, i := range d.Pieces {
		insns += f.Code.Pieces[i].Last - f.Code.Pieces[i].First
	}
	return insns
}

// maxAttempts bounds how often all routines are built; real programs take two at most.
const maxAttempts = 5

// Distrust finds the routines that were taken never to return and are left out after all: where one
// goes is not known, so that all have to be built again without that. In the last attempt no
// routine is taken so but by its name.
func (r *Program) Distrust() (found bool) {
	r.attempts++
	for _, d := range r.Routines {
		if r.noReturn[d.ID] && d.LeftOut != "" && !d.isNamedNoReturn(r.File) {
			r.distrusted[d.ID], found = true, true
		}
	}
	if found && r.attempts == maxAttempts-1 {
		for id := range r.distrusted {
			r.distrusted[id] = true
		}
	}
	return found
}

// isNamedNoReturn says whether a routine is known by its name never to return.
func (d *Routine) isNamedNoReturn(f *sweep.File) bool {
	return d.Entry >= 0 && f.IsNoReturnSymbol(f.Code.Pieces[f.Code.PieceOf[d.Entry]].Symbol, d.Addr)
}

// maxRounds bounds how often a routine's blocks are built again because a table revealed code with
// another one.
const maxRounds = 32

// resolveAll builds a routine and resolves its indirect jumps until both agree: all are resolved
// again on the final blocks, for a table may reveal another way to a jump resolved before. One that
// is resolved no more then stays unresolved, so that this comes to an end. It answers false, with
// the routine not built, where a table leads to what is another's as yet, and it may not adopt
// that.
func (r *Program) resolveAll(d *Routine, adopts bool) bool {
	d.Tables, d.refused, d.Contested = nil, nil, nil
	for range maxRounds {
		r.Blocks.build(d)
		found := r.resolveTables(d)
		if jumptable.Same(d.Tables, found) {
			d.Tables = found
			if r.refuseGiven(d) {
				continue
			}
			return true
		}
		for i := range d.Tables {
			if found[i] == nil {
				d.refuse(i)
			}
		}
		d.Tables = found
		if adopts {
			r.adoptTargets(d)
		} else if d.leadsToOthers(r.File) {
			return false
		}
	}
	r.Blocks.build(d)
	d.Leave("jump tables do not settle")
	return true
}

// refuseGiven refuses the jumps of a routine that were taken to go to any of its labels, if there
// is code that nothing leads to: a label of which nothing is known may. It reports whether there
// are such jumps.
func (r *Program) refuseGiven(d *Routine) (refused bool) {
	isLeft := false
	for i, t := range d.Tables {
		if !t.AnyLabel {
			continue
		}
		if !refused && !isLeft {
			r.Blocks.EachUnreached(d,
				func(code []byte, _ uint64) { isLeft = isLeft || !x86.IsPadding(code) })
		}
		if !isLeft {
			return false
		}
		refused = true
		d.refuse(i)
	}
	return refused
}

// leadsToOthers says whether a table leads to code of other routines.
func (d *Routine) leadsToOthers(f *sweep.File) bool {
	for _, t := range d.Tables {
		if slices.ContainsFunc(t.Targets, func(i int) bool { return f.Inside(d.ID, i) < 0 }) {
			return true
		}
	}
	return false
}

func (d *Routine) refuse(i int) {
	if d.refused == nil {
		d.refused = map[int]bool{}
	}
	d.refused[i] = true
}

// callLists are the direct callers of each routine, tail callers included.
type callLists struct {
	start []int32
	from  []int32
}

func (l *callLists) of(routine int) []int32 { return l.from[l.start[routine]:l.start[routine+1]] }

func (r *Program) callers() *callLists {
	type call struct{ from, to int32 }
	var calls []call
	l := &callLists{start: make([]int32, len(r.Routines)+2)}
	for i, t := range r.Code.Target {
		if to := r.RoutineAt(int(t)); to >= 0 && r.IsKnown(to) {
			if from := r.Code.Pieces[r.Code.PieceOf[i]].Routine; from != to {
				calls = append(calls, call{int32(from), int32(to)})
				l.start[to+2]++
			}
		}
	}
	for i := 1; i < len(l.start); i++ {
		l.start[i] += l.start[i-1]
	}
	l.from = make([]int32, len(calls))
	for _, c := range calls {
		l.from[l.start[c.to+1]] = c.from
		l.start[c.to+1]++
	}
	return l
}

// neverReturns says whether the call or tail jump i is known never to return.
func (r *Program) neverReturns(i int) bool {
	if q := &r.Code.Insns[i]; q.Kind.IsRelative() {
		return r.endsIn(int(r.Code.Target[i]), q.Target())
	}
	return sweep.IsNoReturnImport(r.File.Imported(i))
}

// endsIn says whether the function at an address, where instruction i is, or none of the code's
// (-1), is known never to return.
func (r *Program) endsIn(i int, addr uint64) bool {
	if id := r.RoutineAt(i); id >= 0 {
		return r.IsKnown(id) && r.noReturn[id]
	}
	return sweep.IsNoReturnImport(r.File.Imports[addr])
}

// NeverReturns says whether a routine is known never to return.
func (r *Program) NeverReturns(d *Routine) bool { return r.noReturn[d.ID] }

// EachInsn calls back with the instructions of Routines, in their order.
func (r *Program) EachInsn(visit func(i int)) {
	var pieces []int
	for _, d := range r.Routines {
		pieces = append(pieces, d.Pieces...)
	}
	slices.Sort(pieces)
	for _, k := range pieces {
		for i := r.Code.Pieces[k].First; i < r.Code.Pieces[k].Last; i++ {
			visit(i)
		}
	}
}

// RoutineOf returns the routine that instruction i belongs to, nil if it is not recovered.
func (r *Program) RoutineOf(i int) *Routine {
	id := r.Code.Pieces[r.Code.PieceOf[i]].Routine
	if !r.IsKnown(id) {
		return nil
	}
	return r.Routines[id]
}
