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

// TestGoBack: what a way calls behind a return is no call of another way.
func TestGoBack(t *testing.T) {
	var f follower
	first := f.states.get()
	first.calls = append(make([]place, 0, 4), place{1, 1}, place{2, 2})
	second := f.copy(first)
	for _, st := range []*state{second, first} {
		to, ok := st.goBack()
		if !ok || to != (place{2, 2}) {
			t.Errorf("a return leads to %v, %t", to, ok)
		}
		st.calls = append(st.calls, place{3, 3})
	}
	for _, want := range []place{{3, 3}, {1, 1}} {
		if to, ok := first.goBack(); !ok || to != want {
			t.Errorf("a return leads to %v, %t, want %v", to, ok, want)
		}
	}
	if to, ok := first.goBack(); ok {
		t.Errorf("without a call a return leads to %v", to)
	}
}
