package profile

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/query/querytest"
)

// TestFlat: figures by routine are sums over the expansion.
func TestFlat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := querytest.DrawSnapshot(t)
		r, err := Flat(s)
		if err != nil {
			t.Fatal(err)
		}
		want := map[int]RoutineFigures{}
		total := uint64(0)
		for _, stream := range querytest.Streams(s) {
			for _, sym := range stream {
				if s.Symbols[sym].IsMark {
					continue
				}
				x := want[s.Symbols[sym].Routine]
				x.Routine, x.Hottest = s.Symbols[sym].Routine, sym // each has one path
				x.Calls++
				x.Paths++
				x.Cost += s.SymbolCost(sym)
				x.HottestCost, x.HottestCount = x.Cost, x.Paths
				total += s.SymbolCost(sym)
				want[x.Routine] = x
			}
		}
		got := map[int]RoutineFigures{}
		for i, x := range r.Routines {
			got[x.Routine] = x
			if i > 0 && x.Cost > r.Routines[i-1].Cost {
				t.Fatalf("%+v is behind %+v", x, r.Routines[i-1])
			}
		}
		if diff := gocmp.Diff(want, got); diff != "" || r.Total != total {
			t.Fatalf("total %d, want %d; expansion -, grammar +:\n%s", r.Total, total, diff)
		}
	})
}
