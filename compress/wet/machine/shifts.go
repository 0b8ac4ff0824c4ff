package machine

import "math/bits"

// shifted shifts by n > 0 bits.
func (f *flags) shifted(op Op, a, n uint64, size uint8, k Knowledge) (r uint64) {
	width := uint64(8 * size)
	var out uint64 // the last bit that is shifted out
	var v uint8
	defined := CF | signs
	switch op {
	case Shl:
		r = a << n & maskOf(size)
		out = a << (n - 1) >> (width - 1) & 1
		v = uint8(r>>top(size)^out) & 1 * OF
		if n > width {
			defined &^= CF
		}
	case Shr:
		r = a >> n
		out = a >> (n - 1) & 1
		v = uint8(a>>top(size)) * OF
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
	f.set(defined, Arithmetic&^defined, v|uint8(out)|signsOf(r, size), k)
	return r
}

// rotated rotates by n > 0 bits.
func (f *flags) rotated(op Op, a, n uint64, size uint8, k Knowledge) uint64 {
	width := uint64(8 * size)
	by := n % width
	if op == Ror {
		by = (width - by) % width
	}
	r := (a<<by | a>>(width-by)) & maskOf(size)
	high := r >> top(size)
	v := uint8(r & 1)
	if op == Rol {
		v |= uint8(high^r&1) * OF
	} else {
		v = uint8(high) | uint8(high^r>>(top(size)-1)&1)*OF
	}
	if n == 1 {
		f.set(CF|OF, 0, v, k)
	} else {
		f.set(CF, OF, v, k)
	}
	return r
}

// rotatedThrough rotates by n > 0 bits through CF.
func (f *flags) rotatedThrough(op Op, a, n uint64, size uint8, k Knowledge) (uint64, Knowledge) {
	width := uint64(8 * size)
	by := n % (width + 1)
	if by == 0 {
		f.keep(CF, k)
		f.set(0, OF, 0, Unknown)
		return a, k
	}
	c, kc := f.carry()
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
	v := uint8(out)
	if op == Rcl {
		v |= uint8(high^out) * OF
	} else {
		v |= uint8(high^r>>(top(size)-1)&1) * OF
	}
	if n == 1 {
		f.set(CF|OF, 0, v, k)
	} else {
		f.set(CF, OF, v, k)
	}
	return r, k
}

// counted is what counts and isolates bits of what has one operand.
func (f *flags) counted(op Op, a uint64, size uint8, k Knowledge) (r uint64) {
	empty := uint8(number(a == 0))
	switch op {
	case PopCnt:
		r = uint64(bits.OnesCount64(a))
		f.set(Arithmetic, 0, signsOf(r, size)&ZF, k)
	case TzCnt, LzCnt:
		r = min(uint64(bits.TrailingZeros64(a)), uint64(8*size))
		if op == LzCnt {
			r = uint64(bits.LeadingZeros64(a)) - uint64(64-int(size)*8)
		}
		f.set(CF|ZF, OF|SF|AF|PF, signsOf(r, size)&ZF|empty, k)
	case Blsi:
		r = a & -a
		f.set(ZF|SF|CF|OF, AF|PF, signsOf(r, size)|empty^1, k)
	case BlsMsk:
		r = (a ^ (a - 1)) & maskOf(size)
		f.set(ZF|SF|CF|OF, AF|PF, signsOf(r, size)|empty, k)
	case Blsr:
		r = a & (a - 1)
		f.set(ZF|SF|CF|OF, AF|PF, signsOf(r, size)|empty, k)
	}
	return r
}
