package machine

import (
	"math/bits"
)

// count returns by how many bits to shift.
func (m *Machine) count(o *Operand, in *Insn, mem Memory) (uint64, Knowledge) {
	n, k := m.value(o, in, mem)
	if in.Size == 8 {
		return n & 63, k
	}
	return n & 31, k
}

// shift is for shifts and rotations of one operand.
func (m *Machine) shift(in *Insn, mem Memory) {
	n, kn := m.count(&in.Src, in, mem)
	a, k := m.value(&in.Dst, in, mem)
	if kn == Unknown {
		m.flags.set(0, Arithmetic, 0, Unknown)
		m.put(&in.Dst, a, Unknown, mem)
		return
	}
	k &= kn
	if n == 0 {
		m.keepFlags(Arithmetic, kn)
		m.put(&in.Dst, a, k, mem)
		return
	}
	switch in.Op {
	case Shl, Shr, Sar:
		a = m.shiftOut(in.Op, a, n, in.Size, k)
	case Rol, Ror:
		a = m.rotate(in.Op, a, n, in.Size, k)
	default:
		a, k = m.rotateThrough(in.Op, a, n, in.Size, k)
	}
	m.put(&in.Dst, a, k, mem)
}

// keepFlags is for what leaves flags as they are because of a value of which so much is known.
func (m *Machine) keepFlags(mask uint8, k Knowledge) {
	m.flags.known &= ^mask | -uint8(k&1)
	m.flags.confirmed &= ^mask | -uint8(k>>1)
}

// shiftOut shifts by n > 0 bits.
func (m *Machine) shiftOut(op Op, a, n uint64, size uint8, k Knowledge) (r uint64) {
	width := uint64(8 * size)
	var out uint64 // the last bit that is shifted out
	var f uint8
	defined := CF | signs
	switch op {
	case Shl:
		r = a << n & maskOf(size)
		out = a << (n - 1) >> (width - 1) & 1
		f = uint8(r>>top(size)^out) & 1 * OF
		if n > width {
			defined &^= CF
		}
	case Shr:
		r = a >> n
		out = a >> (n - 1) & 1
		f = uint8(a>>top(size)) * OF
		if n > width {
			defined &^= CF
		}
	default:
		s := int64(extended(a, size))
		r = uint64(s>>n) & maskOf(size)
		out = uint64(s>>(n-1)) & 1
	}
	if n == width && op != Sar && size < 4 {
		defined &^= CF
	}
	if n == 1 {
		defined |= OF
	}
	m.flags.set(defined, Arithmetic&^defined, f|uint8(out)|signsOf(r, size), k)
	return r
}

// rotate rotates by n > 0 bits.
func (m *Machine) rotate(op Op, a, n uint64, size uint8, k Knowledge) uint64 {
	width := uint64(8 * size)
	by := n % width
	if op == Ror {
		by = (width - by) % width
	}
	r := (a<<by | a>>(width-by)) & maskOf(size)
	high := r >> top(size)
	f := uint8(r & 1)
	if op == Rol {
		f |= uint8(high^r&1) * OF
	} else {
		f = uint8(high) | uint8(high^r>>(top(size)-1)&1)*OF
	}
	if n == 1 {
		m.flags.set(CF|OF, 0, f, k)
	} else {
		m.flags.set(CF, OF, f, k)
	}
	return r
}

// rotateThrough rotates by n > 0 bits through CF.
func (m *Machine) rotateThrough(op Op, a, n uint64, size uint8, k Knowledge) (uint64, Knowledge) {
	width := uint64(8 * size)
	by := n % (width + 1)
	if by == 0 {
		m.keepFlags(CF, k)
		m.flags.set(0, OF, 0, Unknown)
		return a, k
	}
	c, kc := m.flags.carry()
	k &= kc
	var r, out uint64
	if op == Rcl {
		r = a<<by | c<<(by-1) | a>>(width+1-by)
		out = a >> (width - by) & 1
	} else {
		r = a>>by | c<<(width-by) | a<<(width+1-by)
		out = a >> (by - 1) & 1
	}
	r &= maskOf(size)
	high := r >> top(size)
	f := uint8(out)
	if op == Rcl {
		f |= uint8(high^out) * OF
	} else {
		f |= uint8(high^r>>(top(size)-1)&1) * OF
	}
	if n == 1 {
		m.flags.set(CF|OF, 0, f, k)
	} else {
		m.flags.set(CF, OF, f, k)
	}
	return r, k
}

// shiftDouble is for shld and shrd.
func (m *Machine) shiftDouble(in *Insn, mem Memory) {
	n, kn := m.count(&in.Third, in, mem)
	b, kb := m.value(&in.Src, in, mem)
	a, k := m.value(&in.Dst, in, mem)
	size, width := in.Size, uint64(8*in.Size)
	switch {
	case kn == Unknown || n > width:
		m.flags.set(0, Arithmetic, 0, Unknown)
		m.put(&in.Dst, a, Unknown, mem)
		return
	case n == 0:
		m.keepFlags(Arithmetic, kn)
		m.put(&in.Dst, a, k&kn, mem)
		return
	}
	k &= kn & kb
	var r, out uint64
	if in.Op == Shld {
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
	m.flags.set(defined, Arithmetic&^defined, f, k)
	m.put(&in.Dst, r, k, mem)
}

// multiply is for all that multiplies integers.
func (m *Machine) multiply(in *Insn, mem Memory) {
	size := in.Size
	a, k := m.value(&in.Src, in, mem)
	if in.Op == IMul {
		b, kb := m.value(&in.Third, in, mem)
		high, low := timesSigned(a, b, size)
		m.overflow(high != -(low>>top(size))&maskOf(size), k&kb)
		m.put(&in.Dst, low, k&kb, mem)
		return
	}
	implied := uint8(RAX)
	if in.Op == MulX {
		implied = RDX
	}
	b, kb := m.register(implied, size)
	k &= kb
	if in.Op == IMulWide {
		high, low := timesSigned(a, b, size)
		m.overflow(high != -(low>>top(size))&maskOf(size), k)
		m.setPair(high, low, size, k, k)
		return
	}
	high, low := times(a, b, size)
	if in.Op == MulX {
		m.put(&in.Third, low, k, mem)
		m.put(&in.Dst, high, k, mem)
		return
	}
	m.overflow(high != 0, k)
	m.setPair(high, low, size, k, k)
}

// overflow sets the flags of a multiplication.
func (m *Machine) overflow(is bool, k Knowledge) {
	m.flags.set(CF|OF, signs|AF, uint8(number(is))*(CF|OF), k)
}

// setPair sets RDX:RAX, for a byte AH:AL.
func (m *Machine) setPair(high, low uint64, size uint8, kh, kl Knowledge) {
	m.setRegister(RAX, low, size, kl)
	if size == 1 {
		m.put(&Operand{Class: High, Reg: RAX, Size: 1}, high, kh, nil)
		return
	}
	m.setRegister(RDX, high, size, kh)
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
func (m *Machine) divide(in *Insn, mem Memory) bool {
	size := in.Size
	d, k := m.value(&in.Src, in, mem)
	low, kl := m.register(RAX, size)
	high, kh := m.register(RDX, size)
	if size == 1 {
		high, kh = m.value(&Operand{Class: High, Reg: RAX, Size: 1}, in, mem)
	}
	k &= kl & kh
	if k == Unknown {
		m.flags.set(0, Arithmetic, 0, Unknown)
		m.setPair(0, 0, size, Unknown, Unknown)
		return true
	}
	var q, r uint64
	ok := false
	if in.Op == Div {
		q, r, ok = quotient(high, low, d, size)
	} else {
		q, r, ok = quotientSigned(high, low, d, size)
	}
	if !ok {
		return false
	}
	m.flags.set(0, Arithmetic, 0, Unknown)
	m.setPair(r, q, size, k, k)
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
func (m *Machine) bitOf(in *Insn, mem Memory) {
	n, kn := m.value(&in.Src, in, mem)
	size := in.Size
	var a uint64
	var k Knowledge
	if in.Dst.Class == Mem {
		m.at, m.atKnown = m.address(&in.Dst)
		if in.Src.Class == General {
			m.at += uint64(int64(extended(n, size))>>3) &^ uint64(size-1)
			m.atKnown &= kn
		}
		a, k = m.load(size, mem)
	} else {
		a, k = m.value(&in.Dst, in, mem)
	}
	bit := uint64(1) << (n & uint64(8*size-1))
	m.flags.set(CF, OF|SF|AF|PF, uint8(number(a&bit != 0)), k&kn)
	switch in.Op {
	case Bts:
		a |= bit
	case Btr:
		a &^= bit
	case Btc:
		a ^= bit
	default:
		return
	}
	m.put(&in.Dst, a, k&kn, mem)
}

// bits is for what counts, finds and moves bits.
func (m *Machine) bits(in *Insn, mem Memory) {
	a, k := m.value(&in.Src, in, mem)
	size := in.Size
	switch in.Op {
	case Bsf, Bsr:
		m.scan(in, a, k, mem)
		return
	case Crc32:
		c, kc := m.value(&in.Dst, in, mem)
		m.put(&in.Dst, crc32(c, a, in.Src.Size), k&kc, mem)
		return
	case PopCnt, TzCnt, LzCnt, Blsi, BlsMsk, Blsr:
		m.put(&in.Dst, m.bitsOf(in.Op, a, size, k), k, mem)
		return
	}
	n, kn := m.value(&in.Third, in, mem)
	k &= kn
	by := n & uint64(8*size-1)
	var r uint64
	switch in.Op {
	case AndN:
		r = ^n & a & maskOf(size)
		m.flags.set(ZF|SF|CF|OF, AF|PF, signsOf(r, size), k)
	case BExtr:
		r = a >> (n & 0xff) & (1<<(n>>8&0xff) - 1)
		m.flags.set(ZF|CF|OF, AF|SF|PF, signsOf(r, size)&ZF, k)
	case Bzhi:
		r = a
		f := CF
		if n&0xff < uint64(8*size) {
			r, f = a&(1<<(n&0xff)-1), 0
		}
		m.flags.set(ZF|SF|CF|OF, AF|PF, signsOf(r, size)|f, k)
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
	m.put(&in.Dst, r, k, mem)
}

// bitsOf is bits of what has one operand.
func (m *Machine) bitsOf(op Op, a uint64, size uint8, k Knowledge) (r uint64) {
	empty := uint8(number(a == 0))
	switch op {
	case PopCnt:
		r = uint64(bits.OnesCount64(a))
		m.flags.set(Arithmetic, 0, signsOf(r, size)&ZF, k)
	case TzCnt, LzCnt:
		r = min(uint64(bits.TrailingZeros64(a)), uint64(8*size))
		if op == LzCnt {
			r = uint64(bits.LeadingZeros64(a)) - uint64(64-int(size)*8)
		}
		m.flags.set(CF|ZF, OF|SF|AF|PF, signsOf(r, size)&ZF|empty, k)
	case Blsi:
		r = a & -a
		m.flags.set(ZF|SF|CF|OF, AF|PF, signsOf(r, size)|empty^1, k)
	case BlsMsk:
		r = (a ^ (a - 1)) & maskOf(size)
		m.flags.set(ZF|SF|CF|OF, AF|PF, signsOf(r, size)|empty, k)
	case Blsr:
		r = a & (a - 1)
		m.flags.set(ZF|SF|CF|OF, AF|PF, signsOf(r, size)|empty, k)
	}
	return r
}

// scan is bsf and bsr. They leave a register as it is where there is no bit; of a half of one,
// processors differ in what they do to the other.
func (m *Machine) scan(in *Insn, a uint64, k Knowledge, mem Memory) {
	m.flags.set(ZF, CF|OF|SF|AF|PF, uint8(number(a == 0))*ZF, k)
	if a == 0 {
		old, ko := m.value(&in.Dst, in, mem)
		if in.Size == 4 {
			ko = Unknown
		}
		m.put(&in.Dst, old, k&ko, mem)
		return
	}
	r := uint64(bits.TrailingZeros64(a))
	if in.Op == Bsr {
		r = uint64(63 - bits.LeadingZeros64(a))
	}
	m.put(&in.Dst, r, k, mem)
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
func (m *Machine) exchange(in *Insn, mem Memory) {
	b, kb := m.value(&in.Src, in, mem)
	a, ka := m.value(&in.Dst, in, mem)
	size := in.Size
	mask := maskOf(size)
	k := ka & kb
	switch in.Op {
	case XAdd:
		r := (a + b) & mask
		m.flags.set(Arithmetic, 0, added(a, b, r, size), k)
		m.put(&in.Src, a, ka, mem)
		m.put(&in.Dst, r, k, mem)
	case AdcX, AdoX:
		flag := CF
		if in.Op == AdoX {
			flag = OF
		}
		k &= m.flags.of(flag)
		r, out := bits.Add64(a, b, number(m.flags.value&flag != 0))
		if size == 4 {
			out = r >> 32 & 1
		}
		m.flags.set(flag, 0, -uint8(out), k)
		m.put(&in.Dst, r&mask, k, mem)
	case CmpXchg:
		c, kc := m.register(RAX, size)
		r := (c - a) & mask
		kc &= ka
		m.flags.set(Arithmetic, 0, subtracted(c, a, r, size), kc)
		switch {
		case kc == Unknown:
			m.put(&in.Dst, a, Unknown, mem)
			m.setRegister(RAX, c, size, Unknown)
		case r == 0:
			m.put(&in.Dst, b, kb&kc, mem)
		default:
			if size == 4 && in.Dst.Class == General { // processors differ in the upper half
				ka = Unknown
			}
			m.put(&in.Dst, a, ka, mem)
			m.setRegister(RAX, a, size, kc)
		}
	}
}

// exchangePair is cmpxchg8b and cmpxchg16b. It returns false where the processor raises an
// exception.
func (m *Machine) exchangePair(in *Insn, mem Memory) bool {
	size := in.Size
	m.at, m.atKnown = m.address(&in.Dst)
	if size == 8 && m.at&15 != 0 && m.atKnown != Unknown {
		return false
	}
	at, atKnown := m.at, m.atKnown
	low, kl := m.load(size, mem)
	m.at += uint64(size)
	high, kh := m.load(size, mem)
	a, ka := m.register(RAX, size)
	d, kd := m.register(RDX, size)
	k := kl & kh & ka & kd
	same := a == low && d == high
	m.flags.set(ZF, 0, uint8(number(same))*ZF, k)
	switch {
	case k == Unknown:
		m.setPair(0, 0, size, Unknown, Unknown)
		low, high, kl, kh = 0, 0, Unknown, Unknown
	case same:
		low, kl = m.register(RBX, size)
		high, kh = m.register(RCX, size)
		kl, kh = kl&k, kh&k
	default:
		m.setPair(high, low, size, kh&k, kl&k)
	}
	m.at, m.atKnown = at, atKnown
	m.store(low, size, kl, mem)
	m.at += uint64(size)
	m.store(high, size, kh, mem)
	return true
}

// How many rounds of a string instruction are run at most, upwards and downwards, where accesses do
// not become one: where it has more, what it leaves is unknown.
const (
	mostRounds     = 1 << 20
	mostRoundsDown = 1 << 10
)

// strings is for the string instructions.
func (m *Machine) strings(in *Insn, mem Memory) Outcome {
	falls := Outcome{Way: Falls, Known: Confirmed, To: m.general[Next]}
	rounds, k := uint64(1), Confirmed
	if in.Repeat != Once {
		if rounds, k = m.register(RCX, 8); rounds == 0 && k != Unknown {
			return falls
		}
	}
	k &= m.flags.of(DF)
	most, step := uint64(mostRounds), uint64(in.Size)
	if m.flags.value&DF != 0 {
		most, step = mostRoundsDown, -step
	}
	compares := in.Op == Cmps || in.Op == Scas
	if k == Unknown || rounds > most && !compares {
		m.loseString(in, mem)
		return falls
	}
	m.doubtString(in, k)
	for n := uint64(0); n < rounds; n++ {
		if n == most {
			m.loseString(in, mem)
			break
		}
		differ, ke := m.round(in, step, mem)
		if in.Repeat == Once {
			break
		}
		m.setRegister(RCX, m.general[RCX]-1, 8, m.known[RCX].whole())
		if !compares {
			continue
		}
		if ke == Unknown { // when it ends is not known
			m.loseString(in, mem)
			break
		}
		m.known[RCX] &= whole(ke)
		m.doubtString(in, ke)
		if differ == (in.Repeat == RepeatEqual) {
			break
		}
	}
	return falls
}

// doubtString lets the addresses of a string instruction depend on what so much is known of.
func (m *Machine) doubtString(in *Insn, k Knowledge) {
	if in.Op != Lods {
		m.known[RDI] &= whole(k)
	}
	if in.Op != Stos && in.Op != Scas {
		m.known[RSI] &= whole(k)
	}
}

// round is one of a string instruction. It returns, of what compares, whether the two differ.
func (m *Machine) round(in *Insn, step uint64, mem Memory) (differ bool, k Knowledge) {
	size := in.Size
	var a, b uint64
	var ka, kb Knowledge
	switch in.Op {
	case Movs, Cmps, Lods:
		m.at, m.atKnown = m.address(&in.Src)
		a, ka = m.load(size, mem)
		m.joinAccess()
		m.advance(RSI, step)
	default:
		a, ka = m.register(RAX, size)
	}
	if in.Op == Lods {
		m.setRegister(RAX, a, size, ka)
		return false, Confirmed
	}
	m.at, m.atKnown = m.general[RDI], m.known[RDI].whole()
	if in.Op == Movs || in.Op == Stos {
		m.store(a, size, ka, mem)
		m.joinAccess()
		m.advance(RDI, step)
		return false, Confirmed
	}
	b, kb = m.load(size, mem)
	m.joinAccess()
	m.advance(RDI, step)
	m.flags.set(Arithmetic, 0, subtracted(a, b, (a-b)&maskOf(size), size), ka&kb)
	return a != b, ka & kb
}

// joinAccess makes the last access a part of the one before it of its kind, where they touch.
func (m *Machine) joinAccess() {
	last := len(m.accesses) - 1
	a := &m.accesses[last]
	for i := max(last-2, 0); i < last; i++ {
		b := &m.accesses[i]
		if b.Write != a.Write || b.At != a.At || b.Addr+uint64(b.Size) != a.Addr {
			continue
		}
		if end := b.Size + a.Size; end <= len(b.Bytes) {
			copy(b.Bytes[b.Size:], a.Bytes[:a.Size])
		} else {
			if b.long == nil {
				b.long = append(m.long[i&1][:0], b.Bytes[:b.Size]...)
			}
			b.long = append(b.long, a.Bytes[:a.Size]...)
			m.long[i&1] = b.long
		}
		b.Size += a.Size
		b.Known &= a.Known
		m.accesses = m.accesses[:last]
		return
	}
}

func (m *Machine) advance(n uint8, step uint64) {
	m.general[n] += step
	m.wrote |= 1 << n
}

// loseString makes unknown what a string instruction may write.
func (m *Machine) loseString(in *Insn, mem Memory) {
	s := Set{General: 1 << RDI}
	switch in.Op {
	case Movs:
		s.General |= 1 << RSI
	case Cmps:
		s.General, s.Flags = s.General|1<<RSI, Arithmetic
	case Lods:
		s.General = 1<<RSI | 1<<RAX
	case Scas:
		s.Flags = Arithmetic
	}
	compares := in.Op == Cmps || in.Op == Scas
	if in.Repeat != Once && compares {
		s.General |= 1 << RCX
	}
	m.wrote |= uint32(s.General)
	m.Forget(s)
	if in.Repeat != Once && !compares { // it ends when this is 0
		m.setRegister(RCX, 0, 8, Confirmed)
	}
	m.at, m.atKnown = 0, Unknown
	if in.Op != Stos {
		m.access(0)
	}
	if in.Op == Movs || in.Op == Stos {
		m.storeUnknown(0, mem)
	}
}
