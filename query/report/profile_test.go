package report

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/pathprofile"
	"wpptrace/query"
	"wpptrace/query/querytest"
)

// What a path profile cannot count exactly is said: in the table, and for each path in JSON.
func TestInexactCounts(t *testing.T) {
	for _, c := range []struct {
		name   string
		counts []uint64
		lost   uint64
		lines  string
		exact  []bool
	}{
		{"exact", []uint64{math.MaxUint64 - 1, 1}, 0, "", []bool{true, true}},
		{"saturated", []uint64{math.MaxUint64, 1}, 0,
			"A count of 18446744073709551615 stands for that or more\n", []bool{false, true}},
		{"lost", []uint64{2, 1}, 7,
			"Lost: 7 events: paths ran as often as is counted, or more often\n",
			[]bool{false, false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := querytest.Counted(querytest.Letters("aab"))
			s.Figures.Lost = c.lost
			s.Sections = []*wpp.Section{(&pathprofile.Counts{Of: c.counts, Threads: 1,
				Runs: 1}).Section()}
			hot, err := query.Hot(s, query.HotQuery{MinLength: 1, MaxLength: 1, MinCost: 1})
			if err != nil {
				t.Fatal(err)
			}
			var table, object strings.Builder
			if err := WriteHot(&table, s, hot); err != nil {
				t.Fatal(err)
			}
			_, after, _ := strings.Cut(table.String(), "paths\n")
			before, _, found := strings.Cut(after, "Showing 2 of 2 hot paths")
			if before != c.lines || !found {
				t.Errorf("%s", table.String())
			}
			if err := WriteProfileJSON(&object, s); err != nil {
				t.Fatal(err)
			}
			var got ProfileJSON
			if err := json.Unmarshal([]byte(object.String()), &got); err != nil {
				t.Fatal(err)
			}
			for i, p := range got.Paths {
				if p.Count != c.counts[i] || p.Exact != c.exact[i] || p.Routine != "ab"[i:i+1] {
					t.Errorf("%s", object.String())
				}
			}
		})
	}
}

// Of runs of several programs the title names each, and each once.
func TestTitleOfImages(t *testing.T) {
	for want, images := range map[string][]wpp.Image{
		"Program: gzip":       {{Name: "/usr/bin/gzip"}, {Name: "/opt/gzip"}},
		"Images: gzip, a.out": {{Name: "/usr/bin/gzip"}, {Name: "/tmp/a.out"}},
	} {
		if got := ofImages(&wpp.Snapshot{Images: images}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
