package machine

// elementOps compute an element of two.
var elementOps = [ops]func(x, y uint64, lane uint8) uint64{
	VAdd:    func(x, y uint64, _ uint8) uint64 { return x + y },
	VSub:    func(x, y uint64, _ uint8) uint64 { return x - y },
	VAddS:   func(x, y uint64, n uint8) uint64 { return clamp(signed(x, n)+signed(y, n), n) },
	VAddU:   func(x, y uint64, n uint8) uint64 { return min(x+y, maskOf(n)) },
	VSubS:   func(x, y uint64, n uint8) uint64 { return clamp(signed(x, n)-signed(y, n), n) },
	VSubU:   func(x, y uint64, _ uint8) uint64 { return x - min(x, y) },
	VMulLow: func(x, y uint64, _ uint8) uint64 { return x * y },
	VMulHigh: func(x, y uint64, n uint8) uint64 {
		return uint64(signed(x, n)*signed(y, n)) >> (8 * n)
	},
	VMulHighU: func(x, y uint64, n uint8) uint64 {
		return x * y >> (8 * n)
	},
	VMulHighRound: func(x, y uint64, n uint8) uint64 {
		return uint64((signed(x, n)*signed(y, n)>>14 + 1) >> 1)
	},
	VMulWideU: func(x, y uint64, n uint8) uint64 { return x & maskOf(n/2) * (y & maskOf(n/2)) },
	VMulWide:  func(x, y uint64, n uint8) uint64 { return extended(x, n/2) * extended(y, n/2) },
	VMulAdd: func(x, y uint64, n uint8) uint64 {
		h := 4 * n
		return uint64(signed(x, n/2)*signed(y, n/2) + signed(x>>h, n/2)*signed(y>>h, n/2))
	},
	VMulAddU: func(x, y uint64, n uint8) uint64 {
		h, mask := 4*n, maskOf(n/2)
		return clamp(int64(x&mask)*signed(y, n/2)+int64(x>>h&mask)*signed(y>>h, n/2), n)
	},
	VSad: func(x, y uint64, n uint8) (sum uint64) {
		for range n {
			d := int64(x&0xff) - int64(y&0xff)
			sum += uint64(max(d, -d))
			x, y = x>>8, y>>8
		}
		return sum
	},
	VAvg:  func(x, y uint64, _ uint8) uint64 { return (x + y + 1) >> 1 },
	VMinS: func(x, y uint64, n uint8) uint64 { return uint64(min(signed(x, n), signed(y, n))) },
	VMinU: func(x, y uint64, _ uint8) uint64 { return min(x, y) },
	VMaxS: func(x, y uint64, n uint8) uint64 { return uint64(max(signed(x, n), signed(y, n))) },
	VMaxU: func(x, y uint64, _ uint8) uint64 { return max(x, y) },
	VAbs:  func(_, y uint64, n uint8) uint64 { return uint64(max(signed(y, n), -signed(y, n))) },
	VSign: func(x, y uint64, n uint8) uint64 {
		switch s := signed(y, n); {
		case s < 0:
			return -x
		case s == 0:
			return 0
		}
		return x
	},
	VAnd:   func(x, y uint64, _ uint8) uint64 { return x & y },
	VAndN:  func(x, y uint64, _ uint8) uint64 { return ^x & y },
	VOr:    func(x, y uint64, _ uint8) uint64 { return x | y },
	VXor:   func(x, y uint64, _ uint8) uint64 { return x ^ y },
	VCmpEq: func(x, y uint64, _ uint8) uint64 { return -number(x == y) },
	VCmpGt: func(x, y uint64, n uint8) uint64 { return -number(signed(x, n) > signed(y, n)) },
	VShl:   shiftedLeft,
	VShr:   shiftedRight,
	VSar:   shiftedSigned,
	// of each element by its own count
	VShlEach: shiftedLeft,
	VShrEach: shiftedRight,
	VSarEach: shiftedSigned,
}

func signed(x uint64, size uint8) int64 { return int64(extended(x, size)) }

// clamp returns the number of some bytes that is nearest.
func clamp(v int64, size uint8) uint64 {
	most := int64(maskOf(size) >> 1)
	return uint64(max(min(v, most), -most-1))
}

func shiftedLeft(x, n uint64, lane uint8) uint64 {
	if n >= uint64(8*lane) {
		return 0
	}
	return x << n
}

func shiftedRight(x, n uint64, lane uint8) uint64 {
	if n >= uint64(8*lane) {
		return 0
	}
	return x >> n
}

func shiftedSigned(x, n uint64, lane uint8) uint64 {
	return uint64(signed(x, lane) >> min(n, 63))
}

// elements is for integer vectors.
func (v *vectors) elements(in *Insn, a, b, r *vector) {
	lane, size := int(in.Lane), int(in.Size)
	switch in.Op {
	case VExtendS:
		for i := range size / lane {
			x, k := b.lane(i, int(in.Imm))
			r.setLane(i, lane, extended(x, uint8(in.Imm)), k)
		}
		return
	case VPackS, VPackU, VHAdd, VHSub, VHAddS, VHSubS:
		pairs(in, a, b, r)
		return
	case VShl, VShr, VSar:
		n, kn := b.lane(0, 8)
		if in.Src.Class == None {
			n, kn = uint64(in.Imm), Confirmed
		}
		for i := range size / lane {
			x, k := a.lane(i, lane)
			r.setLane(i, lane, elementOps[in.Op](x, n, in.Lane), k&kn)
		}
		return
	}
	f := elementOps[in.Op]
	itself := in.Src.Class == Vector && in.Third.Class == Vector && in.Src.Reg == in.Third.Reg
	for i := range size / lane {
		x, k := a.lane(i, lane)
		y, ky := b.lane(i, lane)
		if in.Op != VAbs {
			ky &= k
		}
		switch in.Op {
		case VXor, VSub, VSubS, VSubU, VAndN, VCmpEq, VCmpGt:
			if itself {
				ky = Confirmed
				y = x
			}
		}
		r.setLane(i, lane, f(x, y, in.Lane), ky)
	}
}

// pairs is for what makes one element of two neighbours, or half of one of each; in each 16 bytes
// the first half comes from Third.
func pairs(in *Insn, a, b, r *vector) {
	lane := int(in.Lane)
	for base := 0; base < int(in.Size); base += 16 {
		for half, from := range [2]*vector{a, b} {
			if in.Op == VPackS || in.Op == VPackU {
				n := 16 / lane
				for i := range n {
					x, k := from.lane(base/lane+i, lane)
					r.setLane(base*2/lane+half*n+i, lane/2, packed(in.Op, x, in.Lane), k)
				}
				continue
			}
			n := 8 / lane
			for i := range n {
				x, k := from.lane(base/lane+2*i, lane)
				y, ky := from.lane(base/lane+2*i+1, lane)
				op := map[Op]Op{VHAdd: VAdd, VHSub: VSub, VHAddS: VAddS, VHSubS: VSubS}[in.Op]
				r.setLane(base/lane+half*n+i, lane, elementOps[op](x, y, in.Lane), k&ky)
			}
		}
	}
}

// packed returns an element of half the size.
func packed(op Op, x uint64, lane uint8) uint64 {
	if op == VPackS {
		return clamp(signed(x, lane), lane/2)
	}
	return uint64(max(min(signed(x, lane), int64(maskOf(lane/2))), 0))
}
