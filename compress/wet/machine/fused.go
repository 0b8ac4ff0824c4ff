package machine

import "math"

// What Imm of FMulAdd says: two operands that are multiplied, to which the third is added, and
// signs.
const (
	DstTimesSrc = iota
	ThirdTimesDst
	ThirdTimesSrc
	NegatesAddend  = 1 << 2
	NegatesProduct = 1 << 3
	Alternates     = 1 << 4 // the sign of the addend: the first element's is the other one
)

// mulAdd is for fused multiplications and additions: a is Third, b Src, and r Dst.
func (v *vectors) mulAdd(in *Insn, a, b, r *vector) {
	lane := int(in.Lane)
	for i := range int(in.Size) / lane {
		x, kx := a.lane(i, lane)
		y, ky := b.lane(i, lane)
		z, kz := r.lane(i, lane)
		switch in.Imm & 3 {
		case DstTimesSrc:
			x, z = z, x
		case ThirdTimesDst:
			y, z = z, y
		}
		negate := in.Imm&NegatesAddend != 0
		if in.Imm&Alternates != 0 && i&1 == 0 {
			negate = !negate
		}
		r.setLane(i, lane, fused(x, y, z, in.Lane, in.Imm&NegatesProduct != 0, negate),
			kx&ky&kz&v.rounding)
	}
}

// fused returns the bits of x*y+z.
func fused(x, y, z uint64, lane uint8, negateProduct, negateAddend bool) uint64 {
	for _, n := range [3]uint64{x, y, z} {
		if isNaN(n, lane) {
			return n | quiet(lane)
		}
	}
	a, b, c := float(x, lane), float(y, lane), float(z, lane)
	if negateProduct {
		a = -a
	}
	if negateAddend {
		c = -c
	}
	if lane == 4 {
		return fused32(a, b, c)
	}
	r := math.FMA(a, b, c)
	if r != r {
		return invalid(lane)
	}
	return math.Float64bits(r)
}

// fused32 rounds once to 4 bytes: the product has no more bits than fit 8, and the sum of 8 bytes
// is rounded to odd, which leaves what the second rounding depends on.
func fused32(a, b, c float64) uint64 {
	product := a * b
	sum := product + c
	switch {
	case sum != sum:
		return invalid(4)
	case math.IsInf(sum, 0):
		return uint64(math.Float32bits(float32(sum)))
	}
	back := sum - product
	lost := (product - (sum - back)) + (c - back)
	if bits := math.Float64bits(sum); lost != 0 && bits&1 == 0 {
		if (lost > 0) == (sum > 0) {
			bits++
		} else {
			bits--
		}
		sum = math.Float64frombits(bits)
	}
	return uint64(math.Float32bits(float32(sum)))
}
