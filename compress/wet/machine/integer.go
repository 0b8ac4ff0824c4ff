package machine

import (
	"math/bits"
)

// count returns by how many bits to shift.
func (s *step) count(o *Operand) (uint64, Knowledge) {
	n, k := s.value(o)
	if s.in.Size == 8 {
		return n & 63, k
	}
	return n & 31, k
}

// shift is for shifts and rotations of one operand.
func (s *step) shift() {
	n, kn := s.count(&s.in.Src)
	a, k := s.value(&s.in.Dst)
	if kn == Unknown {
		s.m.flags.set(0, Arithmetic, 0, Unknown)
		s.put(&s.in.Dst, a, Unknown)
		return
	}
	k &= kn
	if n == 0 {
		s.m.flags.keep(Arithmetic, kn)
		s.put(&s.in.Dst, a, k)
		return
	}
	switch s.in.Op {
	case Shl, Shr, Sar:
		a = s.m.flags.shifted(s.in.Op, a, n, s.in.Size, k)
	case Rol, Ror:
		a = s.m.flags.rotated(s.in.Op, a, n, s.in.Size, k)
	default:
		a, k = s.m.flags.rotatedThrough(s.in.Op, a, n, s.in.Size, k)
	}
	s.put(&s.in.Dst, a, k)
}

// shiftDouble is for shld and shrd.
func (s *step) shiftDouble() {
	n, kn := s.count(&s.in.Third)
	b, kb := s.value(&s.in.Src)
	a, k := s.value(&s.in.Dst)
	size, width := s.in.Size, uint64(8*s.in.Size)
	switch {
	case kn == Unknown || n > width:
		s.m.flags.set(0, Arithmetic, 0, Unknown)
		s.put(&s.in.Dst, a, Unknown)
		return
	case n == 0:
		s.m.flags.keep(Arithmetic, kn)
		s.put(&s.in.Dst, a, k&kn)
		return
	}
	k &= kn & kb
	var r, out uint64
	if s.in.Op == Shld {
		r = (a<<n | b>>(width-n)) & maskOf(size)
		out = a >> (width - n) & 1
	} else {
		r = (a>>n | b<<(width-n)) & maskOf(size)
		out = a >> (n - 1) & 1
	}
	f := uint8(out) | signsOf(r, size) | uint8((a^r)>>top(size))*OF
	defined := CF | signs
	if n == 1 {
		defined |= OF
	}
	s.m.flags.set(defined, Arithmetic&^defined, f, k)
	s.put(&s.in.Dst, r, k)
}

// multiply is for all that multiplies integers.
func (s *step) multiply() {
	size := s.in.Size
	a, k := s.value(&s.in.Src)
	if s.in.Op == IMul {
		b, kb := s.value(&s.in.Third)
		high, low := timesSigned(a, b, size)
		s.m.flags.overflow(high != -(low>>top(size))&maskOf(size), k&kb)
		s.put(&s.in.Dst, low, k&kb)
		return
	}
	implied := uint8(RAX)
	if s.in.Op == MulX {
		implied = RDX
	}
	b, kb := s.m.general.get(implied, size)
	k &= kb
	if s.in.Op == IMulWide {
		high, low := timesSigned(a, b, size)
		s.m.flags.overflow(high != -(low>>top(size))&maskOf(size), k)
		s.m.general.setPair(high, low, size, k, k)
		return
	}
	high, low := times(a, b, size)
	if s.in.Op == MulX {
		s.put(&s.in.Third, low, k)
		s.put(&s.in.Dst, high, k)
		return
	}
	s.m.flags.overflow(high != 0, k)
	s.m.general.setPair(high, low, size, k, k)
}

// times multiplies without signs, into two halves.
func times(a, b uint64, size uint8) (high, low uint64) {
	high, low = bits.Mul64(a, b)
	if size < 8 {
		high = low >> (8 * size)
	}
	return high & maskOf(size), low & maskOf(size)
}

// timesSigned multiplies with signs.
func timesSigned(a, b uint64, size uint8) (high, low uint64) {
	if size == 8 {
		high, low = bits.Mul64(a, b)
		return high - a&-(b>>63) - b&-(a>>63), low
	}
	p := extended(a, size) * extended(b, size)
	return p >> (8 * size) & maskOf(size), p & maskOf(size)
}

// divide returns false where the processor raises an exception.
func (s *step) divide() bool {
	size := s.in.Size
	d, k := s.value(&s.in.Src)
	low, kl := s.m.general.get(RAX, size)
	high, kh := s.m.general.get(RDX, size)
	if size == 1 {
		high, kh = s.value(&Operand{Class: High, Reg: RAX, Size: 1})
	}
	k &= kl & kh
	if k == Unknown {
		s.m.flags.set(0, Arithmetic, 0, Unknown)
		s.m.general.setPair(0, 0, size, Unknown, Unknown)
		return true
	}
	var q, r uint64
	ok := false
	if s.in.Op == Div {
		q, r, ok = quotient(high, low, d, size)
	} else {
		q, r, ok = quotientSigned(high, low, d, size)
	}
	if !ok {
		return false
	}
	s.m.flags.set(0, Arithmetic, 0, Unknown)
	s.m.general.setPair(r, q, size, k, k)
	return true
}

func quotient(high, low, d uint64, size uint8) (q, r uint64, ok bool) {
	if high >= d {
		return 0, 0, false
	}
	if size < 8 {
		n := high<<(8*size) | low
		return n / d, n % d, true
	}
	q, r = bits.Div64(high, low, d)
	return q, r, true
}

func quotientSigned(high, low, d uint64, size uint8) (q, r uint64, ok bool) {
	width := 8 * size
	if size < 8 { // one number of 64 bits, with its sign
		low = extended(high<<width|low, 2*size)
		high = uint64(int64(low) >> 63)
		d = extended(d, size)
	}
	negative, negativeDivisor := int64(high) < 0, int64(d) < 0
	if negative {
		var borrow uint64
		low, borrow = bits.Sub64(0, low, 0)
		high, _ = bits.Sub64(0, high, borrow)
	}
	if negativeDivisor {
		d = -d
	}
	if high >= d {
		return 0, 0, false
	}
	q, r = bits.Div64(high, low, d)
	most := uint64(1)<<top(size) - 1
	if negative != negativeDivisor {
		if q > most+1 {
			return 0, 0, false
		}
		q = -q
	} else if q > most {
		return 0, 0, false
	}
	if negative {
		r = -r
	}
	return q & maskOf(size), r & maskOf(size), true
}

// bitOf is for bt and what changes the bit besides.
func (s *step) bitOf() {
	n, kn := s.value(&s.in.Src)
	size := s.in.Size
	var a uint64
	var k Knowledge
	if s.in.Dst.Class == Mem {
		s.m.port.at, s.m.port.known = s.m.general.address(&s.in.Dst)
		if s.in.Src.Class == General {
			s.m.port.at += uint64(int64(extended(n, size))>>3) &^ uint64(size-1)
			s.m.port.known &= kn
		}
		a, k = s.m.port.load(size, s.mem)
	} else {
		a, k = s.value(&s.in.Dst)
	}
	bit := uint64(1) << (n & uint64(8*size-1))
	s.m.flags.set(CF, OF|SF|AF|PF, uint8(number(a&bit != 0)), k&kn)
	switch s.in.Op {
	case Bts:
		a |= bit
	case Btr:
		a &^= bit
	case Btc:
		a ^= bit
	default:
		return
	}
	s.put(&s.in.Dst, a, k&kn)
}

// bits is for what counts, finds and moves bits.
func (s *step) bits() {
	a, k := s.value(&s.in.Src)
	size := s.in.Size
	switch s.in.Op {
	case Bsf, Bsr:
		s.scan(a, k)
		return
	case Crc32:
		c, kc := s.value(&s.in.Dst)
		s.put(&s.in.Dst, crc32(c, a, s.in.Src.Size), k&kc)
		return
	case PopCnt, TzCnt, LzCnt, Blsi, BlsMsk, Blsr:
		s.put(&s.in.Dst, s.m.flags.counted(s.in.Op, a, size, k), k)
		return
	}
	n, kn := s.value(&s.in.Third)
	k &= kn
	by := n & uint64(8*size-1)
	var r uint64
	switch s.in.Op {
	case AndN:
		r = ^n & a & maskOf(size)
		s.m.flags.set(ZF|SF|CF|OF, AF|PF, signsOf(r, size), k)
	case BExtr:
		r = a >> (n & 0xff) & (1<<(n>>8&0xff) - 1)
		s.m.flags.set(ZF|CF|OF, AF|SF|PF, signsOf(r, size)&ZF, k)
	case Bzhi:
		r = a
		f := CF
		if n&0xff < uint64(8*size) {
			r, f = a&(1<<(n&0xff)-1), 0
		}
		s.m.flags.set(ZF|SF|CF|OF, AF|PF, signsOf(r, size)|f, k)
	case PDep:
		r = deposit(n, a)
	case PExt:
		r = extract(n, a)
	case Rorx:
		r = (a>>by | a<<(uint64(8*size)-by)) & maskOf(size)
	case Sarx:
		r = uint64(int64(extended(a, size))>>by) & maskOf(size)
	case Shlx:
		r = a << by & maskOf(size)
	case Shrx:
		r = a >> by
	}
	s.put(&s.in.Dst, r, k)
}

// scan is bsf and bsr. They leave a register as it is where there is no bit; of a half of one,
// processors differ in what they do to the other.
func (s *step) scan(a uint64, k Knowledge) {
	s.m.flags.set(ZF, CF|OF|SF|AF|PF, uint8(number(a == 0))*ZF, k)
	if a == 0 {
		old, ko := s.value(&s.in.Dst)
		if s.in.Size == 4 {
			ko = Unknown
		}
		s.put(&s.in.Dst, old, k&ko)
		return
	}
	r := uint64(bits.TrailingZeros64(a))
	if s.in.Op == Bsr {
		r = uint64(63 - bits.LeadingZeros64(a))
	}
	s.put(&s.in.Dst, r, k)
}

// deposit puts the low bits of v where mask has bits.
func deposit(v, mask uint64) (r uint64) {
	for ; mask != 0; mask &= mask - 1 {
		r |= mask & -mask & -(v & 1)
		v >>= 1
	}
	return r
}

// extract is the reverse of deposit.
func extract(v, mask uint64) (r uint64) {
	for i := 0; mask != 0; mask &= mask - 1 {
		if v&mask&-mask != 0 {
			r |= 1 << i
		}
		i++
	}
	return r
}

// crc32 is one step of CRC-32C over the bytes of v.
func crc32(c, v uint64, size uint8) uint64 {
	r := uint32(c)
	for range size {
		r ^= uint32(uint8(v))
		for range 8 {
			r = r>>1 ^ 0x82f63b78&-(r&1)
		}
		v >>= 8
	}
	return uint64(r)
}

// exchange is for what compares or adds, and exchanges.
func (s *step) exchange() {
	b, kb := s.value(&s.in.Src)
	a, ka := s.value(&s.in.Dst)
	size := s.in.Size
	mask := maskOf(size)
	k := ka & kb
	switch s.in.Op {
	case XAdd:
		r := (a + b) & mask
		s.m.flags.set(Arithmetic, 0, added(a, b, r, size), k)
		s.put(&s.in.Src, a, ka)
		s.put(&s.in.Dst, r, k)
	case AdcX, AdoX:
		flag := CF
		if s.in.Op == AdoX {
			flag = OF
		}
		k &= s.m.flags.of(flag)
		r, out := bits.Add64(a, b, number(s.m.flags.value&flag != 0))
		if size == 4 {
			out = r >> 32 & 1
		}
		s.m.flags.set(flag, 0, -uint8(out), k)
		s.put(&s.in.Dst, r&mask, k)
	case CmpXchg:
		c, kc := s.m.general.get(RAX, size)
		r := (c - a) & mask
		kc &= ka
		s.m.flags.set(Arithmetic, 0, subtracted(c, a, r, size), kc)
		switch {
		case kc == Unknown:
			s.put(&s.in.Dst, a, Unknown)
			s.m.general.set(RAX, c, size, Unknown)
		case r == 0:
			s.put(&s.in.Dst, b, kb&kc)
		default:
			if size == 4 && s.in.Dst.Class == General { // processors differ in the upper half
				ka = Unknown
			}
			s.put(&s.in.Dst, a, ka)
			s.m.general.set(RAX, a, size, kc)
		}
	}
}

// exchangePair is cmpxchg8b and cmpxchg16b. It returns false where the processor raises an
// exception.
func (s *step) exchangePair() bool {
	size := s.in.Size
	s.m.port.at, s.m.port.known = s.m.general.address(&s.in.Dst)
	if size == 8 && s.m.port.at&15 != 0 && s.m.port.known != Unknown {
		return false
	}
	at, atKnown := s.m.port.at, s.m.port.known
	low, kl := s.m.port.load(size, s.mem)
	s.m.port.at += uint64(size)
	high, kh := s.m.port.load(size, s.mem)
	a, ka := s.m.general.get(RAX, size)
	d, kd := s.m.general.get(RDX, size)
	k := kl & kh & ka & kd
	same := a == low && d == high
	s.m.flags.set(ZF, 0, uint8(number(same))*ZF, k)
	switch {
	case k == Unknown:
		s.m.general.setPair(0, 0, size, Unknown, Unknown)
		low, high, kl, kh = 0, 0, Unknown, Unknown
	case same:
		low, kl = s.m.general.get(RBX, size)
		high, kh = s.m.general.get(RCX, size)
		kl, kh = kl&k, kh&k
	default:
		s.m.general.setPair(high, low, size, kh&k, kl&k)
	}
	s.m.port.at, s.m.port.known = at, atKnown
	s.m.port.store(low, size, kl, s.mem)
	s.m.port.at += uint64(size)
	s.m.port.store(high, size, kh, s.mem)
	return true
}
