package values

import (
	"cmp"
	"math/bits"
)

// A variant is what has been seen of the C library's memcmp where bytes differ. The library has one
// for each kind of processor, and each returns what it finds with least work, by how many bytes it
// compares.
type variant struct {
	seen   [lengths]bool
	others [lengths]uint8 // ways that what was seen does not agree with
}

// What memcmp returns.
const (
	byDifference = iota // of the first two bytes that differ
	bySign              // 1 or -1
	byPair              // of two or three bytes: the difference of the first two, and of the last
	ways
)

// lengths is how many classes of lengths there are.
const lengths = 12

// lengthClass is that of lengths for which each variant has one way: 1, 2, 3, 4, 5 to 7, 8 and so
// on up to 33 to 63, and more. Powers of two are classes of their own, as variants have their
// bounds before them or behind them.
func lengthClass(n uint64) int {
	class := 2 * (bits.Len64(n) - 1)
	if n&(n-1) == 0 {
		class--
	}
	return max(0, min(class, lengths-1))
}

// A difference is what memcmp finds.
type difference struct {
	class int // of the length
	may   [ways]uint32
}

// differ finds the difference of two blocks of n bytes, of which x and y begin with those that are
// known; ok is false if none is among these.
func differ(x, y []byte, n uint64) (d difference, ok bool) {
	for i := range min(len(x), len(y)) {
		if x[i] == y[i] {
			continue
		}
		d.class = lengthClass(n)
		d.may[byDifference] = uint32(x[i]) - uint32(y[i])
		d.may[bySign] = uint32(cmp.Compare(x[i], y[i]))
		d.may[byPair] = d.may[byDifference]
		if n == 2 || n == 3 {
			if uint64(min(len(x), len(y))) < n {
				return d, false
			}
			pair := func(b []byte) uint32 {
				return (uint32(b[0])<<24|uint32(b[1])<<16)>>1 | uint32(b[n-1])
			}
			d.may[byPair] = pair(x) - pair(y)
		}
		return d, true
	}
	return d, false
}

// learn notes what was returned where there was a difference.
func (v *variant) learn(d *difference, is uint32) {
	v.seen[d.class] = true
	for way, may := range d.may {
		if may != is {
			v.others[d.class] |= 1 << way
		}
	}
}

// returns is what is returned where there is a difference; ok is false if that is not known.
func (v *variant) returns(d *difference) (is uint64, ok bool) {
	if !v.seen[d.class] {
		return 0, false
	}
	for way, may := range d.may {
		switch {
		case v.others[d.class]>>way&1 != 0:
		case !ok:
			is, ok = uint64(may), true
		case is != uint64(may):
			return 0, false
		}
	}
	return is, ok
}
