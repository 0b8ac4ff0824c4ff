package values

import (
	"encoding/binary"
	"slices"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
)

// mostWaiting is how many values wait, at most, for the end of a gap before them.
const mostWaiting = 4096

// An event is a value that a variable has taken, or none that is known.
type event struct {
	taken     Taken
	isSettled bool // it is to be given to who asks, or not
	isDropped bool
}

// A gap is some time for which the value of a variable is not known. It was the one before all the
// time where that is the one behind, or where nobody knows of the variable but what writes it by
// its place in the frame; and the one behind since code last ran that may have written it.
type gap struct {
	last     *lastValue
	dash     *event // that it is not known
	from     *event // since when it may have been the one behind: dash, or one for that alone
	isHidden bool   // see Frame.Hides
	addr     uint64 // where it is, size bytes; 0: in no memory, or that is not known
	size     int64
	// it has been read, as an instruction does that writes it, too, as no other one had since from
	isRead bool
	read   uint64
	// it has been given a value that is known, and one that is not, or may have been
	isWritten, isOverwritten bool
	isChanged                bool // code has run since from that may have written it
}

// open begins a gap.
func (f *followed) open(last *lastValue, now *Taken, b *wet.Before, entry *Entry, isHidden bool) {
	g := &gap{last: last, dash: &event{taken: *now}, isHidden: isHidden}
	g.from = g.dash
	if addr, size, k := now.Asked.Address(b.Addr, b, entry); k != machine.Unknown {
		g.addr, g.size = addr, size
	}
	last.isTaken, last.gap = last.isTaken || last.isKnown, g
	f.gaps = append(f.gaps, g)
	f.add(g.dash)
}

// goOn is where the value is not known yet.
func (g *gap) goOn(f *followed, now *Taken) {
	if !g.isChanged {
		return
	}
	if g.isChanged, g.isRead = false, false; g.from != g.dash {
		g.from.settle(false)
	}
	g.from = &event{taken: *now}
	f.add(g.from)
}

// before takes what may have run before an instruction.
func (g *gap) before(b *wet.Before, isLost bool) {
	g.isOverwritten = g.isOverwritten || isLost
	g.isChanged = g.isChanged || isLost || b.External && !g.isHidden
}

// executed takes what an instruction reads, and may write.
func (g *gap) executed(e *wet.Executed) {
	for i := range e.Accesses {
		a := &e.Accesses[i]
		switch {
		case !a.Write:
			g.reads(a)
		case a.At == machine.Unknown || a.Size == 0:
			if isLost := ByFrame(e.Code); isLost || !g.isHidden {
				g.isChanged, g.isOverwritten = true, g.isOverwritten || isLost
			}
		case a.Addr-g.addr < uint64(g.size) || g.addr-a.Addr < uint64(a.Size):
			if a.Known == machine.Unknown {
				g.isChanged, g.isOverwritten = true, true
			} else {
				g.isWritten = true
			}
		}
	}
}

// reads takes what an instruction reads.
func (g *gap) reads(a *machine.Access) {
	ahead := g.addr - a.Addr
	if g.isChanged || g.isWritten || g.addr == 0 || a.Known == machine.Unknown ||
		ahead >= uint64(a.Size) || uint64(g.size) > min(8, uint64(a.Size)-ahead) {
		return
	}
	var word [8]byte
	copy(word[:], a.Data()[ahead:][:g.size])
	g.isRead, g.read = true, g.dash.taken.Asked.number(binary.LittleEndian.Uint64(word[:]))
}

// ByFrame reports whether an instruction that writes to memory does so by RSP or RBP.
func ByFrame(in *machine.Insn) bool {
	switch in.Op {
	case machine.Push, machine.PushF, machine.Call:
		return true
	}
	return in.Dst.Class == machine.Mem && (in.Dst.Reg == machine.RSP || in.Dst.Reg == machine.RBP)
}

// close ends a gap where the value is known again.
func (f *followed) close(last *lastValue, now *Taken, b *wet.Before, entry *Entry) {
	g := last.gap
	was := *last
	f.forget(g)
	*last = lastValue{isTaken: true, isKnown: true, value: now.Value}
	addr, size, k := now.Asked.Address(b.Addr, b, entry)
	isMoved := k == machine.Unknown || addr != g.addr || size != g.size
	isWritten := g.isWritten || isMoved
	stays := g.isHidden && !g.isOverwritten // it was the one before, up to a write
	switch {
	case g.isRead && !isMoved:
		g.from.taken.Value, g.from.taken.Known = g.read, machine.Unconfirmed
		if isSame := was.isTaken && was.value == g.read; isSame {
			g.settle(false, false)
		} else {
			g.settle(was.isTaken, true)
		}
		if g.read == now.Value {
			return
		}
	case was.isTaken && was.value == now.Value:
		g.settle(false, false)
		return
	case isWritten || g.isChanged:
		g.settle(was.isTaken && !(isWritten && stays), false)
	case was.isTaken && stays: // and yet it is not
		g.settle(true, false)
	default:
		g.from.taken.Value, g.from.taken.Known = now.Value, now.Known&machine.Unconfirmed
		g.settle(was.isTaken, true)
		return
	}
	f.add(&event{taken: *now, isSettled: true})
}

// settle says whether it is given that the value was not known, and what it was in the end.
func (g *gap) settle(dash, from bool) {
	if g.from != g.dash {
		g.from.settle(from)
		g.dash.settle(dash)
		return
	}
	g.dash.settle(dash || from)
}

func (e *event) settle(isGiven bool) { e.isSettled, e.isDropped = true, !isGiven }

// leave ends the gaps of an activation that has ended; isSure: that is known.
func (f *followed) leave(a *activation, isSure bool) {
	for i := range a.last {
		last := &a.last[i]
		if g := last.gap; g != nil {
			stays := isSure && g.isHidden && !g.isOverwritten && !g.isWritten && last.isTaken
			g.settle(!stays, false)
			f.forget(g)
		}
	}
}

// forget ends a gap: its value is not known.
func (f *followed) forget(g *gap) {
	g.last.gap, g.last.isKnown, g.last.isTaken = nil, false, true
	f.gaps = slices.DeleteFunc(f.gaps, func(x *gap) bool { return x == g })
}

func (f *followed) add(e *event) { f.waiting = append(f.waiting, e) }

// give gives what waits for no gap any more. Where too much waits, the first gap has no end.
func (f *followed) give() error {
	for len(f.waiting) > 0 {
		e := f.waiting[0]
		if !e.isSettled && len(f.waiting) <= mostWaiting {
			return nil
		}
		if !e.isSettled {
			f.giveUp(e)
		}
		f.waiting = f.waiting[1:]
		if !e.isDropped {
			if err := f.found(&e.taken); err != nil {
				return err
			}
		}
	}
	return nil
}

// giveUp settles the gap that an event is of.
func (f *followed) giveUp(e *event) {
	for _, g := range f.gaps {
		if g.dash == e || g.from == e {
			g.settle(true, false)
			f.forget(g)
			return
		}
	}
}

// end ends all gaps, at the end of a thread.
func (f *followed) end() error {
	for i := range f.global.activations {
		f.leave(&f.global.activations[i], false)
	}
	for _, r := range f.routines {
		for i := range r.activations {
			f.leave(&r.activations[i], true)
		}
	}
	return f.give()
}
