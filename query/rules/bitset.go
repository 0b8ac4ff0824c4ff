package rules

import (
	"encoding/binary"
	"iter"
	"math/bits"
)

// A bitset is a set of positions of a pattern.
type bitset []uint64

func newBitset() bitset { return make(bitset, (mostPositions+64)/64) }

func (b bitset) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) unset(i int)    { b[i/64] &^= 1 << (i % 64) }
func (b bitset) has(i int) bool { return b[i/64]>>(i%64)&1 == 1 }

func (b bitset) add(c bitset) {
	for i := range b {
		b[i] |= c[i]
	}
}

func (b bitset) remove(c bitset) {
	for i := range b {
		b[i] &^= c[i]
	}
}

func (b bitset) contains(c bitset) bool {
	for i := range b {
		if c[i]&^b[i] != 0 {
			return false
		}
	}
	return true
}

func (b bitset) meets(c bitset) bool {
	for i := range b {
		if c[i]&b[i] != 0 {
			return true
		}
	}
	return false
}

// all iterates over the members in rising order.
func (b bitset) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, word := range b {
			for ; word != 0; word &= word - 1 {
				if !yield(64*i + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}

func (b bitset) key() string {
	var key []byte
	for _, word := range b {
		key = binary.LittleEndian.AppendUint64(key, word)
	}
	return string(key)
}
