package query

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/compress/wpp"
	"wpptrace/query/querytest"
)

func TestOrderOfWorkedExamples(t *testing.T) {
	for _, tt := range []struct {
		texts                          []string
		p, q                           string
		everP, alwaysP, everQ, alwaysQ bool
	}{
		{[]string{"abbcabbcabbc"}, "a", "c", true, true, true, false},
		{[]string{"abbcabbcabbc"}, "c", "a", true, false, true, true},
		{[]string{"xaxb"}, "a", "b", true, true, false, false},
		{[]string{"a", "b"}, "a", "b", false, false, false, false},
		{[]string{"ab", "b"}, "a", "b", true, false, false, false},
		{[]string{"aa"}, "a", "a", true, false, true, false},
	} {
		o, err := PathOrder(querytest.Letters(tt.texts...), tt.p, tt.q)
		if err != nil {
			t.Fatal(err)
		}
		if o.EverP != tt.everP || o.AlwaysP != tt.alwaysP || o.EverQ != tt.everQ || o.AlwaysQ != tt.alwaysQ {
			t.Errorf("%q: %+v", tt.texts, o)
		}
	}
}

// TestOrderBeyondCounting: where paths ran more often than can be counted, equal counts do not say
// that none was first.
func TestOrderBeyondCounting(t *testing.T) {
	s := querytest.Letters("ab")
	s.Threads[0].Grammar = querytest.Repeated(t, 64, []uint32{wpp.RuleSymbol(1)}, []uint32{0, 1})
	o, err := PathOrder(s, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	if !o.AlwaysP || !o.EverQ || o.AlwaysQ {
		t.Errorf("a always before b %v, b ever before a %v, always %v", o.AlwaysP, o.EverQ, o.AlwaysQ)
	}
}

func TestOrderEqualsBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkOrder(t, querytest.DrawSnapshot(t))
	})
}

// checkOrder compares the order of a and b with that of the streams.
func checkOrder(t querytest.Fataler, s *wpp.Snapshot) {
	a, b := querytest.Letter(s, 'a'), querytest.Letter(s, 'b')
	got, err := PathOrder(s, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	var want Order
	for _, stream := range querytest.Streams(s) {
		for i, sym := range stream {
			switch sym {
			case a:
				want.PRan++
				want.PAfterQ += uint64(min(1, slices.Index(stream[:i], b)+1))
			case b:
				want.QRan++
				want.QAfterP += uint64(min(1, slices.Index(stream[:i], a)+1))
			}
		}
	}
	if got.PRan != want.PRan || got.QRan != want.QRan || got.PAfterQ != want.PAfterQ || got.QAfterP != want.QAfterP {
		t.Fatalf("%+v, want %+v", got, want)
	}
}

func TestContextOfFigure5(t *testing.T) {
	s := querytest.Figure5(t)
	c, err := ContextOf(s, "b", 1)
	if err != nil {
		t.Fatal(err)
	}
	want := &Context{Name: "b", Count: 6, Before: []Neighbour{{[]uint32{0}, 3}, {[]uint32{1}, 3}}, After: []Neighbour{{[]uint32{1}, 3}, {[]uint32{2}, 3}}}
	if diff := gocmp.Diff(want, c); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	for _, k := range []int{0, MostNeighbours + 1} {
		if _, err := ContextOf(s, "b", k); err == nil {
			t.Errorf("%d neighbours", k)
		}
	}
}

func TestContextEqualsBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := querytest.DrawSnapshot(t)
		k := rapid.IntRange(1, 5).Draw(t, "k")
		got, err := ContextOf(s, "a", k)
		if err != nil {
			t.Fatal(err)
		}
		want := &Context{Name: "a"}
		before, after := map[string]uint64{}, map[string]uint64{}
		for _, stream := range querytest.Streams(s) {
			for i, sym := range stream {
				if sym == querytest.Letter(s, 'a') {
					want.Count++
					before[key(stream[max(0, i-k):i])]++
					after[key(stream[i+1:min(len(stream), i+1+k)])]++
				}
			}
		}
		want.Before, want.After = bruteNeighbours(before), bruteNeighbours(after)
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("brute force -, ContextOf +:\n%s", diff)
		}
	})
}

func bruteNeighbours(counts map[string]uint64) (list []Neighbour) {
	for k, n := range counts {
		if k != "" {
			list = append(list, Neighbour{unkey(k), n})
		}
	}
	slices.SortFunc(list, func(a, b Neighbour) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), slices.Compare(a.Symbols, b.Symbols))
	})
	return list
}
