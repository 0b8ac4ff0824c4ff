package machine

import "math/bits"

// The flags, in an order of their own.
const (
	CF uint8 = 1 << iota
	PF
	AF
	ZF
	SF
	OF
	DF

	// Arithmetic are those that arithmetic changes.
	Arithmetic = CF | PF | AF | ZF | SF | OF
	AllFlags   = Arithmetic | DF

	signs = ZF | SF | PF // what a result says of itself
)

// A flags is the flags and what is known of each.
type flags struct {
	value, known, confirmed uint8
	read, written           uint8 // by the last step
}

// set gives some flags a value, and leaves others undefined.
func (f *flags) set(defined, undefined, value uint8, k Knowledge) {
	change := defined | undefined
	f.written |= change
	f.value = f.value&^change | value&defined
	f.known = f.known&^change | defined&-uint8(k&1)
	f.confirmed = f.confirmed&^change | defined&-uint8(k>>1)
}

// keep is for what leaves flags as they are because of a value of which so much is known.
func (f *flags) keep(mask uint8, k Knowledge) {
	f.known &= ^mask | -uint8(k&1)
	f.confirmed &= ^mask | -uint8(k>>1)
}

// overflow sets the flags of a multiplication.
func (f *flags) overflow(is bool, k Knowledge) {
	f.set(CF|OF, signs|AF, uint8(number(is))*(CF|OF), k)
}

// logic sets the flags of a logical operation.
func (f *flags) logic(r uint64, size uint8, k Knowledge) {
	f.set(Arithmetic&^AF, AF, signsOf(r, size), k)
}

// of returns the least that is known of some flags, which are read.
func (f *flags) of(mask uint8) Knowledge {
	f.read |= mask
	if f.known&mask != mask {
		return Unknown
	}
	if f.confirmed&mask != mask {
		return Unconfirmed
	}
	return Confirmed
}

// carry returns CF as a number.
func (f *flags) carry() (uint64, Knowledge) {
	return uint64(f.value & CF), f.of(CF)
}

// conditionFlags are the flags that a condition without its lowest bit asks for.
var conditionFlags = [8]uint8{OF, CF, ZF, CF | ZF, SF, PF, SF | OF, ZF | SF | OF}

// condition returns whether a condition holds, as it is encoded.
func (f *flags) condition(code uint8) (bool, Knowledge) {
	code &= 15
	return conditions[f.value&Arithmetic]>>code&1 != 0, f.of(conditionFlags[code>>1])
}

// conditions has for each value of the flags a bit for each condition that holds.
var conditions = func() (t [64]uint16) {
	for f := range t {
		is := func(mask uint8) bool { return uint8(f)&mask != 0 }
		for i, holds := range [8]bool{is(OF), is(CF), is(ZF), is(CF | ZF), is(SF), is(PF),
			is(SF) != is(OF), is(ZF) || is(SF) != is(OF)} {
			if holds {
				t[f] |= 1 << (2 * i)
			} else {
				t[f] |= 2 << (2 * i)
			}
		}
	}
	return t
}()

// parity has PF for each low byte of a result.
var parity = func() (t [256]uint8) {
	for b := range t {
		if bits.OnesCount8(uint8(b))%2 == 0 {
			t[b] = PF
		}
	}
	return t
}()

// maskOf has the bits of a value of some bytes.
func maskOf(size uint8) uint64 { return ^uint64(0) >> ((64 - 8*size) & 63) }

// top is the number of the highest bit of a value of some bytes.
func top(size uint8) uint8 { return (8*size - 1) & 63 }

// signsOf returns SF, ZF and PF of a result, whose bits above its size are 0.
func signsOf(r uint64, size uint8) uint8 {
	f := parity[uint8(r)] | uint8(r>>top(size))<<4
	if r == 0 {
		f |= ZF
	}
	return f
}

// added returns the flags of r = a + b, with or without a carry, all without bits above the size.
func added(a, b, r uint64, size uint8) uint8 {
	carries := a&b | (a|b)&^r
	return signsOf(r, size) | carried(carries, size)
}

// subtracted returns the flags of r = a - b, with or without a borrow.
func subtracted(a, b, r uint64, size uint8) uint8 {
	borrows := ^a&b | (^a|b)&r
	return signsOf(r, size) | carried(borrows, size)
}

// carried returns CF, AF and OF of the carries out of each bit.
func carried(carries uint64, size uint8) uint8 {
	high := carries >> ((top(size) - 1) & 63)
	return uint8(high>>1&1) | uint8(carries>>3&1)<<2 | uint8((high>>1^high)&1)<<5
}
