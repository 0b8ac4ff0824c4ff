package circles

import "testing"

// TestForest: what would close a circle is refused, and joins are undone.
func TestForest(t *testing.T) {
	f := NewForest(5)
	joins := func(f *Forest, e [2]int32, want bool) {
		t.Helper()
		if got := f.Join(e[0], e[1]); got != want {
			t.Errorf("join %v: %v, want %v", e, got, want)
		}
	}
	joins(&f, [2]int32{0, 1}, true)
	joins(&f, [2]int32{1, 2}, true)
	f.Keep()
	var other Forest
	other.CopyFrom(&f)
	joins(&f, [2]int32{2, 3}, true)
	joins(&f, [2]int32{3, 0}, false)
	joins(&other, [2]int32{3, 0}, true)
	f.Undo()
	joins(&f, [2]int32{3, 0}, true)
	joins(&f, [2]int32{0, 2}, false)
	other.CopyFrom(&f)
	joins(&other, [2]int32{3, 1}, false)
	joins(&other, [2]int32{3, 4}, true)
	joins(&f, [2]int32{3, 4}, true)
}
