package slice_test

import (
	"fmt"
	"testing"

	"wpptrace/query/querytest"
	"wpptrace/query/slice"
)

// TestWindow: of a thread that executed more than is looked at, a slice has what is nearest to what
// was asked for, in whole segments, and says where it was cut.
func TestWindow(t *testing.T) {
	s := querytest.Rounds(20, func(round int) bool { return round%5 == 0 })
	at := func(p *uint64) string {
		if p == nil {
			return "-"
		}
		return fmt.Sprint(*p)
	}
	for _, c := range []struct {
		query slice.Query
		want  string // in the slice, of how many, from, to
	}{
		{slice.Query{Instance: 18}, "18 of 40 - -"},
		{slice.Query{Instance: 18, Most: 40}, "18 of 40 - -"},
		{slice.Query{Instance: 18, Most: 24}, "8 of 20 10 -"},
		{slice.Query{Instance: 18, Most: 1}, "3 of 10 15 -"},
		{slice.Query{Instance: 3, Most: 24}, "3 of 10 - -"},
		{slice.Query{Instance: 7, Forward: true}, "14 of 40 - -"},
		{slice.Query{Instance: 7, Forward: true, Most: 24}, "9 of 20 - 15"},
		{slice.Query{Instance: 18, Forward: true, Most: 24}, "3 of 10 - -"},
	} {
		c.query.At, c.query.By = "count+0", slice.Data
		a, err := slice.Ask(s, c.query)
		if err != nil {
			t.Errorf("%+v: %v", c.query, err)
			continue
		}
		got := fmt.Sprintf("%d of %d %s %s", a.In, a.Executed, at(a.From), at(a.To))
		if got != c.want || a.Parts[0].Last == nil {
			t.Errorf("%+v: got %s, want %s", c.query, got, c.want)
		}
	}
}
