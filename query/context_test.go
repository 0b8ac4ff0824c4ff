package query

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/query/querytest"
)

func TestContextOfFigure5(t *testing.T) {
	s := querytest.Figure5(t)
	c, err := ContextOf(s, "b", 1)
	if err != nil {
		t.Fatal(err)
	}
	want := &Context{Name: "b", Count: 6, Before: []Neighbour{{[]uint32{0}, 3}, {[]uint32{1}, 3}},
		After: []Neighbour{{[]uint32{1}, 3}, {[]uint32{2}, 3}}}
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
