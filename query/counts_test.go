package query

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/compress/wpp"
	"wpptrace/query/querytest"
)

func TestBlockCounts(t *testing.T) {
	type counts = map[uint64]uint64
	for _, test := range []struct {
		name            string
		image           int
		blocks, entries counts
	}{
		{"of the program", 0, counts{0x1000: 1, 0x1009: 100, 0x100d: 2, 0x2000: 400, 0x2004: 101,
			0x200b: 100}, counts{0x1000: 1, 0x2000: 100}},
		// entered once more, and cut before a block ran
		{"of a library", 1, counts{0x3000: 1}, counts{0x3000: 2}},
		{"of no image", 2, counts{}, counts{}},
	} {
		blocks, entries, err := BlockCounts(querytest.Compressor(), test.image)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.blocks, blocks); diff != "" {
			t.Errorf("blocks %s (-want +got):\n%s", test.name, diff)
		}
		if diff := cmp.Diff(test.entries, entries); diff != "" {
			t.Errorf("entries %s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestBlockCountsOfNothing: a routine that was traced and never entered is known to have been so.
func TestBlockCountsOfNothing(t *testing.T) {
	s := querytest.Letters("a")
	s.Threads = nil
	blocks, entries, err := BlockCounts(s, 0)
	if n, known := entries[0x1000]; err != nil || n != 0 || !known || blocks[0x1000] != 0 {
		t.Errorf("blocks %v, entries %v, error %v", blocks, entries, err)
	}
}

// TestBlockCountsSaturate on a grammar of a few rules that says a letter 2^70 times.
func TestBlockCountsSaturate(t *testing.T) {
	s := querytest.Letters("a")
	rules := [][]uint32{}
	for r := range 69 {
		rules = append(rules, []uint32{wpp.RuleSymbol(r + 1), wpp.RuleSymbol(r + 1)})
	}
	g, err := wpp.NewGrammar(append(rules, []uint32{0, 0}))
	if err != nil {
		t.Fatal(err)
	}
	s.Threads[0].Grammar = g
	if blocks, entries, err := BlockCounts(s, 0); err != nil || blocks[0x1000] != math.MaxUint64 ||
		entries[0x1000] != math.MaxUint64 {
		t.Errorf("blocks %v, entries %v, error %v", blocks, entries, err)
	}
}

// TestBlockCountsOfTheExpansion: they are what counting one path after another gives.
func TestBlockCountsOfTheExpansion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := querytest.DrawSnapshot(t)
		want := map[uint64]uint64{}
		for _, stream := range querytest.Streams(s) {
			for _, sym := range stream {
				if r := s.RoutineOf(sym); r != nil && s.Symbols[sym].Skip == 0 {
					want[r.Entry]++
				}
			}
		}
		blocks, _, err := BlockCounts(s, 0)
		if err != nil {
			t.Fatal(err)
		}
		for addr, n := range blocks {
			if n == 0 {
				delete(blocks, addr)
			}
		}
		if diff := cmp.Diff(want, blocks); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}
