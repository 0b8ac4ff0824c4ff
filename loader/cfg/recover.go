package cfg

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"wpptrace/internal/parallel"
	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/cfg/jumptable"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// recovery is the state of one call of Recover: the routines in the making. What the file says is
// file's, the blocks are the builder's.
type recovery struct {
	code       *code
	file       *file
	blocks     *builder
	clobbered  *clobbers
	returns    *returns
	drafts     []*draft
	noReturn   []bool      // by routine
	distrusted []bool      // by routine: never returns as it seems, but is left out
	namesTwice func() bool // findNamesTwice, asked once
	holdsTwice func() bool // file.findHoldsTwice, likewise
	attempts   int
	steps      atomic.Int64 // left to the search for jump tables, in instructions executed
}

// The search for jump tables takes about 20 instructions for each of a program's; an interpreter's
// dispatch takes thousands. More than this is hostile.
const stepsPerInsn = 100

// baseSteps are there for a program of any size: a variable for tests.
var baseSteps = 20_000_000

// NoUnwind says what to do about an image that has no unwind information.
func NoUnwind(im *image.Image) error {
	if im.IsGo() {
		return errors.New("no unwind information (.eh_frame): it is a Go program, and what is " +
			"written in Go cannot be traced")
	}
	return errors.New("no unwind information (.eh_frame): compile it with " +
		"-fasynchronous-unwind-tables")
}

// Recover finds the routines of an image and the control flow graph of each. It fails only when the
// image holds no code with unwind information; what is wrong with one routine leaves that one out.
// The program shares the image and must not be changed; with that, it is safe for concurrent use.
// Cost: about 0.1 us a byte of code, and 10 ns a byte of data.
func Recover(im *image.Image) (*Program, error) {
	c, err := sweep(im)
	if err != nil {
		return nil, fmt.Errorf("recover routines of %s: %w", im.Name, err)
	}
	if len(c.pieces) == 0 {
		return nil, fmt.Errorf("recover routines of %s: %w", im.Name, NoUnwind(im))
	}
	drafts := New(readFile(im, c))
	for {
		drafts.build(int64(baseSteps + stepsPerInsn*len(c.insns)))
		if p := Check(drafts); !drafts.distrust() {
			return p, nil
		}
	}
}

// New begins the routines of a file. Cost: a few passes over its instructions.
func New(f *file) *recovery {
	r := &recovery{code: f.code, file: f}
	r.blocks, r.clobbered = newBuilder(r), &clobbers{r: r, code: f.code}
	r.returns = &returns{r: r, code: f.code, file: f}
	r.namesTwice = sync.OnceValue(r.findNamesTwice)
	r.holdsTwice = sync.OnceValue(f.findHoldsTwice)
	r.makeDrafts()
	r.distrusted = make([]bool, len(r.drafts))
	r.findLabels()
	return r
}

// build builds all routines, once more after some were found to be distrusted. The search for jump
// tables may execute so many instructions.
func (r *recovery) build(steps int64) {
	r.steps.Store(steps)
	r.returns.forget() // found without ways that were taken never to return, and now are not
	r.solve()
}

// makeDrafts groups the pieces into routines, sorted by entry.
func (r *recovery) makeDrafts() {
	groups := r.code.group(r.file.references)
	entries := make([]int, 0, len(groups))
	byEntry := make(map[int][]int, len(groups))
	for _, g := range groups {
		e := r.code.entryOf(g, r.file.references)
		entries = append(entries, e)
		byEntry[e] = g
	}
	slices.Sort(entries)
	for _, e := range entries {
		d := &draft{id: len(r.drafts), addr: r.code.pieces[e].Lo, pieces: byEntry[e],
			entry: r.code.pieces[e].first}
		if p := &r.code.pieces[e]; p.first == p.last || r.code.insns[p.first].Addr != d.addr {
			d.entry = -1
		}
		for _, i := range d.pieces {
			r.code.pieces[i].routine = d.id
			if i != e && d.entry >= 0 && r.file.isEntryToo(&r.code.pieces[i]) {
				d.others = append(d.others, r.code.pieces[i].first)
			}
		}
		r.drafts = append(r.drafts, d)
	}
	for i, t := range r.code.target {
		p := &r.code.pieces[r.code.pieceOf[i]]
		p.back = p.back || r.code.insns[i].Kind != x86.Call && r.file.isBack(p, int(t))
	}
	r.file.findPointedParts()
}

// isEntryToo says whether a piece that belongs to a routine may itself be entered like one.
func (f *file) isEntryToo(p *piece) bool {
	entered := p.called || p.entered || p.symbol != "" && !isPart(p.symbol) ||
		f.references.has(p.Lo)
	return entered && p.first < p.last && f.code.insns[p.first].Addr == p.Lo && image.RowAt(p.Rows,
		p.Lo).CFA == absint.EntryCFA
}

// routineAt returns the routine that instruction i is the entry of, or -1.
func (r *recovery) routineAt(i int) int {
	if i < 0 {
		return -1
	}
	id := r.code.pieces[r.code.pieceOf[i]].routine
	if d := r.drafts[id]; d.entry == i || slices.Contains(d.others, i) {
		return id
	}
	return -1
}

// solve builds all routines. A routine found never to return changes its callers, which are built
// again; whether a routine returns can only change from yes to no, so that comes to an end.
func (r *recovery) solve() {
	r.noReturn = make([]bool, len(r.drafts))
	r.clobbered.forget(len(r.drafts))
	for _, d := range r.drafts {
		r.noReturn[d.id] = d.isNamedNoReturn(r.file)
	}
	var callers *callLists
	parallel.Both(r.clobbered.findClobbers, func() { callers = r.callers() })
	built := r.resolveMost()
	queued := make([]bool, len(r.drafts))
	queue := make([]int, len(r.drafts))
	for i := range queue {
		queue[i], queued[i] = i, true
	}
	for len(queue) > 0 {
		id := queue[0]
		queue = queue[1:]
		queued[id] = false
		d := r.drafts[id]
		if d.entry < 0 {
			continue
		}
		if !built[id] {
			r.resolveAll(d, true)
		}
		if d.returns || r.noReturn[id] || d.leftOut != "" || r.distrusted[id] {
			// of what is left out it is not known where it goes
			continue
		}
		if _, ok := r.receiver(d); ok {
			continue // who jumps there may have it return
		}
		r.noReturn[id] = true
		for _, from := range callers.of(id) {
			if by := r.drafts[from].adopter; by != nil {
				from = int32(by.id)
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
func (r *recovery) resolveMost() (built []bool) {
	built = make([]bool, len(r.drafts))
	bySize := slices.Clone(r.drafts)
	slices.SortStableFunc(bySize,
		func(a, b *draft) int { return cmp.Compare(b.size(r.file), a.size(r.file)) })
	parallel.Each(len(bySize), func(i int) {
		d := bySize[i]
		built[d.id] = d.entry >= 0 && r.resolveAll(d, false)
	})
	return built
}

// size is how many instructions the pieces of a routine have.
func (d *draft) size(f *file) (insns int) {
	for _, i := range d.pieces {
		insns += f.code.pieces[i].last - f.code.pieces[i].first
	}
	return insns
}

// maxAttempts bounds how often all routines are built; real programs take two at most.
const maxAttempts = 5

// distrust finds the routines that were taken never to return and are left out after all: where one
// goes is not known, so that all have to be built again without that. In the last attempt no
// routine is taken so but by its name.
func (r *recovery) distrust() (found bool) {
	r.attempts++
	for _, d := range r.drafts {
		if r.noReturn[d.id] && d.leftOut != "" && !d.isNamedNoReturn(r.file) {
			r.distrusted[d.id], found = true, true
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
func (d *draft) isNamedNoReturn(f *file) bool {
	return d.entry >= 0 && f.isNoReturnSymbol(f.code.pieces[f.code.pieceOf[d.entry]].symbol, d.addr)
}

// maxRounds bounds how often a routine's blocks are built again because a table revealed code with
// another one.
const maxRounds = 32

// resolveAll builds a routine and resolves its indirect jumps until both agree: all are resolved
// again on the final blocks, for a table may reveal another way to a jump resolved before. One that
// is resolved no more then stays unresolved, so that this comes to an end. It answers false, with
// the routine not built, where a table leads to what is another's as yet, and it may not adopt
// that.
func (r *recovery) resolveAll(d *draft, adopts bool) bool {
	d.tables, d.refused, d.contested = nil, nil, nil
	for range maxRounds {
		r.blocks.build(d)
		found := r.resolveTables(d)
		if jumptable.Same(d.tables, found) {
			d.tables = found
			if r.refuseGiven(d) {
				continue
			}
			return true
		}
		for i := range d.tables {
			if found[i] == nil {
				d.refuse(i)
			}
		}
		d.tables = found
		if adopts {
			r.adoptTargets(d)
		} else if d.leadsToOthers(r.file) {
			return false
		}
	}
	r.blocks.build(d)
	d.leave("jump tables do not settle")
	return true
}

// refuseGiven refuses the jumps of a routine that were taken to go to any of its labels, if there
// is code that nothing leads to: a label of which nothing is known may. It reports whether there
// are such jumps.
func (r *recovery) refuseGiven(d *draft) (refused bool) {
	isLeft := false
	for i, t := range d.tables {
		if !t.AnyLabel {
			continue
		}
		if !refused && !isLeft {
			r.blocks.eachUnreached(d,
				func(code []byte, _ uint64) { isLeft = isLeft || x86.SizeWithoutPadding(code) > 0 })
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
func (d *draft) leadsToOthers(f *file) bool {
	for _, t := range d.tables {
		if slices.ContainsFunc(t.Targets, func(i int) bool { return f.inside(d.id, i) < 0 }) {
			return true
		}
	}
	return false
}

func (d *draft) refuse(i int) {
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

func (r *recovery) callers() *callLists {
	type call struct{ from, to int32 }
	var calls []call
	l := &callLists{start: make([]int32, len(r.drafts)+2)}
	for i, t := range r.code.target {
		if to := r.routineAt(int(t)); to >= 0 {
			if from := r.code.pieces[r.code.pieceOf[i]].routine; from != to {
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
func (r *recovery) neverReturns(i int) bool {
	if q := &r.code.insns[i]; q.Kind.IsRelative() {
		return r.endsIn(int(r.code.target[i]), q.target())
	}
	return isNoReturnImport(r.file.imported(i))
}

// endsIn says whether the function at an address, where instruction i is, or none of the code's
// (-1), is known never to return.
func (r *recovery) endsIn(i int, addr uint64) bool {
	if id := r.routineAt(i); id >= 0 {
		return r.noReturn[id]
	}
	return isNoReturnImport(r.file.imports[addr])
}
