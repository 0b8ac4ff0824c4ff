package values

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wet/memory"
	"wpptrace/loader/loads"
)

// A backwards is what registers and memory hold before instructions, by what they hold behind.
type backwards struct {
	values     [16]uint64
	known, low uint16 // registers that are known, and those whose lower halves are
	least      uint16 // and those whose lowest bytes are
	unsure     uint16 // of these, those that are not known for sure
	fresh      uint16 // those that have become known by the last step
	guessed    bool   // these are not known for sure
	held       *held  // what registers hold before the instruction at hand; nil: nobody asks
	zeroed     bool   // what the instruction at hand has made comes to nothing, or is equal
	external   bool   // external code runs behind
	fs         uint64
	reads      []loads.Read
	frame      []loads.Read   // the same of private frames, whatever is stored elsewhere
	doubted    []loads.Read   // the same if stores go where it is foreseen
	stuck      bool           // a store may go anywhere, and what was read is not known before it
	differs    bool           // what was foreseen was not so
	memory     *memory.Memory // as it is before the first instruction that is carried back over
	recorder   *Recorder
	// a handler runs amid what is gone back over
	interrupted bool
}

// mayChange reports whether others may write to some bytes amid what is gone back over, or the
// thread itself at another address.
func (b *backwards) mayChange(addr uint64, n int) bool {
	return b.interrupted || b.recorder.isShared(addr, n, b.memory.IsPrivate(addr, n))
}

// allKnown is where all registers are known.
func allKnown() backwards { return backwards{known: 0xffff, low: 0xffff, least: 0xffff} }

// lose has registers not be known.
func (b *backwards) lose(registers uint16) {
	b.known, b.low, b.least = b.known&^registers, b.low&^registers, b.least&^registers
}

// undo goes back behind an instruction.
func (b *backwards) undo(x *executed, scratch *machine.Machine) {
	if x.in == nil {
		b.lose(^uint16(machine.CalleeSaved))
		b.unsure, b.external, b.reads = b.least, true, b.reads[:0]
		b.frame, b.doubted = nil, nil
		b.values[machine.RSP] -= 8
		return
	}
	unsure := b.unsure != 0
	b.fresh, b.guessed = 0, false
	b.undoOwn(x, scratch)
	b.settle(unsure || b.guessed)
}

// undoOwn goes back behind an instruction that is not external code.
func (b *backwards) undoOwn(x *executed, scratch *machine.Machine) {
	all := machine.Set{General: 0xffff, Flags: machine.AllFlags, Vectors: 0xffff}
	scratch.Forget(all)
	scratch.Step(x.in, x.next, nothing{})
	after := *b
	written := scratch.Written()
	b.lose(written)
	if x.in.Op != machine.Opaque {
		b.undoRegisters(x.in, &after)
		b.undoHeld(x.in, &after)
	}
	if len(scratch.Accesses()) == 0 {
		return
	}
	scratch.Forget(all)
	for n := range 16 {
		if b.known>>n&1 != 0 {
			scratch.SetGeneral(n, b.values[n], machine.Confirmed)
		}
	}
	scratch.SetGeneral(machine.FS, b.fs, machine.Confirmed)
	scratch.Step(x.in, x.next, nothing{})
	b.undoMemory(x, &after, scratch.Accesses())
}

// settle ends a step. unsure: what has become known may follow from what is not known for sure.
func (b *backwards) settle(unsure bool) {
	if unsure {
		b.unsure |= b.fresh
	} else {
		b.unsure &^= b.fresh
	}
}

// set has a register be known, unless it is: all of it, its lower half, or its lowest byte.
func (b *backwards) set(n uint8, v uint64, size uint8) {
	n &= 15
	if b.holds(n, size) {
		return
	}
	if size == 8 {
		b.known |= 1 << n
	}
	if size >= 4 {
		b.low |= 1 << n
	}
	b.least |= 1 << n
	b.fresh |= 1 << n
	b.values[n] = v
}

// holds reports whether so much of a register is known.
func (b *backwards) holds(n, size uint8) bool {
	switch size {
	case 8:
		return b.known>>(n&15)&1 != 0
	case 1:
		return b.least>>(n&15)&1 != 0
	}
	return b.low>>(n&15)&1 != 0
}

// undoRegisters finds what registers held that an instruction has written, or read, of what it has
// made of it.
func (b *backwards) undoRegisters(in *machine.Insn, after *backwards) {
	dst, src, size := in.Dst.Reg&15, in.Src.Reg&15, in.Dst.Size
	v := after.values[dst]
	isGeneral := in.Dst.Class == machine.General
	known := isGeneral && after.holds(dst, size)
	switch in.Op {
	case machine.Mov, machine.MovSX:
		s := in.Src.Size
		if isGeneral && in.Src.Class == machine.General && after.holds(dst, s) {
			b.set(src, v, s)
		}
	case machine.Lea:
		if known && size >= 4 {
			b.undoLea(in, v, after)
		}
	case machine.IMul: // odd numbers have inverses
		factor := uint64(in.Imm)
		if known && in.Src.Class == machine.General && in.Third.Class == machine.Immediate &&
			factor&1 == 1 {
			b.set(src, v*inverse(factor), size)
		}
	case machine.Xchg:
		if known && in.Src.Class == machine.General && after.holds(src, size) {
			b.set(src, v, size)
			b.set(dst, after.values[src], size)
		}
	case machine.Push, machine.PushF, machine.Call:
		b.moveStack(after, 8)
	case machine.Pop:
		if in.Dst.Class != machine.General || dst != machine.RSP {
			b.moveStack(after, ^uint64(7))
		}
	case machine.Return:
		if in.Imm == 0 {
			b.moveStack(after, ^uint64(7))
		}
	case machine.Leave:
		if after.holds(machine.RSP, 8) {
			b.set(machine.RBP, after.values[machine.RSP]-8, 8)
		}
	default:
		if before, ok := undone(in, v, after); ok && known {
			b.set(dst, before, size)
		}
	}
}

// undoLea finds a register of a sum, by the other one.
func (b *backwards) undoLea(in *machine.Insn, v uint64, after *backwards) {
	o := &in.Src
	if o.Segment != machine.Zero || o.Short {
		return
	}
	v -= uint64(o.Disp)
	size := in.Dst.Size
	base, index := o.Reg < 16, o.Index < 16
	isKnown := func(n uint8) bool { return n != in.Dst.Reg && after.holds(n, size) }
	switch {
	case base && o.Index == machine.Zero:
		b.set(o.Reg, v, size)
	case base && index && isKnown(o.Index):
		b.set(o.Reg, v-after.values[o.Index&15]<<(o.Scale&3), size)
	case base && index && isKnown(o.Reg) && o.Scale == 0:
		b.set(o.Index, v-after.values[o.Reg&15], size)
	}
}

// inverse is what an odd number times it is 1.
func inverse(of uint64) uint64 {
	x := of // right in the lowest 3 bits, and in twice as many each round
	for range 5 {
		x *= 2 - of*x
	}
	return x
}

func (b *backwards) moveStack(after *backwards, by uint64) {
	if after.holds(machine.RSP, 8) {
		b.set(machine.RSP, after.values[machine.RSP]+by, 8)
	}
}

// undone is what the destination of an instruction held, by what it holds behind.
func undone(in *machine.Insn, v uint64, after *backwards) (before uint64, ok bool) {
	switch in.Op {
	case machine.Inc:
		return v - 1, true
	case machine.Dec:
		return v + 1, true
	case machine.Not:
		return ^v, true
	case machine.Neg:
		return -v, true
	case machine.BSwap:
		return bits.ReverseBytes64(v) >> (64 - 8*uint(in.Size)), in.Size >= 4
	}
	by := uint64(in.Imm)
	if in.Src.Class != machine.Immediate {
		src := in.Src.Reg & 15
		same := in.Dst.Class == machine.General && in.Dst.Reg == in.Src.Reg
		if in.Src.Class != machine.General || same || !after.holds(src, in.Src.Size) {
			return 0, false
		}
		by = after.values[src]
	}
	return undoneBy(in.Op, v, by)
}

// undoneBy is undone of an operation with a number.
func undoneBy(op machine.Op, v, by uint64) (before uint64, ok bool) {
	switch op {
	case machine.Add:
		return v - by, true
	case machine.Sub:
		return v + by, true
	case machine.Xor:
		return v ^ by, true
	}
	return 0, false
}

// undoMemory finds what memory held, by the accesses of an instruction, whose bytes are not known.
func (b *backwards) undoMemory(x *executed, after *backwards, accesses []machine.Access) {
	in := x.in
	var found []loads.Read
	if in.Op == machine.Call { // what has been called is another activation
		b.frame = nil
	}
	for i := range accesses {
		a := &accesses[i]
		known := a.At != machine.Unknown && a.Size > 0 && a.Size <= 8
		switch {
		case a.Write && a.At == machine.Unknown && len(x.stores) == 1 &&
			x.stores[0].Size == a.Size:
			to := &x.stores[0]
			b.doubted = remove(append(b.doubted, b.reads...), to.Addr, uint64(to.Size))
			b.reads = b.reads[:0]
			b.frame = remove(b.frame, to.Addr, uint64(to.Size))
		case a.Write && (a.At == machine.Unknown || a.Size == 0):
			b.stuck = b.stuck || len(b.reads) > 0
			b.reads, b.doubted = b.reads[:0], nil
			if x.private {
				b.frame = nil
			}
			return
		case a.Write:
			v, ok := b.word(a.Addr, a.Size)
			if ok {
				b.undoStore(in, v)
			}
			b.reads = remove(b.reads, a.Addr, uint64(a.Size))
			b.frame = remove(b.frame, a.Addr, uint64(a.Size))
			b.doubted = remove(b.doubted, a.Addr, uint64(a.Size))
			before, can := undone(in, v, after)
			if ok && can && in.Dst.Class == machine.Mem && known {
				found = append(found, readOf(a.Addr, a.Size, before))
			}
		case known:
			v, ok := loaded(in, after, uint8(a.Size))
			if !ok {
				v, ok = after.compared(in)
			}
			switch {
			case ok && after.unsure == 0:
				found = append(found, readOf(a.Addr, a.Size, v))
			case ok:
				b.doubted = append(b.doubted, readOf(a.Addr, a.Size, v))
			}
			b.undoLoad(in, a, after)
		}
	}
	b.reads = append(b.reads, found...)
	if x.private {
		b.frame = append(b.frame, found...)
	}
	for i := range x.used {
		u := &x.used[i]
		v, ok := b.word(u.Addr, u.Size)
		if !ok || readOf(u.Addr, u.Size, v) != *u {
			x.refuses, b.differs = true, true
		}
	}
}

// undoLoad finds what the register held that an instruction has changed by what it has loaded.
func (b *backwards) undoLoad(in *machine.Insn, a *machine.Access, after *backwards) {
	size := in.Dst.Size
	if in.Dst.Class != machine.General || in.Src.Class != machine.Mem || size < 4 ||
		!after.holds(in.Dst.Reg, size) {
		return
	}
	by, ok := b.word(a.Addr, a.Size)
	if !ok && in.Src.Segment == machine.FS && in.Src.Disp == stackGuard && a.Size == 8 {
		var held [8]byte
		ok = b.memory.Load(a.Addr, held[:], false).All(len(held))
		by, b.guessed = binary.LittleEndian.Uint64(held[:]), true
	}
	if !ok {
		return
	}
	if before, ok := undoneBy(in.Op, after.values[in.Dst.Reg&15], by); ok {
		b.set(in.Dst.Reg, before, size)
	}
}

// stackGuard is where a thread has, beyond fs, the number that guards return addresses: it stays.
const stackGuard = 0x28

// undoStore finds what the register held that an instruction has stored.
func (b *backwards) undoStore(in *machine.Insn, v uint64) {
	size := in.Src.Size
	switch in.Op {
	case machine.Mov:
	case machine.Push:
		if in.Src.Reg == machine.RSP {
			return
		}
	default:
		return
	}
	if in.Src.Class == machine.General {
		b.set(in.Src.Reg, v, size)
	}
}

// loaded is what an instruction has loaded, if that stands in a register.
func loaded(in *machine.Insn, after *backwards, size uint8) (v uint64, ok bool) {
	isLoad := (in.Op == machine.Mov || in.Op == machine.MovSX) && in.Src.Class == machine.Mem ||
		in.Op == machine.Pop
	if !isLoad || in.Dst.Class != machine.General || !after.holds(in.Dst.Reg, size) {
		return 0, false
	}
	return after.values[in.Dst.Reg&15], true
}

func readOf(addr uint64, size int, v uint64) loads.Read {
	r := loads.Read{Addr: addr, Size: size}
	binary.LittleEndian.PutUint64(r.Bytes[:], v)
	return r
}

// word returns what memory holds, where all of it is known. Where others may write to it, only a
// private frame has it, or it is doubted, it is not sure.
func (b *backwards) word(addr uint64, size int) (v uint64, ok bool) {
	if v, ok = wordOf(b.reads, addr, size); ok {
		b.guessed = b.guessed || b.mayChange(addr, size)
		return v, ok
	}
	if v, ok = wordOf(b.frame, addr, size); !ok {
		v, ok = wordOf(b.doubted, addr, size)
	}
	b.guessed = b.guessed || ok
	return v, ok
}

func wordOf(reads []loads.Read, addr uint64, size int) (v uint64, ok bool) {
	if size > 8 {
		return 0, false
	}
	for i := range reads {
		r := &reads[i]
		at, n := addr-r.Addr, uint64(r.Size)
		if !r.Failed && at < n && at+uint64(size) <= n {
			var word [8]byte
			copy(word[:size], r.Bytes[at:])
			return binary.LittleEndian.Uint64(word[:]), true
		}
	}
	return 0, false
}

// remove takes bytes out of what is known.
func remove(reads []loads.Read, addr, size uint64) []loads.Read {
	for i := 0; i < len(reads); i++ {
		r := reads[i]
		lo, hi := addr-r.Addr, addr+size-r.Addr
		before, behind := lo < uint64(r.Size), hi-1 < uint64(r.Size)
		inside := r.Addr-addr < size // its first byte
		if !before && !behind && !inside {
			continue
		}
		reads = slices.Delete(reads, i, i+1)
		i--
		if before && lo > 0 {
			reads = append(reads, part(&r, 0, lo))
		}
		if behind && hi < uint64(r.Size) {
			reads = append(reads, part(&r, hi, uint64(r.Size)))
		}
	}
	return reads
}

// part is some bytes of a read.
func part(r *loads.Read, lo, hi uint64) loads.Read {
	p := loads.Read{Addr: r.Addr + lo, Size: int(hi - lo), Failed: r.Failed}
	copy(p.Bytes[:], r.Bytes[lo:hi])
	return p
}

// nothing is a memory of which nothing is known.
type nothing struct{}

func (nothing) Load(uint64, []byte) machine.Knowledge   { return machine.Unknown }
func (nothing) Store(uint64, []byte, machine.Knowledge) {}
