package overhead

import (
	"testing"
	"time"

	"wpptrace/loader/target"
)

// Where the hits leave hardly anything that could be distinguished from the error, only the least
// is printed.
func TestVagueSlowDown(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		user, hits time.Duration // of 1 s
		share      KernelShare
		want       string
	}{
		{900 * ms, 100 * ms, KernelShare{known: true, perUser: 0.1}, "1.1 times"},
		{0, 900 * ms, KernelShare{}, "at least 4.2 times"},
	} {
		if got := c.share.Estimate(target.Times{CPU: time.Second, User: c.user},
			NewHitCost(c.hits, 0)).String(); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
