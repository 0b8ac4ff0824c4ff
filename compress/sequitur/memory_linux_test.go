package sequitur

import "testing"

// Memory that could not be mapped grows and goes as mapped memory does.
func TestMemoryThatIsNotMapped(t *testing.T) {
	const n = 3 * mapped
	s := make([]uint64, n)
	s[n-1] = 7
	s = resize(s, 2*n)
	if len(s) != 2*n || s[n-1] != 7 || s[2*n-1] != 0 {
		t.Error("what was there is lost")
	}
	release(s)
	release(make([]uint64, n))
}
