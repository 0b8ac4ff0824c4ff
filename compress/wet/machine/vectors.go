package machine

import "math/bits"

// vectors is the vector registers of 32 bytes, and what is known of each four bytes of one: two
// bits each, from the lowest on.
type vectors struct {
	value [16][32]byte
	known [16]uint16
	wrote uint16 // by the last step
}

func (v *vectors) forget(registers uint16) {
	for r := registers; r != 0; r &= r - 1 {
		v.known[bits.TrailingZeros16(r)] = 0
	}
}

func (v *vectors) doubt() {
	for i := range v.known {
		v.known[i] &= 0x5555
	}
}
