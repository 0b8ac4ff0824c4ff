package record

import (
	"testing"
	"time"
)

// TestElsewhere: most of the CPU time went to external code, beyond doubt.
func TestElsewhere(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name         string
		own          time.Duration
		instructions uint64
		want         bool
	}{
		{"hardly any traced instruction ran", 300 * ms, 2000, true},
		{"twice as much as slow instructions take", 300 * ms, 15_000_000, true},
		{"slow instructions may have been all", 300 * ms, 30_000_000, false},
		{"more instructions than nanoseconds", 300 * ms, 1 << 63, false},
	} {
		if got := isElsewhere(c.own, c.instructions); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
