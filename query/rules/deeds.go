package rules

import (
	"fmt"
	"slices"

	"wpptrace/compress/ops"
	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/callees"
	"wpptrace/query/names"
)

// A deed is what a thread does that a pattern with values sees: a call of a routine that it names,
// its return, or an access to memory if it asks for uses.
type deed struct {
	kind      deedKind
	routine   int // index in targets.names
	at        Deed
	stack     value // pointer at the first instruction of what is called
	arguments [mostArguments]value
	result    value
	bases     [2]value // general registers that the accesses' addresses are made of
	accesses  []machine.Access
}

// A value is one as far as it is known.
type value struct {
	is    uint64
	known machine.Knowledge
}

// argumentRegisters are those that pass integers and pointers, by the System V ABI.
var argumentRegisters = [mostArguments]int{machine.RDI, machine.RSI, machine.RDX, machine.RCX, 8, 9}

// targets are the routines that a pattern names, and which instructions call them.
type targets struct {
	snapshot *wpp.Snapshot
	names    []string
	traced   map[int]int             // index in names, by routine
	external map[callees.Address]int // and by where it is called
	inlined  []string                // those of names that are inlined as well
	uses     bool                    // accesses count
	returns  bool                    // so do returns
	code     *wet.Code               // of the snapshot
	blocks   map[[2]int][]*instruction
}

// An instruction is one that a deed may be of.
type instruction struct {
	in   *machine.Insn
	next uint64 // link-time, of the one behind it
	to   int    // what it calls or jumps to, that is not traced: index in targets.names
}

// What instructions are that call nothing that is named.
const (
	isNone    = -1
	isPointer = -2 // it calls what a register or memory says
)

// newTargets finds the routines of some names. A name that stands for traced routines stands for
// them alone.
func newTargets(s *wpp.Snapshot, list []string) (*targets, error) {
	t := &targets{snapshot: s, names: list, traced: map[int]int{},
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
	for i, name := range list {
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
		if c := inlinedAs(known, name); len(c.Into) > 0 {
			t.inlined = append(t.inlined, name)
		}
	}
	return t, nil
}

// block returns the instructions of a block that deeds may be of, by their index there, nil for
// the others; or nil if there are none.
func (t *targets) block(routine, block int) []*instruction {
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
		if x.to == isNone && in.Op != machine.Return && !t.uses {
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
	hasFirst // one that a match may begin with
)

// symbols says of each symbol which deeds are in it. isFirst says of a deed whether a match may
// begin with it.
func (t *targets) symbols(isFirst func(kind deedKind, routine int) bool) []uint8 {
	list := make([]uint8, len(t.snapshot.Symbols))
	for sym := range t.snapshot.Symbols {
		p := &t.snapshot.Symbols[sym]
		if p.IsMark {
			continue
		}
		add := func(routine int, kinds ...deedKind) {
			list[sym] |= hasDeeds
			for _, kind := range kinds {
				if isFirst(kind, routine) {
					list[sym] |= hasFirst
				}
			}
		}
		if to, ok := t.traced[p.Routine]; ok {
			add(to, called, returned)
		}
		for _, b := range p.Blocks {
			for _, x := range t.block(p.Routine, b) {
				if x != nil && x.to >= 0 {
					add(x.to, called, returned)
				}
			}
		}
		if t.uses {
			add(isNone, used)
		}
	}
	return list
}

// A frame is a call of a routine that a pattern names, which has not returned.
type frame struct {
	stack uint64 // pointer at its first instruction: to where it returns
	deed  deed
}

// A watcher has the deeds of a thread that is replayed. It is a wet.Watcher.
type watcher struct {
	*targets
	found   func(*deed) error
	deed    deed
	frames  []frame
	jump    *instruction // conditional, to what is not traced, that comes right before
	jumped  deed
	forget  func(symbol uint64) // before the first deed of a symbol
	symbol  uint64
	begun   bool
	at      *instruction
	pointer *instruction // a call by a pointer that comes right before
	unnamed uint64       // of these, those of code that is not traced
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
		w.start(b, called, to)
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
		w.start(b, called, w.at.to)
		w.jump, w.jumped = w.at, w.deed
	default:
		w.start(b, called, w.at.to)
		if in.Op == machine.Call { // which has not pushed where it returns to yet
			w.deed.stack.is -= 8
		}
		if err := w.call(&w.deed); err != nil {
			return err
		}
	}
	if w.uses {
		w.address(b)
	}
	return nil
}

// start begins a deed, of which it notes what is known before an instruction.
func (w *watcher) start(b *wet.Before, kind deedKind, routine int) {
	w.deed = deed{kind: kind, routine: routine, at: deedAt(b)}
	for i, r := range argumentRegisters {
		v, k := b.General(r)
		w.deed.arguments[i] = value{v, k}
	}
	sp, k := b.General(machine.RSP)
	w.deed.stack = value{sp, k}
}

func deedAt(b *wet.Before) Deed {
	return Deed{Position: b.Symbol, Routine: b.Routine, Block: b.Block, Insn: b.Insn, Addr: b.Addr}
}

// call finds a call, and keeps it for its return. Where the stack pointer is not known, it will not
// be known when that is: it may be any time from now on.
func (w *watcher) call(d *deed) error {
	f := frame{d.stack.is, *d}
	if err := w.found(d); err != nil || !w.returns {
		return err
	}
	if d.stack.known == machine.Unknown {
		return w.miss(&f)
	}
	w.frames = append(w.frames, f)
	return nil
}

// miss has a call have returned, nobody knows with what.
func (w *watcher) miss(f *frame) error {
	w.deed = f.deed
	w.deed.kind, w.deed.result = returned, value{}
	return w.found(&w.deed)
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
	w.deed.kind, w.deed.at = returned, deedAt(b)
	v, k := b.General(machine.RAX)
	w.deed.result = value{v, k}
	return w.found(&w.deed)
}

// address notes what the addresses that an instruction accesses begin with.
func (w *watcher) address(b *wet.Before) {
	w.deed = deed{kind: used, routine: isNone, at: deedAt(b)}
	for _, o := range [...]*machine.Operand{&w.at.in.Dst, &w.at.in.Src, &w.at.in.Third} {
		if o.Class != machine.Mem || w.at.in.Op == machine.Lea {
			continue
		}
		for i, r := range [...]uint8{o.Reg, o.Index} {
			if r < 16 && (i == 0 || o.Scale == 0) {
				v, k := b.General(int(r))
				w.deed.bases[i] = value{v, k}
			}
		}
	}
}

// Executed is for a replay: see wet.Observer.
func (w *watcher) Executed(e *wet.Executed) error {
	if !w.uses || len(e.Accesses) == 0 {
		return nil
	}
	w.deed.accesses = e.Accesses
	return w.found(&w.deed)
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
