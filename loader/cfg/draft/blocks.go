package draft

import (
	"slices"
	"sort"

	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/jumptable"
	"wpptrace/loader/cfg/sweep"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// A Routine is one in the making: its blocks are built anew whenever a jump table or a call
// that never returns is found, for both change what can be reached.
type Routine struct {
	ID     int
	Addr   uint64 // of the entry
	Pieces []int  // by address
	Entry  int    // an instruction; -1 if the bytes there are none
	Others []int  // instructions by which it is entered as well
	labels []int  // instructions that routines called from it may jump back to
	Blocks []cfg.Block
	First  []int32 // by block: its first instruction
	preds  [][]int32
	Pads   []int // blocks
	// call sites without a call: exceptions come out of what else may fault
	Faulty  bool
	Tables  map[int]*jumptable.Table // by the jump's instruction
	refused map[int]bool             // jumps once resolved, and then no more
	// instructions in others' parts that its tables may lead to, or might have while it was
	// resolved
	Contested []int
	Adopter   *Routine     // the routine that the pieces became parts of
	Made      *cfg.Routine // the final routine
	LeftOut   string
	Cause     string // of leftOut
	Returns   bool
	Saves     bool  // it keeps its return address somewhere, as setjmp does
	Thunk     bool  // it takes a return address of its own off the stack
	Moves     bool  // it changes or drops its return address
	work      []int // instructions to go on from, while blocks are built
}

// Leave records why the routine is left out; the first reason stays.
func (d *Routine) Leave(format string, args ...any) {
	if d.LeftOut == "" {
		d.LeftOut, d.Cause = cfg.FormatReason(format, args...)
	}
}

// The marks of an instruction while blocks are built.
const (
	reached uint8 = 1 << iota
	leader        // begins a block
	landing       // begins a landing pad
)

// A Builder makes the blocks of routines, and knows what control flow reaches. Routines are built
// several at a time: what is indexed by instruction is each routine's own where its instructions
// are.
type Builder struct {
	r       *Program
	code    *sweep.Code
	file    *sweep.File
	marks   []uint8 // by instruction
	blockAt []int32 // by instruction: the block of its routine that begins there, or -1
}

func newBuilder(r *Program) *Builder {
	n := len(r.Code.Insns)
	return &Builder{r: r, code: r.Code, file: r.File, marks: make([]uint8, n),
		blockAt: make([]int32, n)}
}

// build finds the instructions that control flow reaches from the entry, the landing pads and the
// targets of the tables found so far, and makes blocks and edges of them.
func (b *Builder) build(d *Routine) {
	d.LeftOut, d.Cause, d.Returns, d.Thunk, d.Moves = "", "", false, false, false
	for _, i := range d.Pieces {
		p := &b.code.Pieces[i]
		clear(b.marks[p.First:p.Last])
		for k := p.First; k < p.Last; k++ {
			b.blockAt[k] = -1
		}
	}
	b.reach(d)
	b.cut(d)
	b.link(d)
}

// reach marks what control flow reaches.
func (b *Builder) reach(d *Routine) {
	d.work = d.work[:0]
	b.lead(d, d.Entry)
	for _, i := range d.Others {
		b.lead(d, i)
	}
	for _, i := range d.labels {
		b.lead(d, i)
	}
	for _, i := range d.Pieces {
		for _, site := range b.code.Pieces[i].Calls() {
			if site.Pad == 0 {
				continue
			}
			if pad := b.file.Inside(d.ID, b.code.Find(site.Pad)); pad >= 0 {
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
func (b *Builder) lead(d *Routine, i int) {
	if i >= 0 && b.marks[i]&leader == 0 {
		b.marks[i] |= leader
		d.work = append(d.work, i)
	}
}

// goOn returns the instruction that follows i in its block, or -1, and leads to what else follows.
func (b *Builder) goOn(d *Routine, i int) int {
	switch b.code.Insns[i].Kind {
	case x86.Jcc, x86.Loop:
		b.lead(d, b.file.Inside(d.ID, int(b.code.Target[i])))
		b.lead(d, b.file.Next(d.ID, i))
	case x86.Jmp:
		b.lead(d, b.file.Inside(d.ID, int(b.code.Target[i])))
	case x86.JmpInd:
		if t := d.Tables[i]; t != nil {
			for _, to := range t.Targets {
				b.lead(d, to)
			}
		}
	case x86.Ret, x86.Trap:
	case x86.Call, x86.CallInd:
		if !b.r.neverReturns(i) {
			b.lead(d, b.file.Next(d.ID, i))
		}
	default:
		next := b.file.Next(d.ID, i)
		if !b.file.Overlapped(i) {
			return next
		}
		b.lead(d, next)
	}
	return -1
}

// cut makes blocks of the instructions reached: one ends before each leader and after each transfer
// of control.
func (b *Builder) cut(d *Routine) {
	leaders := 0
	for _, pi := range d.Pieces {
		for _, mark := range b.marks[b.code.Pieces[pi].First:b.code.Pieces[pi].Last] {
			leaders += int(mark & leader / leader)
		}
	}
	d.Blocks, d.First = slices.Grow(d.Blocks[:0], leaders), slices.Grow(d.First[:0], leaders)
	for _, pi := range d.Pieces {
		p := &b.code.Pieces[pi]
		for i := p.First; i < p.Last; {
			if b.marks[i]&reached == 0 {
				i++
				continue
			}
			start := i
			for i = start + 1; i < p.Last && b.marks[i] == reached &&
				b.code.Insns[i].Addr == b.code.Insns[i-1].End() &&
				!transfers(b.code.Insns[i-1].Kind); {
				i++
			}
			b.blockAt[start] = int32(len(d.Blocks))
			d.First = append(d.First, int32(start))
			d.Blocks = append(d.Blocks, cfg.Block{
				Lo: b.code.Insns[start].Addr, Hi: b.code.Insns[i-1].End(),
				Insns: b.code.Insns[start:i:i], Depth: -1,
			})
		}
	}
}

func transfers(k x86.Kind) bool { return k != x86.Other && k != x86.Syscall }

// Last returns the last instruction of block b.
func (d *Routine) Last(b int) int { return int(d.First[b]) + len(d.Blocks[b].Insns) - 1 }

// link finds each block's end, successors and landing pads.
func (bd *Builder) link(d *Routine) {
	// Most blocks have at most two successors: one array holds them all.
	room := make([]int, 0, 2*len(d.Blocks))
	for b := range d.Blocks {
		bl := &d.Blocks[b]
		from := len(room)
		room = bd.end(d, b, room)
		bl.Succ = room[from:len(room):len(room)]
		if from == len(room) {
			bl.Succ = nil
		}
		switch bl.End {
		case cfg.Ret, cfg.TailInd, cfg.Unresolved:
			d.Returns = true
		case cfg.Tail:
			d.Returns = d.Returns || !bd.r.neverReturns(d.Last(b))
		case cfg.Jcc:
			d.Returns = d.Returns || bl.Succ[0] < 0
		}
	}
	d.Pads, d.Faulty = d.Pads[:0], false
	for _, i := range d.Pieces {
		bd.linkPads(d, bd.code.Pieces[i].Calls())
	}
	bd.linkLabels(d)
	slices.Sort(d.Pads)
	d.Pads = slices.Compact(d.Pads)
}

// end sets the end of block b and returns room with its successors appended.
func (bd *Builder) end(d *Routine, b int, room []int) []int {
	bl := &d.Blocks[b]
	i := d.Last(b)
	q := &bd.code.Insns[i]
	next := bd.BlockOf(bd.file.Next(d.ID, i))
	if q.Kind.IsRelative() {
		bl.Target = q.Target()
	}
	switch q.Kind {
	case x86.Jcc, x86.Loop:
		bl.End = cfg.Jcc
		if d.neverTaken(bd.file, i) {
			next = d.orRunsOff(bd.file, next, i)
			return append(room, next, next)
		}
		return append(room, bd.jumpTarget(d, i), d.orRunsOff(bd.file, next, i))
	case x86.Jmp:
		to := bd.jumpTarget(d, i)
		bl.End = cfg.Jmp
		if to < 0 {
			bl.End = cfg.Tail
			return room
		}
		return append(room, to)
	case x86.Call, x86.CallInd:
		return bd.endCall(d, b, next, room)
	case x86.JmpInd:
		return bd.endTable(d, b, room)
	case x86.Ret:
		bl.End = cfg.Ret
		return room
	case x86.Trap:
		bl.End = cfg.Trap
		if q.IsBreakpoint() {
			d.Leave("breakpoint instruction at %x", q.Addr)
		}
		return room
	}
	bl.End = cfg.Fall
	if next < 0 && bd.file.IsUnreachable(i) {
		bl.End = cfg.Trap
		return room
	}
	return append(room, d.orRunsOff(bd.file, next, i))
}

// endCall ends block b at a call, which next follows.
func (bd *Builder) endCall(d *Routine, b, next int, room []int) []int {
	bl := &d.Blocks[b]
	i := d.Last(b)
	bl.End = cfg.Call
	if bd.code.Insns[i].Kind == x86.CallInd {
		bl.End = cfg.CallInd
	}
	bd.checkCall(d, i)
	// Compilers put nothing behind a call that they know never to return, or what is come to
	// otherwise.
	if next < 0 || bd.r.neverReturns(i) || bd.takesException(d, next) {
		bl.End = cfg.NoReturn
		return room
	}
	return append(room, next)
}

// takesException says whether block b is a landing pad that looks at the exception, in rax and rdx:
// no call returns to it.
func (bd *Builder) takesException(d *Routine, b int) bool {
	if bd.marks[d.First[b]]&landing == 0 {
		return false
	}
	if k := begins(&d.Blocks[b]); d.Blocks[b].Insns[k].Kind == x86.Jmp {
		// what several pads begin with is there once
		if b = bd.BlockOf(bd.file.Inside(d.ID, int(bd.code.Target[int(d.First[b])+k]))); b < 0 {
			return false
		}
	}
	for k := range d.Blocks[b].Insns { // schedulers put others before it
		e := bd.code.Effects(int(d.First[b]) + k)
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
func begins(b *cfg.Block) int {
	if len(b.Insns) > 1 && b.Insns[0].IsEndbr64() {
		return 1
	}
	return 0
}

// endTable ends block b at an indirect jump, resolved or not.
func (bd *Builder) endTable(d *Routine, b int, room []int) []int {
	bl := &d.Blocks[b]
	t := d.Tables[d.Last(b)]
	if t == nil {
		bl.End = cfg.Unresolved
		return room
	}
	if t.Tail {
		bl.End = cfg.TailInd
		return room
	}
	bl.End = cfg.Table
	from := len(room)
	for _, to := range t.Targets {
		room = append(room, int(bd.blockAt[to]))
	}
	slices.Sort(room[from:])
	return room[:from+len(slices.Compact(room[from:]))]
}

// BlockOf returns the block that instruction i begins, or -1.
func (b *Builder) BlockOf(i int) int {
	if i < 0 {
		return -1
	}
	return int(b.blockAt[i])
}

// jumpTarget returns the block that the relative jump i goes to, or -1 when it leaves the routine.
func (bd *Builder) jumpTarget(d *Routine, i int) int {
	t := int(bd.code.Target[i])
	to := bd.code.Insns[i].Target()
	if t < 0 {
		if bd.code.FindPiece(to) >= 0 {
			d.Leave("jumps into the middle of an instruction at %x", bd.code.Insns[i].Addr)
		} else if !bd.file.IsStub(to) && !bd.file.IsFunction(to) {
			d.Leave("jumps to unknown code at %x", bd.code.Insns[i].Addr)
		}
		return -1
	}
	if b := bd.BlockOf(bd.file.Inside(d.ID, t)); b >= 0 {
		return b
	}
	if bd.r.RoutineAt(t) < 0 {
		d.Leave("jumps into the middle of another routine at %x", bd.code.Insns[i].Addr)
	}
	return -1
}

// checkCall leaves the routine out when the direct call i does not call a routine's entry.
func (b *Builder) checkCall(d *Routine, i int) {
	if b.code.Insns[i].Kind != x86.Call {
		return
	}
	t := int(b.code.Target[i])
	switch {
	case t < 0 && b.code.FindPiece(b.code.Insns[i].Target()) >= 0:
		d.Leave("calls into the middle of an instruction at %x", b.code.Insns[i].Addr)
	case t < 0:
	case b.file.Inside(d.ID, t) >= 0 && b.r.RoutineAt(t) < 0:
		d.Thunk = true
		d.Leave("calls into its own middle at %x", b.code.Insns[i].Addr)
	case b.r.RoutineAt(t) < 0:
		d.Leave("calls into the middle of a routine at %x", b.code.Insns[i].Addr)
	}
}

// linkPads gives each call its landing pad. Call sites are sorted and do not overlap.
func (b *Builder) linkPads(d *Routine, sites []image.CallSite) {
	end := uint64(0)
	for _, site := range sites {
		pad := -1
		if site.Pad != 0 {
			pad = b.BlockOf(b.file.Inside(d.ID, b.code.Find(site.Pad)))
			if pad < 0 || site.Lo < end {
				d.Leave("call sites with a landing pad at %x make no sense", site.Pad)
				return
			}
			end = site.Hi
			if d.Blocks[pad].Insns[begins(&d.Blocks[pad])].Kind == x86.Trap {
				continue // nothing of it ever runs
			}
			d.Pads = append(d.Pads, pad)
		}
		d.linkSite(site, pad)
	}
}

// linkSite gives the calls of a call site its landing pad, if there is one, and finds out whether
// the site is there for what may fault: it holds no call then, or ends behind what is none.
func (d *Routine) linkSite(site image.CallSite, pad int) {
	runs, calls := false, false
	var last *cfg.Insn
	for b := sort.Search(len(d.Blocks),
		func(b int) bool { return d.Blocks[b].Hi > site.Lo }); b < len(d.Blocks) &&
		d.Blocks[b].Lo < site.Hi; b++ {
		bl := &d.Blocks[b]
		for i := range bl.Insns {
			if q := &bl.Insns[i]; site.Lo <= q.Addr && q.Addr < site.Hi {
				last, runs = q, runs || q.Kind != x86.Trap
			}
		}
		if last != &bl.Insns[len(bl.Insns)-1] {
			continue
		}
		calls = calls || bl.IsCall() || bl.End == cfg.Tail || bl.End == cfg.TailInd ||
			bl.End == cfg.Jcc && bl.Succ[0] < 0
		if bl.IsCall() && pad >= 0 {
			bl.Pads = append(bl.Pads, pad)
		}
	}
	d.Faulty = d.Faulty || runs && !calls || pad >= 0 && last != nil && last.MayFault()
}

// linkPreds fills in the predecessors of each block, those by a call's return included.
func (d *Routine) linkPreds() {
	count := make([]int32, len(d.Blocks)+1)
	for b := range d.Blocks {
		for _, to := range d.Blocks[b].Succ {
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
	d.preds = make([][]int32, len(d.Blocks))
	for b := range d.preds {
		d.preds[b], room = room[:0:count[b]], room[count[b]:]
	}
	for b := range d.Blocks {
		for i, to := range d.Blocks[b].Succ {
			if to >= 0 && !slices.Contains(d.Blocks[b].Succ[:i], to) {
				d.preds[to] = append(d.preds[to], int32(b))
			}
		}
	}
}

func (d *Routine) orRunsOff(f *sweep.File, next, i int) int {
	if next < 0 {
		d.Leave("runs into unknown code at %x", f.Code.Insns[i].End())
	}
	return next
}

// Has says whether a block of the routine ends so.
func (d *Routine) Has(end cfg.End) bool {
	for b := range d.Blocks { // not by slices.ContainsFunc: it copies each block
		if d.Blocks[b].End == end {
			return true
		}
	}
	return false
}

// EachUnreached calls back for each part of a routine that no instruction reached covers.
func (b *Builder) EachUnreached(d *Routine, visit func(code []byte, addr uint64)) {
	for _, k := range d.Pieces {
		p := &b.code.Pieces[k]
		at := p.Lo
		for i := p.First; i <= p.Last; i++ {
			next := p.Hi
			if i < p.Last {
				if !b.IsReached(i) {
					continue
				}
				next = b.code.Insns[i].Addr
			}
			if at < next {
				visit(p.Text()[at-p.Lo:next-p.Lo], at)
			}
			if i < p.Last {
				at = max(at, b.code.Insns[i].End())
			}
		}
	}
}

// IsReached says whether control flow is known to reach instruction i.
func (b *Builder) IsReached(i int) bool { return b.marks[i]&reached != 0 }
