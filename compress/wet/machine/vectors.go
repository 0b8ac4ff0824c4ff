package machine

import (
	"encoding/binary"
	"math/bits"
)

// A vector is a vector register, or a value of one, and what is known of each byte.
type vector struct {
	bytes [32]byte
	known [32]Knowledge
}

func (v *vector) know(from, to int, k Knowledge) {
	for i := from; i < to; i++ {
		v.known[i] = k
	}
}

// lane returns an element, and the least that is known of its bytes.
func (v *vector) lane(i, size int) (x uint64, k Knowledge) {
	k = Confirmed
	for n := i * size; n < (i+1)*size; n++ {
		k &= v.known[n&31]
	}
	switch at := i * size & 31; size {
	case 8:
		x = binary.LittleEndian.Uint64(v.bytes[at&24:])
	case 4:
		x = uint64(binary.LittleEndian.Uint32(v.bytes[at&28:]))
	case 2:
		x = uint64(binary.LittleEndian.Uint16(v.bytes[at&30:]))
	case 1:
		x = uint64(v.bytes[at])
	}
	return x, k
}

func (v *vector) setLane(i, size int, x uint64, k Knowledge) {
	for n := i * size; n < (i+1)*size; n++ {
		v.bytes[n&31], v.known[n&31] = byte(x), k
		x >>= 8
	}
}

// vectors is the vector registers, and room for operands.
type vectors struct {
	registers  [16]vector
	rounding   Knowledge
	third, src vector
	result     vector
	selection  [32]uint8
}

func (v *vectors) forget(registers uint16) {
	for r := registers; r != 0; r &= r - 1 {
		v.registers[bits.TrailingZeros16(r)].known = [32]Knowledge{}
	}
}

func (v *vectors) doubt() {
	v.rounding &= Unconfirmed
	for i := range v.registers {
		known := &v.registers[i].known
		if *known == ([32]Knowledge{}) { // as behind calls: it is cheap then
			continue
		}
		for n := range known {
			known[n] &= Unconfirmed
		}
	}
}

// fetch reads an operand.
func (s *step) fetch(o *Operand, to *vector) {
	switch o.Class {
	case Vector:
		*to = s.m.vectors.registers[o.Reg&15]
	case Mem:
		s.m.port.at, s.m.port.known = s.m.general.address(o)
		s.m.port.loadVector(to, int(o.Size), s.mem)
	case None:
	default:
		v, k := s.value(o)
		binary.LittleEndian.PutUint64(to.bytes[:], v)
		to.know(0, 8, k)
	}
}

// leave writes a result to where it belongs: of a vector register at least 16 bytes.
func (s *step) leave(r *vector) {
	switch o := &s.in.Dst; o.Class {
	case Vector:
		to := &s.m.vectors.registers[o.Reg&15]
		n := max(16, int(s.in.Size))
		copy(to.bytes[:n], r.bytes[:n])
		copy(to.known[:n], r.known[:n])
		if s.in.Clears {
			to.clear(n)
		}
	case Mem:
		s.m.port.at, s.m.port.known = s.m.general.address(o)
		s.m.port.storeVector(r, int(o.Size), s.mem)
	default:
		v, k := r.lane(0, int(min(o.Size, 8)))
		s.put(o, v, k)
	}
}

// clear makes what is from a byte on 0.
func (v *vector) clear(from int) {
	clear(v.bytes[from:])
	v.know(from, 32, Confirmed)
}

// vector is Step of vector instructions.
func (s *step) vector() {
	if s.in.Op == VZeroUpper {
		for i := range s.m.vectors.registers {
			s.m.vectors.registers[i].clear(16)
		}
		return
	}
	a, b, r := &s.m.vectors.third, &s.m.vectors.src, &s.m.vectors.result
	s.fetch(&s.in.Third, a)
	s.fetch(&s.in.Src, b)
	switch {
	case s.in.Op == LoadMXCSR:
		v, k := b.lane(0, 4)
		s.m.SetMXCSR(uint32(v), k)
		return
	case s.in.Op == StoreMXCSR:
		s.m.port.at, s.m.port.known = s.m.general.address(&s.in.Dst)
		s.m.port.storeUnknown(4, s.mem)
		return
	case s.in.Op == VMoveMask:
		s.moveMask(b)
		return
	case s.in.Op == VTest || s.in.Op == FCompare:
		s.fetch(&s.in.Dst, a)
		s.compareVectors(a, b)
		return
	case s.in.Op == FMulAdd:
		s.fetch(&s.in.Dst, r)
		s.m.vectors.mulAdd(s.in, a, b, r)
	case s.in.Op < VExtendS || s.in.Op == VBlendBy || s.in.Op == VInsertFloat:
		s.m.vectors.choose(s.in, a, b, r)
	case s.in.Op >= FAdd:
		s.m.vectors.floating(s.in, a, b, r)
	default:
		s.m.vectors.elements(s.in, a, b, r)
	}
	s.leave(r)
}

// moveMask makes a number of the signs of elements.
func (s *step) moveMask(b *vector) {
	v, k := uint64(0), Confirmed
	for i := range int(s.in.Size / s.in.Lane) {
		x, kx := b.lane(i, int(s.in.Lane))
		v |= x >> top(s.in.Lane) & 1 << i
		k &= kx
	}
	s.put(&s.in.Dst, v, k)
}

// compareVectors is for what sets flags.
func (s *step) compareVectors(a, b *vector) {
	if s.in.Op == FCompare {
		x, kx := a.lane(0, int(s.in.Size))
		y, ky := b.lane(0, int(s.in.Size))
		f := [4]uint8{unordered: ZF | PF | CF, less: CF, equal: ZF}[relation(x, y, s.in.Size)]
		s.m.flags.set(Arithmetic, 0, f, kx&ky&s.m.vectors.rounding)
		return
	}
	zero, carry, k := uint64(0), uint64(0), Confirmed
	for i := range int(s.in.Size / 8) {
		x, kx := a.lane(i, 8)
		y, ky := b.lane(i, 8)
		zero |= x & y
		carry |= ^x & y
		k &= kx & ky
	}
	s.m.flags.set(Arithmetic, 0, uint8(number(zero == 0))*ZF|uint8(number(carry == 0))*CF, k)
}

// Where a byte of a result comes from, besides the bytes of Third, and of Src from ofSrc on.
const (
	ofSrc   = 32
	ofZero  = 64
	ofNever = 65 // it is not known
)

// choose is for what moves bytes, and computes nothing.
func (v *vectors) choose(in *Insn, a, b, r *vector) {
	s := &v.selection
	for i := range s {
		s[i] = uint8(i)
	}
	if in.Op == VBlendBy {
		v.blend(in, s)
	} else if in.Op == VInsertFloat {
		insertFloat(in, s)
	} else if in.Op <= VMovHighOut || in.Op == VExtract || in.Op == VInsert {
		selectPart(in, s)
	} else if in.Op <= VPerm2 {
		selectElements(in, s, a)
	} else {
		selectBytes(in, s, b)
	}
	for i, from := range s {
		switch {
		case from < ofSrc:
			r.bytes[i], r.known[i] = a.bytes[from], a.known[from]
		case from < ofZero:
			r.bytes[i], r.known[i] = b.bytes[from-ofSrc], b.known[from-ofSrc]
		case from == ofZero:
			r.bytes[i], r.known[i] = 0, Confirmed
		default:
			r.known[i] = Unknown
		}
	}
	if in.Op == VShuffleBytes { // what the control says is no surer than it
		for i := range r.known {
			r.known[i] &= b.known[i]
		}
	}
	if in.Op == VBlendBy {
		mask, lane := &v.registers[in.Imm&15], int(in.Lane)
		for i := range r.known {
			r.known[i] &= mask.known[i|(lane-1)]
		}
	}
	if in.Op == VPermD {
		for i := range 8 {
			_, k := a.lane(i, 4)
			for n := i * 4; n < i*4+4; n++ {
				r.known[n] &= k
			}
		}
	}
}

// blend is for what takes elements of Src where a register's are negative.
func (v *vectors) blend(in *Insn, s *[32]uint8) {
	mask, lane := &v.registers[in.Imm&15], int(in.Lane)
	for i := range s {
		sign := i | (lane - 1)
		switch {
		case mask.known[sign] == Unknown:
			s[i] = ofNever
		case mask.bytes[sign] > 127:
			s[i] = uint8(ofSrc + i)
		}
	}
}

// insertFloat is insertps. In memory there is one element.
func insertFloat(in *Insn, s *[32]uint8) {
	from := int(in.Imm) >> 6 & 3
	if in.Src.Class == Mem {
		from = 0
	}
	fill(s, int(in.Imm)>>4&3*4, 4, uint8(ofSrc+from*4))
	for i := range 4 {
		if in.Imm>>i&1 != 0 {
			for n := range 4 {
				s[i*4+n] = ofZero
			}
		}
	}
}

// fill makes bytes of a selection consecutive.
func fill(s *[32]uint8, to, n int, from uint8) {
	for i := range n {
		s[(to+i)&31] = from + uint8(i)
	}
}

// selectPart is for what moves one part.
func selectPart(in *Insn, s *[32]uint8) {
	size, lane := int(in.Size), int(in.Lane)
	switch in.Op {
	case VMov:
		fill(s, 0, 32, ofSrc)
	case VMovZero:
		for i := range s {
			s[i] = ofZero
		}
		fill(s, 0, size, ofSrc)
	case VMovOut, VMerge:
		fill(s, 0, int(in.Src.Size), ofSrc)
	case VMovHigh:
		fill(s, 8, 8, ofSrc)
	case VMovHighLow:
		fill(s, 0, 8, ofSrc+8)
	case VMovHighOut:
		fill(s, 0, 8, ofSrc+8)
	case VExtract:
		for i := range s {
			s[i] = ofZero
		}
		n := int(in.Imm) & (max(int(in.Src.Size)/lane, 1) - 1)
		fill(s, 0, lane, uint8(ofSrc+n*lane&31))
	case VInsert:
		n := int(in.Imm) & (max(size/lane, 1) - 1)
		fill(s, n*lane, lane, ofSrc)
	}
}

// selectElements is for what moves elements to where the instruction says.
func selectElements(in *Insn, s *[32]uint8, a *vector) {
	lane, imm := int(in.Lane), int(in.Imm)
	n := 32 / lane
	element := func(to, from int) { fill(s, to*lane, lane, uint8(from*lane)) }
	const second = 32 // in elements, of Src: see from
	from := func(i int) int { return second/lane + i }
	switch in.Op {
	case VDup:
		for i := range n {
			element(i, from(i&^1|imm&1))
		}
	case VBroadcast:
		for i := range n {
			element(i, from(0))
		}
	case VShuffle, VShuffleLow, VShuffleHigh:
		fill(s, 0, 32, ofSrc)
		per := 16 / lane
		first := 0
		if in.Op == VShuffleHigh {
			first = 4
		}
		for base := 0; base < n; base += per {
			for i := range 4 {
				element((base+first+i)&(n-1), from(base+first+imm>>(2*i)&3)&63)
			}
		}
	case VShuffleTwo:
		selectTwo(in, s)
	case VPermilPD:
		for i := range n {
			element(i, from(i&^1|imm>>i&1))
		}
	case VPermQ:
		for i := range n {
			element(i, from(imm>>(2*i&7)&3))
		}
	case VPermD:
		for i := range 8 {
			x, _ := a.lane(i, 4)
			fill(s, i*4, 4, uint8(ofSrc+x&7*4))
		}
	case VPerm2:
		for i := range 2 {
			control := imm >> (4 * i)
			fill(s, i*16, 16, uint8(control&3*16))
			if control&8 != 0 {
				for j := range 16 {
					s[i*16+j] = ofZero
				}
			}
		}
	}
}

// selectTwo is shufps and shufpd.
func selectTwo(in *Insn, s *[32]uint8) {
	lane, imm := int(in.Lane), int(in.Imm)
	for base := 0; base < 32; base += 16 {
		per := 16 / lane
		for i := range per {
			n := imm >> (2 * i) & 3
			if lane == 8 {
				n = imm >> (i + base/8) & 1
			}
			from := base + n*lane
			if i >= per/2 {
				from += ofSrc
			}
			fill(s, base+i*lane, lane, uint8(from))
		}
	}
}

// selectBytes is for what moves bytes within 16.
func selectBytes(in *Insn, s *[32]uint8, b *vector) {
	lane, imm := int(in.Lane), int(in.Imm)
	for i := range 32 {
		base, at := i&16, i&15
		switch in.Op {
		case VUnpackLow, VUnpackHigh:
			n := at / lane
			from := base + n/2*lane + at%lane
			if in.Op == VUnpackHigh {
				from += 8
			}
			s[i] = uint8(from + n%2*ofSrc)
		case VAlign:
			s[i] = within(at+imm, base)
		case VShlBytes:
			if s[i] = uint8(base + at - imm); at < imm {
				s[i] = ofZero
			}
		case VShrBytes:
			if s[i] = uint8(base + at + imm); at+imm > 15 {
				s[i] = ofZero
			}
		case VBlend:
			if imm>>(i/lane&7)&1 != 0 {
				s[i] = uint8(ofSrc + i)
			}
		case VShuffleBytes:
			control := b.bytes[i]
			if s[i] = uint8(base) + control&15; control > 127 {
				s[i] = ofZero
			}
			if b.known[i] == Unknown {
				s[i] = ofNever
			}
		case VExtendZ:
			if s[i] = ofZero; i%lane < imm {
				s[i] = uint8(ofSrc + (i/lane*imm+i%lane)&31)
			}
		}
	}
}

// within returns byte n of 16 of Src, then as many of Third.
func within(n, base int) uint8 {
	switch {
	case n < 16:
		return uint8(ofSrc + base + n)
	case n < 32:
		return uint8(base + n - 16)
	}
	return ofZero
}
