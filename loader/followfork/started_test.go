package followfork

import (
	"errors"
	"strings"
	"testing"
)

// What the BPF program reports is read, or an error.
func FuzzParse(f *testing.F) {
	f.Add([]byte{1, 2, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 's', 'h', 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0, 0})
	f.Add([]byte{1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 's', 'h', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0, 0})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := parse(b)
		if err == nil && n.Obstacle != nil && !errors.Is(n.Obstacle, ErrDebugger) &&
			!errors.Is(n.Obstacle, ErrJobControl) {
			t.Errorf("%+v", n)
		}
		if strings.ContainsAny(n.Name, "\n\x1b\x00") {
			t.Errorf("name %q", n.Name)
		}
	})
}
