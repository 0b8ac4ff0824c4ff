package coverage

import (
	"testing"
	"time"

	"wpptrace/loader/firsthit"
	"wpptrace/loader/x86"
)

// A probe goes when it has shown what it can; a jump's stays longer where nothing else shows an
// outcome, and less long when probes have been in for some time.
func TestIsDone(t *testing.T) {
	const call, jump, aloneBoth, aloneOne = 0, 1, 2, 3
	equal := firsthit.Place{Condition: 4}
	w := &watch{
		sites: []site{{place: firsthit.Place{Condition: x86.NoCondition}}, {place: equal},
			{place: equal}, {place: equal}},
		alone: []bool{false, false, false, false, true, true, false, true},
	}
	for _, c := range []struct {
		site        int
		n           [firsthit.Outcomes]uint64
		early, late bool
	}{
		{call, [firsthit.Outcomes]uint64{0, 0}, false, false},
		{call, [firsthit.Outcomes]uint64{1, 0}, true, true},
		{jump, [firsthit.Outcomes]uint64{0, 0}, false, false},
		{jump, [firsthit.Outcomes]uint64{1, 0}, true, true},
		{aloneBoth, [firsthit.Outcomes]uint64{1, 0}, false, false},
		{aloneBoth, [firsthit.Outcomes]uint64{1, 1}, true, true},
		{aloneBoth, [firsthit.Outcomes]uint64{lessPatience, 0}, false, true},
		{aloneBoth, [firsthit.Outcomes]uint64{0, patience}, true, true},
		{aloneOne, [firsthit.Outcomes]uint64{1, 0}, false, false},
		{aloneOne, [firsthit.Outcomes]uint64{0, 1}, true, true},
	} {
		w.sweeps.began = time.Time{}
		early := w.isDone(c.site, c.n)
		w.sweeps.began = time.Now().Add(-2 * patienceLasts)
		if late := w.isDone(c.site, c.n); early != c.early || late != c.late {
			t.Errorf("site %d with %d passages is done: %v, later %v; want %v, %v", c.site, c.n,
				early, late, c.early, c.late)
		}
	}
}
