package machine

import "math"

// How two numbers compare.
const (
	unordered = iota
	less
	equal
	greater
)

// quiet is the bit that makes a NaN raise nothing, and negative the one of the sign.
func quiet(lane uint8) uint64 {
	if lane == 4 {
		return 1 << 22
	}
	return 1 << 51
}

// invalid is what operations without a result give.
func invalid(lane uint8) uint64 {
	if lane == 4 {
		return 0xffc00000
	}
	return 0xfff8000000000000
}

// float returns the number whose bits x are; one of 4 bytes is exact in 8.
func float(x uint64, lane uint8) float64 {
	if lane == 4 {
		return float64(math.Float32frombits(uint32(x)))
	}
	return math.Float64frombits(x)
}

func isNaN(x uint64, lane uint8) bool {
	if lane == 4 {
		return x&0x7fffffff > 0x7f800000
	}
	return x&^(1<<63) > 0x7ff0000000000000
}

func relation(x, y uint64, lane uint8) int {
	switch a, b := float(x, lane), float(y, lane); {
	case a < b:
		return less
	case a > b:
		return greater
	case a == b:
		return equal
	}
	return unordered
}

// holding has for each predicate of cmpps which relations it holds for, a bit each.
var holding = [16]uint8{
	1 << equal, 1 << less, 1<<less | 1<<equal, 1 << unordered,
	15 &^ (1 << equal), 15 &^ (1 << less), 15 &^ (1<<less | 1<<equal), 15 &^ (1 << unordered),
	1<<equal | 1<<unordered, 1<<unordered | 1<<less, 15 &^ (1 << greater), 0,
	1<<less | 1<<greater, 1<<equal | 1<<greater, 1 << greater, 15,
}

// arithmetic32 and arithmetic64 round once: to the nearest, ties to even.
func arithmetic32(op Op, x, y float32) float32 {
	switch op {
	case FAdd:
		return x + y
	case FSub:
		return x - y
	case FMul:
		return x * y
	case FDiv:
		return x / y
	}
	return float32(math.Sqrt(float64(y)))
}

func arithmetic64(op Op, x, y float64) float64 {
	switch op {
	case FAdd:
		return x + y
	case FSub:
		return x - y
	case FMul:
		return x * y
	case FDiv:
		return x / y
	}
	return math.Sqrt(y)
}

// computed returns the bits of a result.
func computed(op Op, x, y uint64, lane uint8, imm uint8) uint64 {
	switch op {
	case FMin, FMax:
		want := less
		if op == FMax {
			want = greater
		}
		if relation(x, y, lane) == want {
			return x
		}
		return y
	case FCmp:
		return -number(holding[imm&15]>>relation(x, y, lane)&1 != 0) & maskOf(lane)
	case FSqrt, FRound:
		x = y
	}
	switch {
	case isNaN(x, lane):
		return x | quiet(lane)
	case isNaN(y, lane):
		return y | quiet(lane)
	case op == FRound:
		return bitsOf(rounded(float(y, lane), imm), lane)
	case lane == 4:
		r := arithmetic32(op, math.Float32frombits(uint32(x)), math.Float32frombits(uint32(y)))
		if r != r {
			return invalid(lane)
		}
		return uint64(math.Float32bits(r))
	}
	r := arithmetic64(op, math.Float64frombits(x), math.Float64frombits(y))
	if r != r {
		return invalid(lane)
	}
	return math.Float64bits(r)
}

// bitsOf returns the bits of a number that is exact.
func bitsOf(v float64, lane uint8) uint64 {
	if lane == 4 {
		return uint64(math.Float32bits(float32(v)))
	}
	return math.Float64bits(v)
}

// rounded rounds to an integer as the immediate of roundsd says.
func rounded(v float64, imm uint8) float64 {
	if imm&4 != 0 { // as MXCSR says
		imm = 0
	}
	switch imm & 3 {
	case 1:
		return math.Floor(v)
	case 2:
		return math.Ceil(v)
	case 3:
		return math.Trunc(v)
	}
	return math.RoundToEven(v)
}

// toInt returns an integer of some bytes; what has none gives the least.
func toInt(v float64, size uint8, truncates bool) uint64 {
	if truncates {
		v = math.Trunc(v)
	} else {
		v = math.RoundToEven(v)
	}
	if limit := math.Ldexp(1, int(top(size))); !(v >= -limit && v < limit) {
		return 1 << top(size)
	}
	return uint64(int64(v)) & maskOf(size)
}

// converted returns a floating-point number with another number of bytes.
func converted(x uint64, from, to uint8) uint64 {
	if isNaN(x, from) {
		x |= quiet(from)
		if from == 4 {
			return x&0x80000000<<32 | 0x7ff0000000000000 | x&0x7fffff<<29
		}
		return x>>32&0x80000000 | 0x7f800000 | x>>29&0x7fffff
	}
	if from == to {
		return x
	}
	return bitsOf(float(x, from), to)
}

// floating is for floating-point numbers.
func (v *vectors) floating(in *Insn, a, b, r *vector) {
	lane, size := int(in.Lane), int(in.Size)
	known := v.rounding
	*r = *a
	switch in.Op {
	case FFromInt:
		x, k := b.lane(0, int(in.Src.Size))
		r.setLane(0, lane, fromInt(signed(x, in.Src.Size), in.Lane), k&known)
	case FToInt, FToIntRound:
		x, k := b.lane(0, lane)
		r.setLane(0, 8, toInt(float(x, in.Lane), in.Dst.Size, in.Op == FToInt), k&known)
	case FToFloat, VFromInt, VToInt, VToIntRound:
		v.convertVectors(in, b, r)
	case FHAdd, FHSub, FAddSub:
		floatingPairs(in, a, b, r, known)
	default:
		for i := range size / lane {
			x, k := a.lane(i, lane)
			y, ky := b.lane(i, lane)
			if in.Op == FSqrt || in.Op == FRound {
				k = ky
			}
			r.setLane(i, lane, computed(in.Op, x, y, in.Lane, uint8(in.Imm)), k&ky&known)
		}
	}
}

// fromInt returns the floating-point number that is nearest.
func fromInt(v int64, lane uint8) uint64 {
	if lane == 4 {
		return uint64(math.Float32bits(float32(v)))
	}
	return math.Float64bits(float64(v))
}

// convertVectors converts elements of Imm bytes to elements of Lane bytes; what is above the last,
// as there are fewer bytes than were read, is 0. One element alone leaves what is above it.
func (v *vectors) convertVectors(in *Insn, b, r *vector) {
	from, to := int(in.Imm), int(in.Lane)
	known := v.rounding
	if from != 4 && from != 8 {
		r.know(0, 32, Unknown)
		return
	}
	n := int(in.Size) / max(from, to)
	if n > 1 || in.Op != FToFloat {
		r.clear(0)
	}
	for i := range max(n, 1) {
		x, k := b.lane(i, from)
		switch in.Op {
		case FToFloat:
			x = converted(x, in.fromSize(), in.Lane)
		case VFromInt:
			x = fromInt(signed(x, in.fromSize()), in.Lane)
		default:
			x = toInt(float(x, in.fromSize()), in.Lane, in.Op == VToInt)
		}
		r.setLane(i, to, x, k&known)
	}
}

func (in *Insn) fromSize() uint8 { return uint8(in.Imm) }

// floatingPairs adds or subtracts neighbours, or by turns.
func floatingPairs(in *Insn, a, b, r *vector, known Knowledge) {
	lane := int(in.Lane)
	if in.Op == FAddSub {
		for i := range int(in.Size) / lane {
			x, k := a.lane(i, lane)
			y, ky := b.lane(i, lane)
			op := [2]Op{FSub, FAdd}[i&1]
			r.setLane(i, lane, computed(op, x, y, in.Lane, 0), k&ky&known)
		}
		return
	}
	op := FAdd
	if in.Op == FHSub {
		op = FSub
	}
	for base := 0; base < int(in.Size); base += 16 {
		n := 8 / lane
		for half, from := range [2]*vector{a, b} {
			for i := range n {
				x, k := from.lane(base/lane+2*i, lane)
				y, ky := from.lane(base/lane+2*i+1, lane)
				r.setLane(base/lane+half*n+i, lane, computed(op, x, y, in.Lane, 0), k&ky&known)
			}
		}
	}
}
