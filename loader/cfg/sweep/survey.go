package sweep

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"wpptrace/internal/parallel"
	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// A Survey is what one pass over all code of an image finds that keeps no instruction: enough to
// recover some of its routines as if all were. Of each piece that is not taken there is one
// instruction in Code.Insns, its first, so that what enters it leads somewhere.
type Survey struct {
	File  *File
	Group Groups  // routines, by their entries
	Entry []int32 // the piece that each routine is entered by
	// Jumps between pieces, in the order of the code, but for calls
	Jumps []Jump
	// Calls of pieces' first instructions, in the order of the code
	Calls []Call
	// Taken are addresses that instructions of another piece take, amid a piece
	Taken []Mention
	// Strays are calls of what is in no piece, nor a linkage stub
	Strays []Mention
	// Unseen are places amid pieces that calls and jumps may lead to in code of others that control
	// flow is not known to reach. Each of its bytes may begin an instruction.
	Unseen []Mention
	// Amid are places amid pieces that words of tables seem to lead to: who reads tables adds them
	Amid *References
	// Searched says that all data has been searched for tables, and LookUps is how many look-ups
	// are left of those that are allowed then: who reads tables sets both
	Searched bool
	LookUps  int
	// Uncovered is code that no frame description entry covers; nil: nobody has looked yet
	Uncovered *UncoveredCode

	marks []Mark
	pads  []uint64 // of all call sites, sorted
	// what never returns: pieces, by their beginning; what is in none, by its address
	endPieces []bool
	ends      map[uint64]bool
	// what a jump or call from elsewhere leads to amid a piece, by piece
	entries map[int][]uint64
	known   []bool // pieces, see Take
	taken   []bool // and those that are decoded
	// pieces that were asked about, once and for all
	missed       []atomic.Bool
	misses       atomic.Bool
	wanted       sync.Mutex
	wantedPieces []int
	named        func() []naming // by address
}

// UncoveredCode is what was found in it.
type UncoveredCode struct {
	Inspected int        // bytes
	Ways      []cfg.Insn // what may be direct calls and jumps
}

// A naming is an address of code, or of a slot, and a piece with an indirect jump that has an
// instruction which names it, or a slot that holds it.
type naming struct {
	addr  uint64
	piece int32
}

// A Mark says something of a piece that decides whether more has to be known of it.
type Mark uint8

// The marks of a piece.
const (
	// control flow may leave it for its caller
	Returns Mark = 1 << iota
	// it has an indirect jump
	Indirect
	// and one that is no call of another routine as its last act, by its frame or its operand
	Table
	// some of it is not reached if all calls return that are not known to by name
	Unreached
	// it takes the address of what lies amid code
	TakesLabel
	// it may use its return address otherwise than to return
	UsesReturn
	// it is called, or it calls or jumps, in the middle of a piece though frames contradict
	Middle
	// it begins a hardware transaction
	Transacts
)

// A Jump leads from one piece into another, or out of all code that is described (To: -1).
type Jump struct {
	From, To    int32
	At, Target  uint64
	Frame       image.CFA // before it
	Kind        x86.Kind
	Reached     bool
	isBoundary  bool // an instruction begins at Target
	contradicts bool
}

// A Call is one of the first instruction of a piece.
type Call struct{ From, To int32 }

// A Mention is an address amid a piece, and the piece of the instruction that takes it.
type Mention struct {
	From int32
	Addr uint64
}

// Examine makes a survey of an image. Cost: about 50 ns an instruction, and 10 ns a byte of data.
func Examine(im *image.Image) (*Survey, error) {
	c, err := newCode(im)
	if err != nil {
		return nil, err
	}
	f := newFile(im, c)
	s := &Survey{File: f, marks: make([]Mark, len(c.Pieces)), entries: map[int][]uint64{},
		missed: make([]atomic.Bool, len(c.Pieces)), ends: map[uint64]bool{},
		endPieces: make([]bool, len(c.Pieces)),
		Amid:      newReferences(im.Sections)}
	c.survey, s.named = s, sync.OnceValue(s.findNamings)
	f.nameSymbols()
	for i := range c.Pieces {
		if p := &c.Pieces[i]; f.IsNoReturnSymbol(p.Symbol, p.Lo) {
			s.endPieces[i] = true
		}
		for _, site := range c.Pieces[i].Calls() {
			if site.Pad != 0 {
				s.pads = append(s.pads, site.Pad)
			}
		}
	}
	for addr, name := range f.Imports {
		if IsNoReturnImport(name) {
			if k := c.FindPiece(addr); k >= 0 && c.Pieces[k].Lo == addr {
				s.endPieces[k] = true
			}
			s.ends[addr] = true
		}
	}
	slices.Sort(s.pads)
	s.pads = slices.Compact(s.pads)
	all, insns, data := newReferences(im.Sections), newReferences(im.Sections),
		newReferences(im.Sections)
	var numbers []uint64
	parallel.Both(func() { numbers = s.look(all, insns) }, func() { data.addData(im, c) })
	if tables := OffsetTables(im); len(tables) > 0 && insns.Has(tables[0]) {
		for _, number := range numbers {
			insns.add(tables[0] + number)
		}
	}
	f.References, f.InsnReferences, f.DataReferences = all, insns, data
	f.joinReferences()
	s.lookAtEntries()
	s.group()
	return s, nil
}

// A view is what is seen of some pieces at a time.
type view struct {
	refs, jumpRefs, numbers []uint64
	jumps                   []Jump
	calls                   []Call
	middles                 []Mention // calls
	taken, unseen, strays   []Mention
	insns                   []cfg.Insn
	rows                    []image.Row
	marks                   []uint8
	work                    []int
	decoded                 atomic.Int64
}

// look looks at all pieces, on all CPUs, and returns the constants of 64 bits that the code has.
func (s *Survey) look(all, insns *References) (numbers []uint64) {
	const stretch, most = 64, 32
	views := make([]view, most)
	pieces := len(s.File.Code.Pieces)
	for at := 0; at < pieces; at += stretch * most {
		n := min(most, (pieces-at+stretch-1)/stretch)
		parallel.Each(n, func(i int) {
			v := &views[i]
			v.refs, v.jumpRefs, v.numbers = v.refs[:0], v.jumpRefs[:0], v.numbers[:0]
			v.jumps, v.calls, v.middles, v.taken = v.jumps[:0], v.calls[:0], v.middles[:0],
				v.taken[:0]
			v.unseen, v.strays = v.unseen[:0], v.strays[:0]
			for k := at + i*stretch; k < min(pieces, at+(i+1)*stretch); k++ {
				s.lookAt(v, k, nil)
			}
		})
		for i := range n {
			v := &views[i]
			for _, addr := range v.refs {
				insns.add(addr)
			}
			for _, addr := range v.jumpRefs {
				all.add(addr)
			}
			numbers = append(numbers, v.numbers...)
			s.Jumps, s.Calls = append(s.Jumps, v.jumps...), append(s.Calls, v.calls...)
			s.Taken, s.Unseen = append(s.Taken, v.taken...), append(s.Unseen, v.unseen...)
			s.Strays = append(s.Strays, v.strays...)
			for _, m := range v.middles {
				to := s.File.Code.FindPiece(m.Addr)
				s.entries[to] = append(s.entries[to], m.Addr)
				s.marks[m.From] |= Middle
				s.marks[to] |= Middle
			}
		}
	}
	return numbers
}

// The marks of an instruction, while a piece is looked at.
const seen, queued uint8 = 1, 2

// lookAt looks at one piece, which is entered at some addresses besides its beginning.
func (s *Survey) lookAt(v *view, k int, entries []uint64) {
	c := s.File.Code
	p := &c.Pieces[k]
	v.insns = p.decode(v.insns[:0], &v.decoded)
	if len(v.insns) == 0 {
		p.begins = 0
		s.marks[k] |= Unreached
		return
	}
	p.begins = v.insns[0].Addr
	p.decodes = true
	v.marks = append(v.marks[:0], make([]uint8, len(v.insns))...)
	v.rows = p.AppendRows(v.rows[:0])
	v.follow(s, k, entries)
	rows, pie := v.rows, s.File.Image.PIE
	for i := range v.insns {
		q := &v.insns[i]
		for len(rows) > 1 && rows[1].PC <= q.Addr {
			rows = rows[1:]
		}
		if entries == nil && (q.Kind != x86.Other || q.IsRIPRelative() || !pie ||
			q.HasWideImmediate()) {
			s.note(v, k, i)
		}
		if len(rows) > 0 && usesReturn(q, p, rows[0].CFA) {
			s.marks[k] |= UsesReturn
		}
	}
	if entries != nil {
		v.noteReached(s.JumpsFrom(k))
	}
	s.marks[k] &^= Unreached
	v.eachUnreached(p, func(lo, hi uint64) {
		if !x86.IsPadding(p.text(lo, hi)) {
			s.marks[k] |= Unreached
			s.search(v, k, lo, hi)
		}
	})
}

// eachUnreached calls back for each part of a piece that no instruction reached covers.
func (v *view) eachUnreached(p *Piece, visit func(lo, hi uint64)) {
	at := p.Lo
	for i := 0; i <= len(v.insns); i++ {
		next := p.Hi
		if i < len(v.insns) {
			if v.marks[i]&seen == 0 {
				continue
			}
			next = v.insns[i].Addr
		}
		if at < next {
			visit(at, next)
		}
		if i < len(v.insns) {
			at = max(at, v.insns[i].End())
		}
	}
}

// search decodes code of a piece from each of its bytes, for calls and jumps amid other pieces.
func (s *Survey) search(v *view, k int, lo, hi uint64) {
	const shortest = 5
	p := &s.File.Code.Pieces[k]
	code := p.text(lo, hi)
	for ; len(code) > 0; code = code[1:] {
		if code = code[x86.NextRelative(code):]; len(code) < shortest {
			return
		}
		in, ok := x86.Decode(code)
		if !ok || in.Len < shortest || !in.Kind.IsRelative() {
			continue
		}
		q := cfg.Insn{Addr: hi - uint64(len(code)), Inst: in}
		if to := s.File.Code.FindPiece(q.Target()); to >= 0 && to != k &&
			s.File.Code.Pieces[to].Lo != q.Target() {
			v.unseen = append(v.unseen, Mention{int32(k), q.Target()})
		}
	}
}

// find returns the index of the instruction at an address of the piece that is looked at, or -1.
func (v *view) find(addr uint64) int {
	from, to := 0, len(v.insns)
	for from < to {
		if middle := (from + to) / 2; v.insns[middle].Addr < addr {
			from = middle + 1
		} else {
			to = middle
		}
	}
	if from == len(v.insns) || v.insns[from].Addr != addr {
		return -1
	}
	return from
}

func (v *view) lead(i int) {
	if i >= 0 && v.marks[i]&queued == 0 {
		v.marks[i] |= queued
		v.work = append(v.work, i)
	}
}

// follow marks what control flow reaches in a piece if all calls return but for those of what is
// in s.ends.
func (v *view) follow(s *Survey, k int, entries []uint64) {
	p := &s.File.Code.Pieces[k]
	v.work = v.work[:0]
	v.lead(0)
	at, _ := slices.BinarySearch(s.pads, p.Lo)
	for ; at < len(s.pads) && s.pads[at] < p.Hi; at++ {
		v.lead(v.find(s.pads[at]))
	}
	for _, addr := range entries {
		v.lead(v.find(addr))
	}
	for len(v.work) > 0 {
		i := v.work[len(v.work)-1]
		v.work = v.work[:len(v.work)-1]
		for i >= 0 && v.marks[i]&seen == 0 {
			v.marks[i] |= seen
			i = v.goOn(s, p, k, i)
		}
	}
}

func (v *view) goOn(s *Survey, p *Piece, k, i int) (next int) {
	next = i + 1
	end := v.insns[i].End()
	if next < len(v.insns) && v.insns[next].Addr < end {
		next++ // the same without its lock prefix
	}
	if next >= len(v.insns) || v.insns[next].Addr != end {
		next = -1
	}
	switch q := &v.insns[i]; q.Kind {
	case x86.Jcc, x86.Loop:
		v.toward(p, q.Target())
		return next
	case x86.Jmp:
		v.toward(p, q.Target())
		return -1
	case x86.JmpInd:
		s.marks[k] |= Indirect
		if v.mayBeTable(q, p) {
			s.marks[k] |= Table
		}
		return -1
	case x86.Ret:
		s.marks[k] |= Returns
		return -1
	case x86.Trap:
		return -1
	case x86.Call:
		if s.End(q.Target()) {
			return -1
		}
	case x86.CallInd:
		if q.IsRIPRelative() {
			_, rm, _ := q.Operands(p.textOf(q), end)
			if s.End(uint64(rm.Disp)) && s.File.Imports[uint64(rm.Disp)] != "" {
				return -1
			}
		}
	}
	return next
}

// mayBeTable says whether an indirect jump may lead through a table: amid a frame, or by an index.
func (v *view) mayBeTable(q *cfg.Insn, p *Piece) bool {
	if image.RowAt(v.rows, q.Addr).CFA != absint.EntryCFA {
		return true
	}
	_, to, _ := q.Operands(p.textOf(q), q.End())
	return !to.RIP && to.Mem && (to.Index >= 0 || to.Base < 0)
}

func (v *view) toward(p *Piece, target uint64) {
	if p.Lo <= target && target < p.Hi {
		v.lead(v.find(target))
	}
}

// note notes what instruction i of piece k says of others: most say nothing, and need no look.
func (s *Survey) note(v *view, k, i int) {
	c, p, q := s.File.Code, &s.File.Code.Pieces[k], &v.insns[i]
	code := p.textOf(q)
	if q.Kind == x86.JmpInd {
		s.marks[k] |= Indirect
		EachOperand(q, code, !s.File.Image.PIE,
			func(addr uint64) { v.jumpRefs = append(v.jumpRefs, addr) })
		return
	}
	EachOperand(q, code, !s.File.Image.PIE, func(addr uint64) { v.refs = append(v.refs, addr) })
	if q.Kind == x86.Loop && q.Operation() == x86.XBegin {
		s.marks[k] |= Transacts
	}
	if number, size := q.AddressImmediate(code); size == 8 {
		v.numbers = append(v.numbers, number)
	}
	if taken := takenAddress(q, code, s.File.Image.PIE); taken != 0 {
		if to := c.FindPiece(taken); to >= 0 && c.Pieces[to].Lo != taken {
			s.marks[k] |= TakesLabel
			if to != k {
				v.taken = append(v.taken, Mention{int32(k), taken})
			}
		} else if to >= 0 && to != k {
			v.taken = append(v.taken, Mention{int32(k), taken})
		}
	}
	if !q.Kind.IsRelative() {
		return
	}
	target := q.Target()
	inside := p.Lo <= target && target < p.Hi
	switch {
	case q.Kind == x86.Call && inside:
		if target == p.begins {
			v.calls = append(v.calls, Call{int32(k), int32(k)})
		} else {
			v.middles = append(v.middles, Mention{int32(k), target})
		}
	case inside:
	case q.Kind == x86.Call:
		switch to := c.FindPiece(target); {
		case to < 0:
			if !s.File.IsStub(target) {
				v.strays = append(v.strays, Mention{int32(k), target})
			}
		case c.Pieces[to].Lo == target:
			if n := len(v.calls); n == 0 || v.calls[n-1] != (Call{int32(k), int32(to)}) {
				v.calls = append(v.calls, Call{int32(k), int32(to)})
			}
		default:
			v.middles = append(v.middles, Mention{int32(k), target})
		}
	default:
		v.jumps = append(v.jumps, Jump{From: int32(k), To: int32(c.FindPiece(target)), At: q.Addr,
			Target: target, Frame: image.RowAt(v.rows, q.Addr).CFA, Kind: q.Kind,
			Reached: v.marks[i]&seen != 0})
	}
}

// usesReturn says whether an instruction may use the return address of its activation otherwise
// than to return, where rows are true.
func usesReturn(q *cfg.Insn, p *Piece, row image.CFA) bool {
	const returnAddress = -8 // from the CFA
	switch {
	case q.Kind != x86.Other && q.Kind != x86.CallInd && q.Kind != x86.JmpInd:
		return false
	case row.Reg >= 8 || row.Reg == image.Slot || row.Reg == image.Expression:
		return true
	case !q.HasModRM || q.IsMemory() && q.Operation() == x86.Pop:
		return q.Operation() == x86.Pop && row == absint.EntryCFA
	case !q.MayBeOnStack() || q.IsRIPRelative():
		return false
	}
	_, at, _ := q.Operands(p.textOf(q), q.End())
	if !at.Mem || at.Index >= 0 || at.Disp-int64(row.Off) != returnAddress ||
		(at.Base != x86.RSP || row.Reg != x86.DwarfRSP) &&
			(at.Base != x86.RBP || row.Reg != x86.DwarfRBP) {
		return false
	}
	e := q.Effects(p.textOf(q), q.End())
	return e.Operation != x86.Lea && e.Address().Mem
}

// lookAtEntries looks again at the pieces that are entered amid their code: which of these entries
// begin instructions, and what they reach.
func (s *Survey) lookAtEntries() {
	c := s.File.Code
	jumps := map[int][]int{}
	for i := range s.Jumps {
		j := &s.Jumps[i]
		if j.To < 0 {
			continue
		}
		if to := &c.Pieces[j.To]; j.Target == to.begins {
			j.isBoundary = true
		} else {
			s.entries[int(j.To)] = append(s.entries[int(j.To)], j.Target)
			jumps[int(j.To)] = append(jumps[int(j.To)], i)
		}
	}
	list := slices.Sorted(maps.Keys(s.entries))
	views := make([]view, len(list))
	parallel.Each(len(list), func(i int) {
		v := &views[i]
		s.lookAt(v, list[i], s.entries[list[i]])
		for _, j := range jumps[list[i]] {
			s.Jumps[j].isBoundary = v.find(s.Jumps[j].Target) >= 0
		}
		*v = view{unseen: v.unseen}
	})
	for i := range views {
		s.Unseen = append(s.Unseen, views[i].unseen...)
	}
}

// group joins the pieces into routines, as Code.Group does with all instructions, and gives these
// their numbers.
func (s *Survey) group() {
	c := s.File.Code
	for _, call := range s.Calls {
		if p := &c.Pieces[call.To]; p.begins == p.Lo {
			p.Called = true
		}
	}
	var doubtful []crossing
	for i := range s.Jumps {
		j := &s.Jumps[i]
		if j.To < 0 || !j.isBoundary {
			continue
		}
		to := c.Pieces[j.To].CFA(j.Target)
		first := j.Target == c.Pieces[j.To].begins
		if j.contradicts = Contradict(j.Frame, to); j.contradicts {
			s.marks[j.From] |= Middle
			s.marks[j.To] |= Middle
			continue
		}
		doubtful = c.crossing(int(j.From), int(j.To), first && to == absint.EntryCFA,
			j.Kind != x86.Jmp, doubtful)
	}
	s.Group = c.groups(doubtful, s.File.References)
	entry, order := make([]int32, s.Group.Len()), make([]int32, s.Group.Len())
	for g := range entry {
		entry[g], order[g] = int32(c.EntryOf(s.Group.Of(g), s.File.References)), int32(g)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(entry[a], entry[b]) })
	s.Entry = make([]int32, len(entry))
	for g, was := range order {
		s.Entry[g] = entry[was]
	}
	s.Group.order = order
	for g := range order {
		for _, k := range s.Group.Of(g) {
			c.Pieces[k].Routine = len(order) + g
		}
	}
	for i := range s.Jumps {
		if j := &s.Jumps[i]; j.isBack(c) {
			c.Pieces[j.From].Back = true
		}
	}
	s.File.FindPointedParts()
}

// PiecesOf are the pieces of a routine by the number that a survey gives it: as long as the routine
// is not recovered, Piece.Routine is that. Those that are recovered have smaller ones.
func (s *Survey) PiecesOf(routine int) []int32 { return s.Group.Of(routine - s.Group.Len()) }

// EntryOf is the piece that such a routine is entered by.
func (s *Survey) EntryOf(routine int) int { return int(s.Entry[routine-s.Group.Len()]) }

// IsEntry says whether such a routine is entered by the first instruction of a piece of it. It must
// have been taken, see Take.
func (s *Survey) IsEntry(piece int) bool {
	c := s.File.Code
	entry := s.EntryOf(c.Pieces[piece].Routine)
	p := &c.Pieces[entry]
	return p.First < p.Last && c.Insns[p.First].Addr == p.Lo &&
		(piece == entry || s.File.IsEntryToo(&c.Pieces[piece]))
}

// JumpsFrom are those jumps that a piece has. It reads nothing of jumps but where they are from, so
// that what else is known of others may be written meanwhile.
func (s *Survey) JumpsFrom(piece int) []Jump {
	begin := func(k int) int {
		return sort.Search(len(s.Jumps), func(i int) bool { return int(s.Jumps[i].From) >= k })
	}
	return s.Jumps[begin(piece):begin(piece+1)]
}

// CallsFrom are those calls that a piece has.
func (s *Survey) CallsFrom(piece int) []Call {
	of := func(c Call, k int32) int { return cmp.Compare(c.From, k) }
	from, _ := slices.BinarySearchFunc(s.Calls, int32(piece), of)
	to, _ := slices.BinarySearchFunc(s.Calls[from:], int32(piece)+1, of)
	return s.Calls[from : from+to]
}

// Marks returns what is known of a piece.
func (s *Survey) Marks(piece int) Mark { return s.marks[piece] }

// EachNaming calls back with each piece that has an indirect jump, and an instruction that names an
// address of code or of a slot, or a slot that holds it. Cost: the first time, a pass over these
// pieces.
func (s *Survey) EachNaming(addr uint64, visit func(piece int)) {
	list := s.named()
	i, _ := slices.BinarySearchFunc(list, addr,
		func(n naming, addr uint64) int { return cmp.Compare(n.addr, addr) })
	for ; i < len(list) && list[i].addr == addr; i++ {
		visit(int(list[i].piece))
	}
}

func (s *Survey) findNamings() []naming {
	const stretch = 1 << 12
	pieces := s.File.Code.Pieces
	lists := make([][]naming, (len(pieces)+stretch-1)/stretch)
	parallel.Each(len(lists), func(i int) {
		var list []naming
		for k := i * stretch; k < min(len(pieces), (i+1)*stretch); k++ {
			if s.marks[k]&Indirect == 0 {
				continue
			}
			s.eachName(k, func(addr uint64) {
				if to, ok := s.File.HeldAt(addr); ok {
					list = append(list, naming{to, int32(k)})
				} else if in := s.File.Image.SectionAt(addr); in == nil || !in.Exec {
					return
				}
				list = append(list, naming{addr, int32(k)})
			})
		}
		order := func(a, b naming) int {
			return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(a.piece, b.piece))
		}
		slices.SortFunc(list, order)
		lists[i] = slices.Compact(list)
	})
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(a, b naming) int { return cmp.Compare(a.addr, b.addr) })
	return all
}

// eachName calls back for each address that an instruction of a piece names, taken or not.
func (s *Survey) eachName(piece int, visit func(addr uint64)) {
	p := &s.File.Code.Pieces[piece]
	code := p.Text()
	for at := 0; at < len(code); {
		in, ok := x86.Decode(code[at:])
		if !ok {
			at++
			continue
		}
		q := cfg.Insn{Addr: p.Lo + uint64(at), Inst: in}
		EachOperand(&q, code[at:at+int(in.Len)], !s.File.Image.PIE, visit)
		at += int(in.Len)
	}
}

// isBack says whether the jump leads amid another piece of its own routine.
func (j *Jump) isBack(c *Code) bool {
	return j.To >= 0 && j.isBoundary && c.Pieces[j.From].Routine == c.Pieces[j.To].Routine &&
		j.Target != c.Pieces[j.To].begins
}

// Take decodes the pieces for which is holds, those that were asked about, and the first
// instruction of each other one. What was taken before must not be used any more.
func (s *Survey) Take(is func(piece int) bool) {
	c := s.File.Code
	if s.taken == nil {
		s.taken, s.known = make([]bool, len(c.Pieces)), make([]bool, len(c.Pieces))
	}
	size := len(c.Pieces)
	for i := range c.Pieces {
		s.known[i] = is(i)
		if s.taken[i] = s.known[i] || s.missed[i].Load(); s.taken[i] {
			size += int(c.Pieces[i].Hi-c.Pieces[i].Lo) / bytesPerInsn
		}
	}
	c.keepRows(func(piece int) bool { return s.taken[piece] })
	c.Insns = slices.Grow(c.Insns[:0], size)
	var total atomic.Int64
	for i := range c.Pieces {
		p := &c.Pieces[i]
		p.First = len(c.Insns)
		if s.taken[i] {
			c.Insns = p.decode(c.Insns, &total)
		} else if p.decodes {
			c.Insns = append(c.Insns, cfg.Insn{Addr: p.begins})
			c.Insns[len(c.Insns)-1].Read(p.text(p.begins, p.Hi))
		}
		p.Last = len(c.Insns)
	}
	c.link(func(piece int) bool { return s.known[piece] })
}

// IsKnown says whether a piece is one of those that Take was asked for.
func (s *Survey) IsKnown(piece int) bool { return s.known[piece] }

// Miss notes that the instructions of a piece are asked about.
func (s *Survey) Miss(piece int) {
	if s != nil && !s.taken[piece] {
		s.missed[piece].Store(true)
		s.misses.Store(true)
	}
}

// HasMissed says whether pieces were asked about that are not taken, since it said so last.
func (s *Survey) HasMissed() bool { return s.misses.Swap(false) }

// Want notes that the routine of a piece has to be known.
func (s *Survey) Want(piece int) {
	s.wanted.Lock()
	defer s.wanted.Unlock()
	s.wantedPieces = append(s.wantedPieces, piece)
}

// Wanted lists the pieces whose routines have to be known, and forgets them.
func (s *Survey) Wanted() []int {
	list := s.wantedPieces
	s.wantedPieces = nil
	return list
}

// End reports whether what begins at an address is known never to return.
func (s *Survey) End(addr uint64) bool {
	if k := s.File.Code.FindPiece(addr); k >= 0 {
		return s.endPieces[k] && s.File.Code.Pieces[k].Lo == addr
	}
	return s.ends[addr]
}

// NoteEnd notes that a piece never returns.
func (s *Survey) NoteEnd(piece int) (isNew bool) {
	isNew = !s.endPieces[piece]
	s.endPieces[piece] = true
	return isNew
}

// LookAgain finds out again whether some pieces return, with what is known by now never to return.
func (s *Survey) LookAgain(pieces []int) {
	views := make([]view, 32)
	for list := range slices.Chunk(pieces, len(views)) {
		parallel.Each(len(list), func(i int) {
			v, k := &views[i], list[i]
			p := &s.File.Code.Pieces[k]
			v.insns = p.decode(v.insns[:0], &v.decoded)
			v.marks = append(v.marks[:0], make([]uint8, len(v.insns))...)
			v.rows = p.AppendRows(v.rows[:0])
			if s.marks[k] &^= Returns; len(v.insns) > 0 {
				v.follow(s, k, s.entries[k])
				v.noteReached(s.JumpsFrom(k))
			}
		})
	}
}

// noteReached notes which jumps of the piece that is looked at are reached.
func (v *view) noteReached(jumps []Jump) {
	for j := range jumps {
		i := v.find(jumps[j].At)
		jumps[j].Reached = i >= 0 && v.marks[i]&seen != 0
	}
}
