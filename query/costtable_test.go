package query

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/wpptest"
	"wpptrace/query/querytest"
)

// readCosts reads a table of letters: "b=3" costs b, "ab=5" costs b behind a.
func readCosts(t interface{ Fatal(...any) }, rows ...string) *CostTable {
	text := "path,before,misses\n"
	for _, row := range rows {
		name, cost, _ := strings.Cut(row, "=")
		before := ""
		if len(name) == 2 {
			before, name = name[:1]+"#0", name[1:]
		}
		text += name + "#0," + before + "," + cost + "\n"
	}
	table, err := ReadCosts(strings.NewReader(text), "")
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestHotByCostTable(t *testing.T) {
	tests := []struct {
		name  string
		texts []string
		costs []string
		total uint64
		want  []string // what ran before, in brackets; the subpath; count and cost
	}{
		{"by path", []string{"abcabc"}, []string{"a=1", "b=10"}, 22,
			[]string{"ab 2 22", "bc 2 20"}},
		{"behind a path", []string{"abcbab"}, []string{"b=1", "ab=10"}, 21,
			[]string{"ab 2 20", "[a]bc 1 10"}},
		{"nothing ran before", []string{"bab", "b"}, []string{"ab=10"}, 10, []string{"ab 1 10"}},
		{"a mark was before", []string{"a#bab"}, []string{"ab=10"}, 10, []string{"ab 1 10"}},
		{"behind itself", []string{"aaaa"}, []string{"a=1", "aa=7"}, 22, []string{"[a]aa 2 28"}},
		{"dearer by nothing", []string{"abab"}, []string{"b=10", "ab=10"}, 20,
			[]string{"ab 2 20", "ba 1 10"}},
		{"free behind a path", []string{"abacb"}, []string{"b=10", "ab=0"}, 10,
			[]string{"cb 1 10"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := querytest.Letters(tt.texts...)
			r, err := Hot(s, HotQuery{MinLength: 2, MaxLength: 2, MinCost: 10,
				Table: readCosts(t, tt.costs...)})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range r.Subpaths {
				before := ""
				if len(p.Before) > 0 {
					before = "[" + querytest.Spell(s, p.Before) + "]"
				}
				got = append(got,
					fmt.Sprint(before, querytest.Spell(s, p.Symbols), " ", p.Count, " ", p.Cost))
			}
			if diff := gocmp.Diff(tt.want, got); diff != "" || r.Total != tt.total ||
				r.Query.Metric != "misses" {
				t.Errorf("total %d %s, want %d; want -, got +:\n%s", r.Total, r.Query.Metric,
					tt.total, diff)
			}
		})
	}
}

// What costs depend on is distinguished in the expansion, and the subpaths of that are counted one
// by one.
func TestHotByCostTableEqualsBruteForce(t *testing.T) {
	check := func(t *testing.T, cut bool) {
		rapid.Check(t, func(t *rapid.T) {
			s := querytest.DrawSnapshot(t)
			table, known := &CostTable{Column: "misses"}, map[[2]string]bool{}
			names := []string{"", "?#0"}
			for i := range s.Routines {
				names = append(names, s.Routines[i].Name+"#0")
			}
			for range rapid.IntRange(0, 20).Draw(t, "rows") {
				row := costRow{path: rapid.SampledFrom(names[1:]).Draw(t, "path"),
					before: rapid.SampledFrom(names).Draw(t, "before"), cost: rapid.Uint64Range(0,
						9).Draw(t, "cost")}
				if k := [2]string{row.before, row.path}; !known[k] {
					known[k], table.rows = true, append(table.rows, row)
				}
			}
			kind := rapid.SampledFrom([]HotKind{Minimal, Maximal}).Draw(t, "kind")
			q := drawHotQuery(t, kind)
			q.Table = table
			want := s
			if cut {
				s = wpptest.InSegments(s, wpptest.Cuts(t))
			}
			got, err := Hot(s, q)
			if err != nil {
				t.Fatal(err)
			}
			q.MinCost = got.MinCost
			texts, c := bruteContexts(want, table)
			var total uint64
			for _, text := range texts {
				total += costOf(text, c.of)
			}
			if got.Total != total {
				t.Fatalf("all costs %d, on the expansion %d", got.Total, total)
			}
			found := bruteMaximalIn
			if kind == Minimal {
				found = bruteHotIn
			}
			subpaths := found(texts, c, q)
			for i := range subpaths {
				p := &subpaths[i]
				p.Before = c.plain(p.Symbols)
			}
			for _, list := range [][]Subpath{subpaths, got.Subpaths} {
				sortSubpaths(list)
			}
			if diff := gocmp.Diff(subpaths, got.Subpaths); diff != "" {
				t.Fatalf("brute force -, Hot +:\n%s", diff)
			}
		})
	}
	t.Run("one piece", func(t *testing.T) { check(t, false) })
	t.Run("segments", func(t *testing.T) { check(t, true) })
	t.Run("segments one by one", func(t *testing.T) {
		oneByOne(t)
		check(t, true)
	})
}

// bruteContexts gives each execution of a path that has a cost of its own behind the path before it
// a symbol of its own.
func bruteContexts(s *wpp.Snapshot, table *CostTable) ([][]uint32, *costs) {
	c := &costs{of: make([]uint64, len(s.Symbols)), isMark: make([]bool, len(s.Symbols))}
	name := func(sym uint32) string {
		if s.Symbols[sym].IsMark {
			return "mark"
		}
		return s.RoutineOf(sym).Name + "#0"
	}
	costAt := func(before, path string) (uint64, bool) {
		for _, row := range table.rows {
			if row.path == path && row.before == before {
				return row.cost, true
			}
		}
		return 0, false
	}
	for sym := range s.Symbols {
		c.isMark[sym] = s.Symbols[sym].IsMark
		c.of[sym], _ = costAt("", name(uint32(sym)))
	}
	texts := querytest.Streams(s)
	for _, text := range texts {
		for i := len(text) - 1; i > 0; i-- {
			cost, ok := costAt(name(text[i-1]), name(text[i]))
			if !ok || cost == c.of[text[i]] {
				continue
			}
			p := pair{text[i-1], text[i]}
			if !slices.Contains(c.pairs, p) {
				c.pairs, c.of, c.isMark = append(c.pairs, p), append(c.of, cost), append(c.isMark,
					false)
			}
			text[i] = uint32(len(s.Symbols) + slices.Index(c.pairs, p))
		}
	}
	return texts, c
}

// sortSubpaths makes an order that does not depend on the numbers of what is behind the snapshot's
// symbols, as what was covered before does.
func sortSubpaths(list []Subpath) {
	for i := range list {
		list[i].Cumulative = 0
	}
	slices.SortFunc(list, func(a, b Subpath) int {
		return slices.Compare(slices.Concat(a.Symbols, []uint32{math.MaxUint32}, a.Before),
			slices.Concat(b.Symbols, []uint32{math.MaxUint32}, b.Before))
	})
}

func TestCostTableRefuses(t *testing.T) {
	tests := []struct{ text, column, want string }{
		{"", "", `there is no header: the first line names the columns, as "path,before,cycles"`},
		{"name,cycles\n", "", `the header "name,cycles" names no column "path"`},
		{"path,before\n", "", `no column of costs "": name one of `},
		{"path,cycles,misses\n", "", `no column of costs "": name one of cycles, misses`},
		{"path,cycles,misses\n", "hits", `no column of costs "hits": name one of cycles, misses`},
		{"path,cycles\nf#1,2.5\n", "",
			`line 2: "2.5" is no whole number: multiply averages by a thousand`},
		{"path,cycles\nf#1,-1\n", "cycles",
			`line 2: "-1" is no whole number: multiply averages by a thousand`},
		{"path,cycles\nf#1,1844674407370955\nf#2,1844674407370956\n", "",
			`line 3: a cost of 1844674407370956 is more than 1844674407370955: divide all by a thousand`},
		{"path,cycles\nf#1,1\nf#1,2\n", "", `line 3: there is a row for f#1 before`},
		{"path,before,cycles\nf#1,g#0,1\nf#1,g#0,1\n", "",
			`line 3: there is a row for g#0 f#1 before`},
		{"path,cycles\nf(int, int)#1,1\n", "",
			`record on line 2: wrong number of fields: put names with commas in double quotes`},
	}
	for _, tt := range tests {
		if _, err := ReadCosts(strings.NewReader(tt.text), tt.column); err == nil ||
			err.Error() != "read costs: "+tt.want {
			t.Errorf("%q: error %v, want %s", tt.text, err, tt.want)
		}
	}
}

// Names are those that WriteHotJSON prints, with or without the address of one of several, or
// shortened as in the table.
func TestCostTableNames(t *testing.T) {
	s := querytest.Compressor()
	table, err := ReadCosts(strings.NewReader(`before,misses,path
,10,main#1
longest_match(std::vec...igned int)#0,20,longest_match(std::vec...igned int)#2
,1,"longest_match(std::vector<unsigned char, std::allocator<unsigned char> > const&, unsigned int, unsigned int)#2"
main#9,1,main#1
,1,nosuch#1
`), "misses")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Hot(s, HotQuery{MinLength: 1, MaxLength: 1, Table: table})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range r.Subpaths {
		got = append(got, fmt.Sprint(p.Before, p.Symbols, " ", p.Cost/p.Count))
	}
	if want := []string{"[14] [2] 20", "[] [1] 10", "[] [2] 1"}; !slices.Equal(got, want) ||
		r.Unused != 2 {
		t.Errorf("costs %q, %d rows unused, want %q, 2", got, r.Unused, want)
	}
}

// TestRowsThatNameTheSamePath: of f#0 and f@1000#0, the later row overwrote the earlier one.
func TestRowsThatNameTheSamePath(t *testing.T) {
	s := querytest.Letters("abcabc")
	s.Routines[1].Name = "a"
	entry := fmt.Sprintf("%x", s.Routines[0].Entry)
	for text, want := range map[string]string{
		"path,n\na#0,1\na@" + entry + "#0,2\n": "a@" + entry +
			"#0 is named by another row too, which says that it costs 1",
		"path,n\na#0,1\na@" + entry + "#0,1\n": "",
		"path,before,n\na#0,c#0,1\na@" + entry + "#0,c#0,2\nc#0,,1\n": "a@" + entry +
			"#0 behind c#0 is named by another row too, which says that it costs 1",
	} {
		table, err := ReadCosts(strings.NewReader(text), "n")
		if err != nil {
			t.Fatal(err)
		}
		_, err = Hot(s, HotQuery{MinLength: 1, MaxLength: 2, MinCost: 1, Table: table})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
