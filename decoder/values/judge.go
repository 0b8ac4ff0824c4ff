package values

import (
	"encoding/binary"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
)

// A judge says of loads from memory that others may write which ones the next hit shows: those
// whose value its registers have still, by steps that lose nothing of it (add, subtract, exclude
// or, copy), so that it is another one only where the registers are others, too. What and, or,
// shifts, multiplications, comparisons and conditional moves have made of a load says nothing of
// it. Nor would it to read the memory once more: it may have changed twice.
type judge struct {
	done      bool       // of the stretch
	judgments []judgment // the last one first
	clean     []uint16   // by instruction: registers that are right whatever was loaded
	whole     bool       // the next hit has sent all registers
	relied    bool       // something is right if that hit's hash agrees
}

// A judgment is what an instruction has loaded.
type judgment struct {
	at    wet.Place
	size  int
	value uint64 // by a whole state; else it is what was worked out, if the hash agrees
}

// begin says that another stretch begins.
func (j *judge) begin() { j.done, j.relied = false, false }

// shown reports whether the next hit shows what a load reads, and puts that into read, if the hit
// has sent it. known: it is worked out, and the hit's hash is to agree.
func (o *oracle) shown(l *wet.Load, read []byte, known bool) bool {
	j := &o.judge
	if !j.done {
		o.judgeFrom(l.Place)
	}
	for n := len(j.judgments); n > 0; n = len(j.judgments) {
		x := &j.judgments[n-1]
		if x.at.Compare(l.Place) < 0 {
			j.judgments = j.judgments[:n-1]
			continue
		}
		if x.at != l.Place || x.size != len(l.Bytes) {
			return false
		}
		if j.whole {
			var word [8]byte
			binary.LittleEndian.PutUint64(word[:], x.value)
			copy(read[:x.size], word[:])
			return true
		}
		j.relied = j.relied || known
		return known
	}
	return false
}

// judgeFrom judges the loads from an instruction on that runs, up to the next hit.
func (o *oracle) judgeFrom(at wet.Place) {
	j := &o.judge
	j.done, j.judgments = true, j.judgments[:0]
	s := o.behind(at, true)
	if s == nil {
		return
	}
	j.whole = s.Whole
	b := allKnown()
	clean := uint16(0)
	if s.Whole {
		copy(b.values[:], s.Registers)
	} else {
		clean = o.thread.walker.Confirmed()
	}
	o.follow(clean)
	for i := len(o.between) - 1; i >= 0; i-- {
		x := &o.between[i]
		if x.in == nil { // external code: registers are not those of before
			break
		}
		after := b
		b.lose(x.written)
		b.undoRegisters(x.in, &after)
		b.undoPair(x.in, &after, j.clean[i])
		b.known, b.low, b.least = b.known|j.clean[i], b.low|j.clean[i], b.least|j.clean[i]
		if size := shownBy(x.in, &after, j.clean[i]); size > 0 {
			j.judgments = append(j.judgments, judgment{x.at, size,
				after.values[holder(x.in)]})
		}
	}
}

// follow finds out what the instructions between write, and which registers are right before each,
// whatever is loaded: of those that are before the first one.
func (o *oracle) follow(clean uint16) {
	m, j := o.recorder.scratch, &o.judge
	m.Forget(machine.Set{General: 0xffff, Flags: machine.AllFlags, Vectors: 0xffff})
	j.clean = j.clean[:0]
	for i := range o.between {
		x := &o.between[i]
		if x.in == nil { // external code
			j.clean, clean = append(j.clean, 0), 0
			continue
		}
		m.Step(x.in, x.next, nothing{})
		x.written = m.Written()
		j.clean = append(j.clean, clean)
		clean = cleanBehind(x.in, x.written, clean)
	}
}

// cleanBehind is which registers are right behind an instruction whatever was loaded.
func cleanBehind(in *machine.Insn, written, clean uint16) uint16 {
	kept := clean &^ written
	switch in.Op {
	case machine.Push, machine.Pop, machine.Call, machine.Return:
		return kept | clean&(1<<machine.RSP)
	case machine.Mov, machine.MovSX, machine.Lea, machine.Add, machine.Sub, machine.Xor,
		machine.And, machine.Or, machine.Inc, machine.Dec, machine.Neg, machine.Not, machine.Shl,
		machine.Shr, machine.Sar, machine.IMul:
		used := in.Uses().General
		isLoad := in.Op != machine.Lea && (in.Src.Class == machine.Mem ||
			in.Third.Class == machine.Mem)
		if !isLoad && used&^uint32(clean) == 0 {
			return clean | written
		}
	}
	return kept
}

// undoPair finds what a register held whose sum with another one is known, or whose difference: the
// other one is held behind the instruction, or clean before it.
func (b *backwards) undoPair(in *machine.Insn, after *backwards, clean uint16) {
	dst, size := in.Dst.Reg&15, in.Dst.Size
	if in.Dst.Class != machine.General || size < 4 || !after.holds(dst, size) {
		return
	}
	isClean := func(n uint8) bool { return clean>>(n&15)&1 != 0 }
	switch in.Op {
	case machine.Add, machine.Sub, machine.Xor:
		if src := in.Src.Reg & 15; in.Src.Class == machine.General && src != dst {
			if isClean(dst) { // which has no value, where the state is whole
				b.set(src, 0, size)
			}
			if isClean(src) {
				b.set(dst, 0, size)
			}
		}
	case machine.Lea:
		base, index := in.Src.Reg, in.Src.Index
		if size < 8 || in.Src.Short || in.Src.Segment != machine.Zero || base >= 16 ||
			index >= 16 || base == index {
			return
		}
		known := func(n uint8) bool { return isClean(n) || n != dst && after.holds(n, 8) }
		v := after.values[dst] - uint64(in.Src.Disp)
		if known(index) {
			b.set(base, v-after.values[index]<<in.Src.Scale, 8)
		}
		if known(base) && in.Src.Scale == 0 {
			b.set(index, v-after.values[base], 8)
		}
	}
}

// shownBy is how many bytes an instruction has loaded that are known by what registers hold behind
// it, or from a clean one before it; 0: none.
func shownBy(in *machine.Insn, after *backwards, clean uint16) (size int) {
	known := func(n, size uint8) bool { return after.holds(n, max(size, 4)) }
	dst, src := &in.Dst, &in.Src
	switch in.Op {
	case machine.Mov, machine.MovSX:
		if src.Class == machine.Mem && dst.Class == machine.General && src.Size <= dst.Size &&
			known(dst.Reg, dst.Size) {
			return int(src.Size)
		}
	case machine.Pop:
		if dst.Class == machine.General && dst.Size == 8 && known(dst.Reg, 8) {
			return 8
		}
	case machine.Add, machine.Sub, machine.Xor:
		if src.Class == machine.Mem && dst.Class == machine.General && dst.Size >= 4 &&
			clean>>(dst.Reg&15)&1 != 0 && known(dst.Reg, dst.Size) {
			return int(dst.Size)
		}
	case machine.XAdd, machine.Xchg:
		if dst.Class == machine.Mem && src.Class == machine.General && known(src.Reg, src.Size) {
			return int(src.Size)
		}
	case machine.CmpXchg:
		if dst.Class == machine.Mem && known(machine.RAX, dst.Size) {
			return int(dst.Size)
		}
	}
	return 0
}

// holder is the register that an instruction has loaded to.
func holder(in *machine.Insn) uint8 {
	switch in.Op {
	case machine.XAdd, machine.Xchg:
		return in.Src.Reg & 15
	case machine.CmpXchg:
		return machine.RAX
	}
	return in.Dst.Reg & 15
}
