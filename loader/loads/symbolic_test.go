package loads

import (
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

// TestRotated: numbers are rotated as the processor does it.
func TestRotated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ns nodes
		ns.reset()
		v, by := rapid.Uint64().Draw(t, "number"), rapid.IntRange(-64, 64).Draw(t, "by")
		for size, want := range map[uint8]uint64{1: uint64(bits.RotateLeft8(uint8(v), by)),
			2: uint64(bits.RotateLeft16(uint16(v), by)),
			4: uint64(bits.RotateLeft32(uint32(v), by)), 8: bits.RotateLeft64(v, by)} {
			got := ns.rotated(constant(int64(v)), int64(by), size)
			if !got.isConstant() || uint64(got.add) != want {
				t.Fatalf("%#x by %d in %d bytes is %v, want %#x", v, by, size, got, want)
			}
		}
	})
}
