package family

import (
	"errors"
	"testing"
)

// What the BPF program tells is read, or an error.
func FuzzParse(f *testing.F) {
	f.Add([]byte{1, 2, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0})
	f.Add([]byte{1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := parse(b)
		if err == nil && n.Obstacle != nil && !errors.Is(n.Obstacle, ErrDebugger) && !errors.Is(n.Obstacle, ErrJobControl) {
			t.Errorf("%+v", n)
		}
	})
}
