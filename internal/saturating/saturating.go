// Package saturating counts up to the greatest uint64 and stays there: a grammar of a few lines
// derives more.
package saturating

import "math/bits"

// Add is a + b.
func Add(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return 1<<64 - 1
	}
	return sum
}

// Mul is a * b.
func Mul(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	if hi != 0 {
		return 1<<64 - 1
	}
	return lo
}
