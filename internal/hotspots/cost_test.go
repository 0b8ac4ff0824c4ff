package hotspots

import (
	"testing"

	"wpptrace/query"
)

func TestSetLeast(t *testing.T) {
	for _, c := range []struct {
		text  string
		cost  uint64
		share float64
		ok    bool
	}{
		{"1000", 1000, 0, true}, {"5%", 0, 0.05, true}, {"0.1%", 0, 0.001, true}, {"100%", 0, 1,
			true}, {"0", 0, 0, true},
		{"101%", 0, 0, false}, {"-1%", 0, 0, false}, {"nan%", 0, 0, false}, {"%", 0, 0, false},
		{"5 %", 0, 0, false},
		{"-1", 0, 0, false}, {"5x", 0, 0, false}, {"1e3", 0, 0, false}, {"", 0, 0, false},
	} {
		q := query.DefaultHotQuery()
		err := SetLeast(&q, c.text)
		if (err == nil) != c.ok || c.ok && (q.MinCost != c.cost || q.MinShare != c.share) {
			t.Errorf("%q: cost %d, share %v, %v; want %d, %v", c.text, q.MinCost, q.MinShare, err,
				c.cost, c.share)
		}
	}
}
