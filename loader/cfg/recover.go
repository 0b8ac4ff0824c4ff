package cfg

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	r := &recovery{code: c, file: readFile(im, c)}
	r.blocks, r.clobbered, r.returns = newBuilder(r), &clobbers{r: r, code: c}, &returns{r: r,
		code: c, file: r.file}
	r.namesTwice = sync.OnceValue(r.findNamesTwice)
	r.holdsTwice = sync.OnceValue(r.file.findHoldsTwice)
	names := r.file.nameSymbols()
	r.makeDrafts()
	r.distrusted = make([]bool, len(r.drafts))
	r.findLabels()
	p := r.attempt(names)
	for r.distrust() {
		p = r.attempt(names)
	}
	r.numberPieces()
	return p, nil
}

// attempt builds all routines and the program of them.
func (r *recovery) attempt(names map[uint64]string) *Program {
	r.steps.Store(int64(baseSteps + stepsPerInsn*len(r.code.insns)))
	r.returns.forget() // found without ways that were taken never to return, and now are not
	r.solve()
	return r.program(names)
}

// nameSymbols gives each piece its symbol and returns all of them by address, and notes the parts
// that are empty by theirs. Of several functions' symbols that one wins by which programs call it.
func (f *file) nameSymbols() map[uint64]string {
	names := map[uint64]string{}
	for _, s := range f.im.Symbols() {
		if isPart(s.Name) {
			f.parts[s.Addr] = append(f.parts[s.Addr], s)
			if s.Size == 0 {
				continue
			}
		}
		if old, ok := names[s.Addr]; !ok || byCallersName(s.Name, old) < 0 {
			names[s.Addr] = s.Name
			f.local[s.Addr] = s.Local
		}
	}
	for i := range f.code.pieces {
		at := f.code.pieces[i].Lo
		if _, ok := names[at]; !ok && len(f.parts[at]) > 0 {
			// assemblers give a part no size, though it has code
			names[at] = f.parts[at][0].Name
			delete(f.parts, at)
		}
		f.code.pieces[i].symbol = names[at]
	}
	return names
}

// byCallersName orders the names of one function, what programs call it first: libraries have
// others for their own use, which begin with underscores or are longer.
func byCallersName(a, b string) int {
	underscores := func(name string) int { return len(name) - len(strings.TrimLeft(name, "_")) }
	part := func(name string) int {
		if isPart(name) {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(min(len(b), 1), min(len(a), 1)), // any before none
		cmp.Compare(part(a), part(b)), cmp.Compare(underscores(a), underscores(b)),
		cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
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
	return entered && p.first < p.last && f.code.insns[p.first].Addr == p.Lo && cfaAt(p.Rows,
		p.Lo) == absint.EntryCFA
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
		r.noReturn[d.id] = r.file.isNamedNoReturn(d)
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
		func(a, b *draft) int { return cmp.Compare(r.file.size(b), r.file.size(a)) })
	parallel.Each(len(bySize), func(i int) {
		d := bySize[i]
		built[d.id] = d.entry >= 0 && r.resolveAll(d, false)
	})
	return built
}

// size is how many instructions the pieces of a routine have.
func (f *file) size(d *draft) (insns int) {
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
		if r.noReturn[d.id] && d.leftOut != "" && !r.file.isNamedNoReturn(d) {
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
func (f *file) isNamedNoReturn(d *draft) bool {
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
		} else if r.file.leadsToOthers(d) {
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
				func(code []byte, _ uint64) { isLeft = isLeft || withoutPadding(code) > 0 })
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
func (f *file) leadsToOthers(d *draft) bool {
	for _, t := range d.tables {
		if slices.ContainsFunc(t.Targets, func(i int) bool { return f.inside(d, i) < 0 }) {
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
	if q := &r.code.insns[i]; isRelative(q.Kind) {
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

// imported returns the imported function that the call i enters, or "".
func (f *file) imported(i int) string {
	if q := &f.code.insns[i]; isRelative(q.Kind) {
		return f.imports[q.target()]
	}
	return f.importThroughSlot(i)
}

// importThroughSlot returns the imported function that the indirect call or jump i reaches through
// its slot of the global offset table, or "".
func (f *file) importThroughSlot(i int) string {
	if q := &f.code.insns[i]; !q.IsRIPRelative() || q.Kind != x86.CallInd && q.Kind != x86.JmpInd {
		return ""
	}
	_, rm, _ := f.code.operands(i)
	return f.imports[uint64(rm.Disp)]
}
