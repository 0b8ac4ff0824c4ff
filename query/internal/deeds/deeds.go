package deeds

import (
	"fmt"
	"math"
	"slices"

	"wpptrace/compress/ops"
	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/callees"
	"wpptrace/query/names"
)

// A Deed is what a thread does: a call of a routine that is asked for, its return, or an access to
// memory.
type Deed struct {
	Kind      Kind
	Routine   int // index in Asked.Names; none of an access
	At        Place
	Arguments [MostArguments]Value // of a call and its return
	Result    Value                // of a return
	Bases     [2]Value             // general registers that the accesses' addresses are made of
	Accesses  []machine.Access
	stack     Value // pointer at the first instruction of what is called
}

// A Kind is a kind of deed.
type Kind uint8

const (
	Called   Kind = iota // control comes to the routine's first instruction
	Returned             // and goes back to where it was called
	Used                 // memory is accessed
)

// A Place is where a deed is done.
type Place struct {
	Position uint64 // in the thread's stream of paths and marks
	// the instruction that was to run, or that accessed memory
	Routine, Block, Insn int
	Addr                 uint64 // of that, link-time
}

// A Value is one as far as it is known.
type Value struct {
	Is    uint64
	Known machine.Knowledge
}

// MostArguments is how many integers and pointers registers pass, by the System V ABI.
const MostArguments = 6

// argumentRegisters are those that pass them.
var argumentRegisters = [MostArguments]int{machine.RDI, machine.RSI, machine.RDX, machine.RCX, 8, 9}

// Asked says which deeds are asked for: calls of routines, and what else.
type Asked struct {
	Names   []string // of routines, of traced code or that it calls; in quotes, if need be
	Uses    bool     // accesses to memory count
	Returns bool     // so do returns
	// whether a reader that waits for nothing has something to do with a deed
	IsFirst func(kind Kind, routine int) bool
}

// Deeds are those of the threads of a snapshot. They belong to one goroutine.
type Deeds struct {
	asked    Asked
	snapshot *wpp.Snapshot
	traced   map[int]int             // index in Names, by routine
	external map[callees.Address]int // and by where it is called
	code     *wet.Code               // of the snapshot
	blocks   map[[2]int][]*instruction
	kinds    []uint8 // which deeds are in each symbol
	unnamed  uint64
}

// A Reader is given the deeds of a thread, in order.
type Reader interface {
	Read(*Deed) error // which is good until it returns; an error ends the reading
	Forget()          // a gap comes: what ran in it is not known
	IsIdle() bool     // it waits for nothing: what is no first deed changes nothing
}

// An instruction is one that a deed may be of.
type instruction struct {
	in   *machine.Insn
	next uint64 // link-time, of the one behind it
	to   int    // what it calls or jumps to, that is not traced: index in Asked.Names
}

// What instructions are that call nothing that is named.
const (
	isNone    = -1
	isPointer = -2 // it calls what a register or memory says
)

// Of finds the routines that are asked for. A name that stands for traced routines stands for them
// alone. It fails where a name stands for none, and where the snapshot's code cannot be read.
func Of(s *wpp.Snapshot, asked Asked) (*Deeds, error) {
	t := &Deeds{asked: asked, snapshot: s, traced: map[int]int{},
		external: map[callees.Address]int{}, blocks: map[[2]int][]*instruction{}}
	var err error
	if t.code, err = wet.CodeOf(s); err != nil {
		return nil, err
	}
	imported, err := callees.Of(s)
	if err != nil {
		return nil, err
	}
	known := names.Of(s)
	for i, name := range t.asked.Names {
		routines, which := known.Split(name)
		if which != "" {
			return nil, fmt.Errorf("%s is a path: of a call with values, name the routine",
				names.Printable(name))
		}
		found := len(routines) > 0
		isTraced := false
		for r := range routines {
			if s.Routines[r].LeftOut == "" {
				t.traced[r], isTraced = i, true
			}
		}
		for r := range routines {
			if !isTraced {
				t.external[callees.Address{Image: s.Routines[r].Image,
					Addr: s.Routines[r].Entry}] = i
			}
		}
		plain, _, isQuoted := names.Unquote(name)
		if !isQuoted {
			plain = name
		}
		for at, is := range imported {
			if is == plain && !isTraced {
				t.external[at], found = i, true
			}
		}
		if !found {
			_, err := known.Routines(name)
			return nil, fmt.Errorf("%w; and no traced code calls a function of that name", err)
		}
	}
	t.kinds = t.symbols()
	return t, nil
}

// Traced returns the names that stand for traced routines.
func (t *Deeds) Traced() (list []string) {
	for i, name := range t.asked.Names {
		for _, is := range t.traced {
			if is == i {
				list = append(list, name)
				break
			}
		}
	}
	return list
}

// Unnamed is how often, in what has been read, code that is not traced was called by a pointer: by
// which name is not known.
func (t *Deeds) Unnamed() uint64 { return t.unnamed }

// Read reads a thread, by its index. It replays the segments in which there are deeds that the
// reader may have to do with, and no others: some 100 ns an instruction.
func (t *Deeds) Read(thread int, r Reader) error {
	segments, err := wet.Segments(t.snapshot, thread)
	if err != nil || len(segments) == 0 {
		return err
	}
	gaps, has := gapsOf(&t.snapshot.Threads[thread], t.snapshot, segments, t.kinds)
	w := &watcher{Deeds: t, reader: r, gaps: gaps}
	for i := range segments {
		if has[i]&hasFirst == 0 && r.IsIdle() && len(w.frames) == 0 {
			continue
		}
		if has[i]&hasDeeds == 0 && len(w.frames) == 0 {
			continue
		}
		if err := segments[i].Replay(0, math.MaxUint64, w); err != nil {
			return err
		}
	}
	w.forget(math.MaxUint64 - 1)
	return nil
}

// block returns the instructions of a block that deeds may be of, by their index there, nil for
// the others; or nil if there are none.
func (t *Deeds) block(routine, block int) []*instruction {
	key := [2]int{routine, block}
	list, ok := t.blocks[key]
	if ok {
		return list
	}
	r := t.code.Routine(routine)
	if r == nil || block >= len(r.Blocks) {
		return nil
	}
	b := &r.Blocks[block]
	next := b.Addr
	for i := range b.Insns {
		in := &b.Insns[i]
		next += uint64(in.Len)
		x := &instruction{in, next, isNone}
		if at, ok := in.Names(next); ok {
			if to, ok := t.external[callees.Address{Image: r.Image, Addr: at}]; ok {
				x.to = to
			}
		} else if in.Op == machine.Call && len(t.external) > 0 {
			x.to = isPointer
		}
		if x.to == isNone && in.Op != machine.Return && !t.asked.Uses {
			continue
		}
		if list == nil {
			list = make([]*instruction, len(b.Insns))
		}
		list[i] = x
	}
	t.blocks[key] = list
	return list
}

// The ways in which deeds are in a symbol.
const (
	hasDeeds = 1 << iota
	hasFirst // one that IsFirst is true of
)

// symbols says of each symbol which deeds are in it.
func (t *Deeds) symbols() []uint8 {
	list := make([]uint8, len(t.snapshot.Symbols))
	for sym := range t.snapshot.Symbols {
		p := &t.snapshot.Symbols[sym]
		if p.IsMark {
			continue
		}
		add := func(routine int, kinds ...Kind) {
			list[sym] |= hasDeeds
			for _, kind := range kinds {
				if t.asked.IsFirst(kind, routine) {
					list[sym] |= hasFirst
				}
			}
		}
		if to, ok := t.traced[p.Routine]; ok {
			add(to, Called, Returned)
		}
		for _, b := range p.Blocks {
			for _, x := range t.block(p.Routine, b) {
				if x != nil && x.to >= 0 {
					add(x.to, Called, Returned)
				}
			}
		}
		if t.asked.Uses {
			add(isNone, Used)
		}
	}
	return list
}

// A frame is a call of a routine that is asked for, which has not returned.
type frame struct {
	stack uint64 // pointer at its first instruction: to where it returns
	deed  Deed
}

// A watcher has the deeds of a thread that is replayed. It is a wet.Watcher.
type watcher struct {
	*Deeds
	reader  Reader
	deed    Deed
	frames  []frame
	gaps    []uint64     // positions of those that have not been reached
	jump    *instruction // conditional, to what is not traced, that comes right before
	jumped  Deed
	symbol  uint64
	begun   bool
	at      *instruction
	pointer *instruction // a call by a pointer that comes right before
}

// forget has the reader forget, before the first deed of a symbol, what a gap has ended.
func (w *watcher) forget(symbol uint64) {
	for len(w.gaps) > 0 && w.gaps[0] <= symbol {
		w.gaps = w.gaps[1:]
		w.reader.Forget()
		w.frames = w.frames[:0]
	}
}

// Before is for a replay: see wet.Watcher.
func (w *watcher) Before(b *wet.Before) error {
	if !w.begun || b.Symbol != w.symbol {
		w.begun, w.symbol = true, b.Symbol
		w.forget(b.Symbol)
	}
	if w.pointer != nil {
		if !b.Enters && b.Addr == w.pointer.next {
			w.unnamed++
		}
		w.pointer = nil
	}
	if w.jump != nil {
		taken := b.Addr != w.jump.next
		w.jump = nil
		if taken {
			if err := w.call(&w.jumped); err != nil {
				return err
			}
		}
	}
	if len(w.frames) > 0 {
		if err := w.unwind(b); err != nil {
			return err
		}
	}
	if to, ok := w.traced[b.Routine]; ok && b.Enters {
		w.start(b, Called, to)
		if err := w.call(&w.deed); err != nil {
			return err
		}
	}
	w.at = nil
	if list := w.block(b.Routine, b.Block); list != nil {
		w.at = list[b.Insn]
	}
	if w.at == nil {
		return nil
	}
	switch in := w.at.in; {
	case in.Op == machine.Return && len(w.frames) > 0:
		if err := w.giveBack(b); err != nil {
			return err
		}
	case w.at.to == isNone:
	case w.at.to == isPointer:
		w.pointer = w.at
	case in.Op == machine.JumpIf:
		w.start(b, Called, w.at.to)
		w.jump, w.jumped = w.at, w.deed
	default:
		w.start(b, Called, w.at.to)
		if in.Op == machine.Call { // which has not pushed where it returns to yet
			w.deed.stack.Is -= 8
		}
		if err := w.call(&w.deed); err != nil {
			return err
		}
	}
	if w.asked.Uses {
		w.address(b)
	}
	return nil
}

// start begins a deed, of which it notes what is known before an instruction.
func (w *watcher) start(b *wet.Before, kind Kind, routine int) {
	w.deed = Deed{Kind: kind, Routine: routine, At: placeOf(b)}
	for i, r := range argumentRegisters {
		v, k := b.General(r)
		w.deed.Arguments[i] = Value{v, k}
	}
	sp, k := b.General(machine.RSP)
	w.deed.stack = Value{sp, k}
}

func placeOf(b *wet.Before) Place {
	return Place{Position: b.Symbol, Routine: b.Routine, Block: b.Block, Insn: b.Insn, Addr: b.Addr}
}

// call finds a call, and keeps it for its return. Where the stack pointer is not known, it will not
// be known when that is: it may be any time from now on.
func (w *watcher) call(d *Deed) error {
	f := frame{d.stack.Is, *d}
	if err := w.reader.Read(d); err != nil || !w.asked.Returns {
		return err
	}
	if d.stack.Known == machine.Unknown {
		return w.miss(&f)
	}
	w.frames = append(w.frames, f)
	return nil
}

// miss has a call have returned, nobody knows with what.
func (w *watcher) miss(f *frame) error {
	w.deed = f.deed
	w.deed.Kind, w.deed.Result = Returned, Value{}
	return w.reader.Read(&w.deed)
}

// missAll has all calls be over, as miss does.
func (w *watcher) missAll() error {
	for len(w.frames) > 0 {
		f := w.frames[len(w.frames)-1]
		w.frames = w.frames[:len(w.frames)-1]
		if err := w.miss(&f); err != nil {
			return err
		}
	}
	return nil
}

// unwind has those calls be over that the stack pointer is above the frames of. If it is right
// above, they have returned; else it is not known whether they have.
func (w *watcher) unwind(b *wet.Before) error {
	sp, k := b.General(machine.RSP)
	if k == machine.Unknown {
		return w.missAll()
	}
	for n := len(w.frames); n > 0 && w.frames[n-1].stack < sp; n = len(w.frames) {
		f := w.frames[n-1]
		w.frames = w.frames[:n-1]
		give := w.miss // it was unwound, or a handler runs on a stack of its own
		if sp == f.stack+8 {
			give = func(f *frame) error { return w.giveResult(b, f) }
		}
		if err := give(&f); err != nil {
			return err
		}
	}
	return nil
}

// giveBack finds the returns that an instruction is which returns.
func (w *watcher) giveBack(b *wet.Before) error {
	sp, _ := b.General(machine.RSP)
	for n := len(w.frames); n > 0 && w.frames[n-1].stack == sp; n = len(w.frames) {
		f := w.frames[n-1]
		w.frames = w.frames[:n-1]
		if err := w.giveResult(b, &f); err != nil {
			return err
		}
	}
	return nil
}

func (w *watcher) giveResult(b *wet.Before, f *frame) error {
	w.deed = f.deed
	w.deed.Kind, w.deed.At = Returned, placeOf(b)
	v, k := b.General(machine.RAX)
	w.deed.Result = Value{v, k}
	return w.reader.Read(&w.deed)
}

// address notes what the addresses that an instruction accesses begin with.
func (w *watcher) address(b *wet.Before) {
	w.deed = Deed{Kind: Used, Routine: isNone, At: placeOf(b)}
	for _, o := range [...]*machine.Operand{&w.at.in.Dst, &w.at.in.Src, &w.at.in.Third} {
		if o.Class != machine.Mem || w.at.in.Op == machine.Lea {
			continue
		}
		for i, r := range [...]uint8{o.Reg, o.Index} {
			if r < 16 && (i == 0 || o.Scale == 0) {
				v, k := b.General(int(r))
				w.deed.Bases[i] = Value{v, k}
			}
		}
	}
}

// Executed is for a replay: see wet.Observer.
func (w *watcher) Executed(e *wet.Executed) error {
	if !w.asked.Uses || len(e.Accesses) == 0 {
		return nil
	}
	w.deed.Accesses = e.Accesses
	return w.reader.Read(&w.deed)
}

// isGap reports whether a mark stands for what was not seen.
func isGap(s *wpp.Symbol) bool {
	return s.IsMark && (s.Mark == ops.Gap || s.Mark == ops.Resume)
}

// gapsOf are the positions of the gaps of a thread, in rising order, and what is in each of its
// segments of values, of the kinds that symbols have.
func gapsOf(t *wpp.Thread, s *wpp.Snapshot, segments []wet.Segment, kinds []uint8) (gaps []uint64,
	has []uint8) {
	has = make([]uint8, len(segments))
	position, at := uint64(0), 0
	for sym := range t.Grammar.Expand(0) {
		for at+1 < len(segments) && segments[at+1].First() < position {
			at++
		}
		has[at] |= kinds[sym]
		if at+1 < len(segments) && segments[at+1].First() == position { // it may begin amid it
			has[at+1] |= kinds[sym]
		}
		if isGap(&s.Symbols[sym]) {
			gaps = append(gaps, position)
		}
		position++
	}
	return gaps, slices.Clip(has)
}
