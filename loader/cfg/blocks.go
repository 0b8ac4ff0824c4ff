package cfg

import (
	"slices"
	"sort"

	"wpptrace/loader/cfg/jumptable"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// A draft is a routine in the making: its blocks are built anew whenever a jump table or a call
// that never returns is found, for both change what can be reached.
type draft struct {
	id     int
	addr   uint64 // of the entry
	pieces []int  // by address
	entry  int    // an instruction; -1 if the bytes there are none
	others []int  // instructions by which it is entered as well
	labels []int  // instructions that routines called from it may jump back to
	blocks []Block
	first  []int32 // by block: its first instruction
	preds  [][]int32
	pads   []int // blocks
	// call sites without a call: exceptions come out of what else may fault
	faulty  bool
	tables  map[int]*jumptable.Table // by the jump's instruction
	refused map[int]bool             // jumps once resolved, and then no more
	// instructions in others' parts that its tables may lead to, or might have while it was
	// resolved
	contested []int
	adopter   *draft   // the routine that the pieces became parts of
	made      *Routine // the final routine
	leftOut   string
	cause     string // of leftOut
	returns   bool
	saves     bool  // it keeps its return address somewhere, as setjmp does
	thunk     bool  // it takes a return address of its own off the stack
	moves     bool  // it changes or drops its return address
	work      []int // instructions to go on from, while blocks are built
}

// leave records why the routine is left out; the first reason stays.
func (d *draft) leave(format string, args ...any) {
	if d.leftOut == "" {
		d.leftOut, d.cause = FormatReason(format, args...)
	}
}

// The marks of an instruction while blocks are built.
const (
	reached uint8 = 1 << iota
	leader        // begins a block
	landing       // begins a landing pad
)

// A builder makes the blocks of routines, and knows what control flow reaches. Routines are built
// several at a time: what is indexed by instruction is each routine's own where its instructions
// are.
type builder struct {
	r       *recovery
	code    *code
	file    *file
	marks   []uint8 // by instruction
	blockAt []int32 // by instruction: the block of its routine that begins there, or -1
}

func newBuilder(r *recovery) *builder {
	n := len(r.code.insns)
	return &builder{r: r, code: r.code, file: r.file, marks: make([]uint8, n),
		blockAt: make([]int32, n)}
}

// build finds the instructions that control flow reaches from the entry, the landing pads and the
// targets of the tables found so far, and makes blocks and edges of them.
func (b *builder) build(d *draft) {
	d.leftOut, d.cause, d.returns, d.thunk, d.moves = "", "", false, false, false
	for _, i := range d.pieces {
		p := &b.code.pieces[i]
		clear(b.marks[p.first:p.last])
		for k := p.first; k < p.last; k++ {
			b.blockAt[k] = -1
		}
	}
	b.reach(d)
	b.cut(d)
	b.link(d)
}

// reach marks what control flow reaches.
func (b *builder) reach(d *draft) {
	d.work = d.work[:0]
	b.lead(d, d.entry)
	for _, i := range d.others {
		b.lead(d, i)
	}
	for _, i := range d.labels {
		b.lead(d, i)
	}
	for _, i := range d.pieces {
		for _, site := range b.code.pieces[i].Calls {
			if site.Pad == 0 {
				continue
			}
			if pad := b.file.inside(d.id, b.code.find(site.Pad)); pad >= 0 {
				b.lead(d, pad)
				b.marks[pad] |= landing
			}
		}
	}
	for len(d.work) > 0 {
		i := d.work[len(d.work)-1]
		d.work = d.work[:len(d.work)-1]
		for i >= 0 && b.marks[i]&reached == 0 {
			b.marks[i] |= reached
			i = b.goOn(d, i)
		}
	}
}

// lead marks instruction i, unless it is -1, as the beginning of a block, to be gone on from.
func (b *builder) lead(d *draft, i int) {
	if i >= 0 && b.marks[i]&leader == 0 {
		b.marks[i] |= leader
		d.work = append(d.work, i)
	}
}

// goOn returns the instruction that follows i in its block, or -1, and leads to what else follows.
func (b *builder) goOn(d *draft, i int) int {
	switch b.code.insns[i].Kind {
	case x86.Jcc, x86.Loop:
		b.lead(d, b.file.inside(d.id, int(b.code.target[i])))
		b.lead(d, b.file.next(d.id, i))
	case x86.Jmp:
		b.lead(d, b.file.inside(d.id, int(b.code.target[i])))
	case x86.JmpInd:
		if t := d.tables[i]; t != nil {
			for _, to := range t.Targets {
				b.lead(d, to)
			}
		}
	case x86.Ret, x86.Trap:
	case x86.Call, x86.CallInd:
		if !b.r.neverReturns(i) {
			b.lead(d, b.file.next(d.id, i))
		}
	default:
		next := b.file.next(d.id, i)
		if !b.file.overlapped(i) {
			return next
		}
		b.lead(d, next)
	}
	return -1
}

// inside returns i if that instruction belongs to a routine, else -1.
func (f *file) inside(routine, i int) int {
	if i < 0 || f.code.pieces[f.code.pieceOf[i]].routine != routine {
		return -1
	}
	return i
}

// overlapped says whether instruction i is one of a pair, with a lock prefix and without it.
func (f *file) overlapped(i int) bool {
	return i+1 < len(f.code.insns) && f.code.insns[i+1].Addr < f.code.insns[i].end() ||
		i > 0 && f.code.insns[i-1].end() > f.code.insns[i].Addr
}

// next returns the instruction that follows i in the routine, or -1.
func (f *file) next(routine, i int) int {
	n := i + 1
	if n < len(f.code.insns) && f.code.insns[n].Addr < f.code.insns[i].end() {
		n++ // the same without its lock prefix
	}
	if n >= len(f.code.insns) || f.code.insns[n].Addr != f.code.insns[i].end() {
		return -1
	}
	return f.inside(routine, n)
}

// cut makes blocks of the instructions reached: one ends before each leader and after each transfer
// of control.
func (b *builder) cut(d *draft) {
	leaders := 0
	for _, pi := range d.pieces {
		for _, mark := range b.marks[b.code.pieces[pi].first:b.code.pieces[pi].last] {
			leaders += int(mark & leader / leader)
		}
	}
	d.blocks, d.first = slices.Grow(d.blocks[:0], leaders), slices.Grow(d.first[:0], leaders)
	for _, pi := range d.pieces {
		p := &b.code.pieces[pi]
		for i := p.first; i < p.last; {
			if b.marks[i]&reached == 0 {
				i++
				continue
			}
			start := i
			for i = start + 1; i < p.last && b.marks[i] == reached &&
				b.code.insns[i].Addr == b.code.insns[i-1].end() &&
				!transfers(b.code.insns[i-1].Kind); {
				i++
			}
			b.blockAt[start] = int32(len(d.blocks))
			d.first = append(d.first, int32(start))
			d.blocks = append(d.blocks, Block{
				Lo: b.code.insns[start].Addr, Hi: b.code.insns[i-1].end(),
				Insns: b.code.insns[start:i:i], Depth: -1,
			})
		}
	}
}

func transfers(k x86.Kind) bool { return k != x86.Other && k != x86.Syscall }

// last returns the last instruction of block b.
func (d *draft) last(b int) int { return int(d.first[b]) + len(d.blocks[b].Insns) - 1 }

// link finds each block's end, successors and landing pads.
func (bd *builder) link(d *draft) {
	// Most blocks have at most two successors: one array holds them all.
	room := make([]int, 0, 2*len(d.blocks))
	for b := range d.blocks {
		bl := &d.blocks[b]
		from := len(room)
		room = bd.end(d, b, room)
		bl.Succ = room[from:len(room):len(room)]
		if from == len(room) {
			bl.Succ = nil
		}
		switch bl.End {
		case Ret, TailInd, Unresolved:
			d.returns = true
		case Tail:
			d.returns = d.returns || !bd.r.neverReturns(d.last(b))
		case Jcc:
			d.returns = d.returns || bl.Succ[0] < 0
		}
	}
	d.pads, d.faulty = d.pads[:0], false
	for _, i := range d.pieces {
		bd.linkPads(d, bd.code.pieces[i].Calls)
	}
	bd.linkLabels(d)
	slices.Sort(d.pads)
	d.pads = slices.Compact(d.pads)
}

// end sets the end of block b and returns room with its successors appended.
func (bd *builder) end(d *draft, b int, room []int) []int {
	bl := &d.blocks[b]
	i := d.last(b)
	q := &bd.code.insns[i]
	next := bd.blockOf(bd.file.next(d.id, i))
	if q.Kind.IsRelative() {
		bl.Target = q.target()
	}
	switch q.Kind {
	case x86.Jcc, x86.Loop:
		bl.End = Jcc
		if d.neverTaken(bd.file, i) {
			next = d.orRunsOff(bd.file, next, i)
			return append(room, next, next)
		}
		return append(room, bd.jumpTarget(d, i), d.orRunsOff(bd.file, next, i))
	case x86.Jmp:
		to := bd.jumpTarget(d, i)
		bl.End = Jmp
		if to < 0 {
			bl.End = Tail
			return room
		}
		return append(room, to)
	case x86.Call, x86.CallInd:
		return bd.endCall(d, b, next, room)
	case x86.JmpInd:
		return bd.endTable(d, b, room)
	case x86.Ret:
		bl.End = Ret
		return room
	case x86.Trap:
		bl.End = Trap
		if q.IsBreakpoint() {
			d.leave("breakpoint instruction at %x", q.Addr)
		}
		return room
	}
	bl.End = Fall
	if next < 0 && bd.file.isUnreachable(i) {
		bl.End = Trap
		return room
	}
	return append(room, d.orRunsOff(bd.file, next, i))
}

// endCall ends block b at a call, which next follows.
func (bd *builder) endCall(d *draft, b, next int, room []int) []int {
	bl := &d.blocks[b]
	i := d.last(b)
	bl.End = Call
	if bd.code.insns[i].Kind == x86.CallInd {
		bl.End = CallInd
	}
	bd.checkCall(d, i)
	// Compilers put nothing behind a call that they know never to return, or what is come to
	// otherwise.
	if next < 0 || bd.r.neverReturns(i) || bd.takesException(d, next) {
		bl.End = NoReturn
		return room
	}
	return append(room, next)
}

// takesException says whether block b is a landing pad that looks at the exception, in rax and rdx:
// no call returns to it.
func (bd *builder) takesException(d *draft, b int) bool {
	if bd.marks[d.first[b]]&landing == 0 {
		return false
	}
	if k := begins(&d.blocks[b]); d.blocks[b].Insns[k].Kind == x86.Jmp {
		// what several pads begin with is there once
		if b = bd.blockOf(bd.file.inside(d.id, int(bd.code.target[int(d.first[b])+k]))); b < 0 {
			return false
		}
	}
	for k := range d.blocks[b].Insns { // schedulers put others before it
		e := bd.code.effects(int(d.first[b]) + k)
		keeps := e.Operation == x86.Mov && e.Src.Reg == x86.RAX && e.Src.Size == 8
		isSelector := e.Operation == x86.Test && !e.HasImm || comparesByte(&e)
		if keeps || k < 4 && isSelector && e.Dst.Reg == x86.RDX {
			return true
		}
		if e.Calls() || e.Written().Has(x86.RAX) {
			return false
		}
	}
	return false
}

// comparesByte says whether an instruction computes with a constant as small as the numbers of
// handlers are.
func comparesByte(e *x86.Effects) bool {
	switch e.Operation {
	case x86.Add, x86.Or, x86.Adc, x86.Sbb, x86.And, x86.Sub, x86.Xor, x86.Cmp:
		return e.HasImm && e.Dst.Size > 1 && e.Imm == int64(int8(e.Imm))
	}
	return false
}

// begins is the index of the first instruction of a block that does anything: what may be jumped to
// by a pointer can be marked so.
func begins(b *Block) int {
	if len(b.Insns) > 1 && b.Insns[0].IsEndbr64() {
		return 1
	}
	return 0
}

// endTable ends block b at an indirect jump, resolved or not.
func (bd *builder) endTable(d *draft, b int, room []int) []int {
	bl := &d.blocks[b]
	t := d.tables[d.last(b)]
	if t == nil {
		bl.End = Unresolved
		return room
	}
	if t.Tail {
		bl.End = TailInd
		return room
	}
	bl.End = Table
	from := len(room)
	for _, to := range t.Targets {
		room = append(room, int(bd.blockAt[to]))
	}
	slices.Sort(room[from:])
	return room[:from+len(slices.Compact(room[from:]))]
}

// blockOf returns the block that instruction i begins, or -1.
func (b *builder) blockOf(i int) int {
	if i < 0 {
		return -1
	}
	return int(b.blockAt[i])
}

// jumpTarget returns the block that the relative jump i goes to, or -1 when it leaves the routine.
func (bd *builder) jumpTarget(d *draft, i int) int {
	t := int(bd.code.target[i])
	to := bd.code.insns[i].target()
	if t < 0 {
		if bd.code.findPiece(to) >= 0 {
			d.leave("jumps into the middle of an instruction at %x", bd.code.insns[i].Addr)
		} else if !bd.file.isStub(to) && !bd.file.isFunction(to) {
			d.leave("jumps to unknown code at %x", bd.code.insns[i].Addr)
		}
		return -1
	}
	if b := bd.blockOf(bd.file.inside(d.id, t)); b >= 0 {
		return b
	}
	if bd.r.routineAt(t) < 0 {
		d.leave("jumps into the middle of another routine at %x", bd.code.insns[i].Addr)
	}
	return -1
}

// checkCall leaves the routine out when the direct call i does not call a routine's entry.
func (b *builder) checkCall(d *draft, i int) {
	if b.code.insns[i].Kind != x86.Call {
		return
	}
	t := int(b.code.target[i])
	switch {
	case t < 0 && b.code.findPiece(b.code.insns[i].target()) >= 0:
		d.leave("calls into the middle of an instruction at %x", b.code.insns[i].Addr)
	case t < 0:
	case b.file.inside(d.id, t) >= 0 && b.r.routineAt(t) < 0:
		d.thunk = true
		d.leave("calls into its own middle at %x", b.code.insns[i].Addr)
	case b.r.routineAt(t) < 0:
		d.leave("calls into the middle of a routine at %x", b.code.insns[i].Addr)
	}
}

// linkPads gives each call its landing pad. Call sites are sorted and do not overlap.
func (b *builder) linkPads(d *draft, sites []image.CallSite) {
	end := uint64(0)
	for _, site := range sites {
		pad := -1
		if site.Pad != 0 {
			pad = b.blockOf(b.file.inside(d.id, b.code.find(site.Pad)))
			if pad < 0 || site.Lo < end {
				d.leave("call sites with a landing pad at %x make no sense", site.Pad)
				return
			}
			end = site.Hi
			if d.blocks[pad].Insns[begins(&d.blocks[pad])].Kind == x86.Trap {
				continue // nothing of it ever runs
			}
			d.pads = append(d.pads, pad)
		}
		d.linkSite(site, pad)
	}
}

// linkSite gives the calls of a call site its landing pad, if there is one, and finds out whether
// the site is there for what may fault: it holds no call then, or ends behind what is none.
func (d *draft) linkSite(site image.CallSite, pad int) {
	runs, calls := false, false
	var last *Insn
	for b := sort.Search(len(d.blocks),
		func(b int) bool { return d.blocks[b].Hi > site.Lo }); b < len(d.blocks) &&
		d.blocks[b].Lo < site.Hi; b++ {
		bl := &d.blocks[b]
		for i := range bl.Insns {
			if q := &bl.Insns[i]; site.Lo <= q.Addr && q.Addr < site.Hi {
				last, runs = q, runs || q.Kind != x86.Trap
			}
		}
		if last != &bl.Insns[len(bl.Insns)-1] {
			continue
		}
		calls = calls || bl.IsCall() || bl.End == Tail || bl.End == TailInd ||
			bl.End == Jcc && bl.Succ[0] < 0
		if bl.IsCall() && pad >= 0 {
			bl.Pads = append(bl.Pads, pad)
		}
	}
	d.faulty = d.faulty || runs && !calls || pad >= 0 && last != nil && last.MayFault()
}

// linkPreds fills in the predecessors of each block, those by a call's return included.
func (d *draft) linkPreds() {
	count := make([]int32, len(d.blocks)+1)
	for b := range d.blocks {
		for _, to := range d.blocks[b].Succ {
			if to >= 0 {
				count[to]++
			}
		}
	}
	total := 0
	for _, n := range count {
		total += int(n)
	}
	room := make([]int32, total)
	d.preds = make([][]int32, len(d.blocks))
	for b := range d.preds {
		d.preds[b], room = room[:0:count[b]], room[count[b]:]
	}
	for b := range d.blocks {
		for i, to := range d.blocks[b].Succ {
			if to >= 0 && !slices.Contains(d.blocks[b].Succ[:i], to) {
				d.preds[to] = append(d.preds[to], int32(b))
			}
		}
	}
}

func (d *draft) orRunsOff(f *file, next, i int) int {
	if next < 0 {
		d.leave("runs into unknown code at %x", f.code.insns[i].end())
	}
	return next
}
