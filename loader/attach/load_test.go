package attach

import (
	"math"
	"testing"

	"wpptrace/loader/plan"
)

// TestSitesFor: tables are as large as they can be unless control groups leave little memory.
func TestSitesFor(t *testing.T) {
	for memory, want := range map[uint64]int{0: 0, 48_000_000: 100_000, 1 << 30: plan.MaxSites,
		math.MaxUint64: plan.MaxSites} {
		if got := sitesFor(memory); got != want {
			t.Errorf("of %d bytes: %d sites, want %d", memory, got, want)
		}
	}
}
