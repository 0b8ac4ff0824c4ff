package values

import "wpptrace/compress/wet/machine"

// A held is what registers hold before an instruction that has not run in the walk, as far as that
// is known by what the walk knows.
type held struct {
	values [16]uint64
	known  uint16
	sure   uint16 // of these, those that are confirmed
}

func (h *held) has(n uint8) bool { return h.known>>(n&15)&1 != 0 }

// isSure reports whether what a register holds is confirmed.
func (h *held) isSure(n uint8) bool { return h.sure>>(n&15)&1 != 0 }

// before is what is held before one of between; nil: the walk has executed that.
func (o *oracle) before(i int) *held {
	if i < o.done {
		return nil
	}
	if len(o.ran) == 0 {
		f := &o.recorder.sight
		f.begin(o)
		for j := range o.between {
			h := held{}
			for n := range 16 {
				v, k := f.machine.General(n)
				if k != machine.Unknown {
					h.values[n], h.known = v, h.known|1<<n
				}
				if k == machine.Confirmed {
					h.sure |= 1 << n
				}
			}
			if o.ran = append(o.ran, h); j >= o.done {
				f.step(&o.between[j])
			}
		}
	}
	return &o.ran[i]
}

// changesMemory reports whether an instruction has changed memory by a register, and could be
// undone by that.
func changesMemory(in *machine.Insn) bool {
	return in.Dst.Class == machine.Mem && in.Src.Class == machine.General &&
		(in.Op == machine.Add || in.Op == machine.Sub || in.Op == machine.Xor)
}

// learn finds what the register holds by which an instruction has changed memory: it has it still
// behind that.
func (b *backwards) learn(in *machine.Insn) {
	if b.held != nil && changesMemory(in) && b.held.has(in.Src.Reg) {
		b.fresh = 0
		b.set(in.Src.Reg, b.held.values[in.Src.Reg&15], 8)
		b.settle(b.unsure != 0 || !b.held.isSure(in.Src.Reg))
	}
}

// asks reports whether what an instruction has made is known, and not all of what it has made it of
// is: that may be known before it, by what the walk knows.
func (b *backwards) asks(in *machine.Insn) bool {
	if in != nil && changesMemory(in) {
		return !b.holds(in.Src.Reg, in.Src.Size)
	}
	if in == nil || in.Dst.Class != machine.General || in.Dst.Size < 4 ||
		!b.holds(in.Dst.Reg, in.Dst.Size) {
		return false
	}
	size := in.Dst.Size
	switch in.Op {
	case machine.Add, machine.Sub, machine.Xor, machine.MovIf:
		return in.Src.Class == machine.General && in.Src.Reg != in.Dst.Reg &&
			!b.holds(in.Src.Reg, size)
	case machine.Lea:
		o := &in.Src
		isKnown := func(n uint8) bool { return n != in.Dst.Reg && b.holds(n, size) }
		return o.Reg < 16 && o.Index < 16 && !(isKnown(o.Reg) && isKnown(o.Index))
	}
	return false
}

// undoHeld finds what a register holds, by what an instruction has made of it and of what another
// holds before it.
func (b *backwards) undoHeld(in *machine.Insn, after *backwards) {
	h := b.held
	if h == nil || in.Dst.Class != machine.General {
		return
	}
	dst, src, size := in.Dst.Reg, in.Src.Reg, in.Dst.Size
	v := after.values[dst&15]
	by, fresh := dst, b.fresh
	switch was := h.values[dst&15]; in.Op {
	case machine.Lea:
		o := &in.Src
		if o.Segment != machine.Zero || o.Short {
			return
		}
		if v -= uint64(o.Disp); h.has(o.Index) {
			by = o.Index
			b.set(o.Reg, v-h.values[by&15]<<(o.Scale&3), size)
		} else if h.has(o.Reg) && o.Scale == 0 {
			by = o.Reg
			b.set(o.Index, v-h.values[by&15], size)
		}
	case machine.Add:
		if h.has(dst) {
			b.set(src, v-was, size)
		}
	case machine.Sub:
		if h.has(dst) {
			b.set(src, was-v, size)
		}
	case machine.Xor:
		if h.has(dst) {
			b.set(src, v^was, size)
		}
	case machine.MovIf: // it has moved, where what was there is another
		if h.has(dst) && (v^was)<<(64-8*size) != 0 {
			b.set(src, v, size)
		}
	}
	b.guessed = b.guessed || b.fresh != fresh && !h.isSure(by)
}

// isZero reports whether an instruction has left zero in a register.
func (b *backwards) isZero(in *machine.Insn) bool {
	size := in.Dst.Size
	return in.Dst.Class == machine.General && size >= 4 && b.holds(in.Dst.Reg, size) &&
		b.values[in.Dst.Reg&15]<<(64-8*size) == 0
}
