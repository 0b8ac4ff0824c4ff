package wpp_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/wpptest"
)

func TestPathOfSymbol(t *testing.T) {
	s := wpptest.Small()
	for _, c := range []struct {
		sym       uint32
		addrs     []uint64
		locations []wpp.Location
	}{
		{0, []uint64{0x401000, 0x401001, 0x401004, 0x401009},
			[]wpp.Location{{"demo.c", 10}, {"demo.c", 12}, {"lib.h", 3}}},
		{1, nil, nil},
		{2, []uint64{0x401004, 0x401009, 0x400100, 0x400101},
			[]wpp.Location{{"demo.c", 10}, {"demo.c", 12}, {"lib.h", 3}}},
		{3, nil, nil},
	} {
		var addrs []uint64
		for addr := range s.Instructions(c.sym) {
			addrs = append(addrs, addr)
		}
		if d := cmp.Diff(c.addrs, addrs); d != "" {
			t.Errorf("instructions of symbol %d: %s", c.sym, d)
		}
		if cost := s.SymbolCost(c.sym); cost != uint64(len(c.addrs)) {
			t.Errorf("cost of symbol %d: %d, want %d", c.sym, cost, len(c.addrs))
		}
		var locations []wpp.Location
		for l := range s.Locations(c.sym) {
			locations = append(locations, l)
		}
		if d := cmp.Diff(c.locations, locations); d != "" {
			t.Errorf("locations of symbol %d: %s", c.sym, d)
		}
	}
	if s.RoutineOf(1) != nil || s.ImageOf(1) != nil || s.RoutineOf(2) != &s.Routines[0] ||
		s.ImageOf(2).Base() != "demo" {
		t.Error("routines or images of symbols are wrong")
	}
}

// An Instructions iterator that stops early must stop in every loop that it is made of.
func TestInstructionsStopEarly(t *testing.T) {
	s := wpptest.Small()
	for stop := 1; stop <= 4; stop++ {
		n := 0
		for range s.Instructions(0) {
			if n++; n == stop {
				break
			}
		}
		if n != stop {
			t.Errorf("%d instructions, want %d", n, stop)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	for name, spoil := range map[string]func(s *wpp.Snapshot){
		"image of a routine": func(s *wpp.Snapshot) { s.Routines[1].Image = 2 },
		"negative image":     func(s *wpp.Snapshot) { s.Routines[1].Image = -1 },
		"empty range": func(s *wpp.Snapshot) {
			s.Routines[0].Ranges[0].Hi = 0x401000
		},
		"empty block": func(s *wpp.Snapshot) {
			s.Routines[0].Blocks[0].Lengths = nil
		},
		"instruction of 0 bytes": func(s *wpp.Snapshot) {
			s.Routines[0].Blocks[0].Lengths[1] = 0
		},
		"instruction of 16 bytes": func(s *wpp.Snapshot) {
			s.Routines[0].Blocks[0].Lengths[1] = 16
		},
		"block past the end": func(s *wpp.Snapshot) {
			s.Routines[0].Blocks[0].Addr = 1<<64 - 1
		},
		"file of a block":        func(s *wpp.Snapshot) { s.Routines[0].Blocks[1].File = 2 },
		"lines the wrong way":    func(s *wpp.Snapshot) { s.Routines[0].Blocks[0].Last = 9 },
		"last line but no first": func(s *wpp.Snapshot) { s.Routines[0].Blocks[0].Line = 0 },
		"line too large": func(s *wpp.Snapshot) {
			s.Routines[0].Blocks[0].Last = math.MaxInt32
			s.Routines[0].Blocks[0].Last++
		},
		"routine of a path":         func(s *wpp.Snapshot) { s.Symbols[0].Routine = 2 },
		"start of a path":           func(s *wpp.Snapshot) { s.Symbols[0].Start = 6 },
		"end of a path":             func(s *wpp.Snapshot) { s.Symbols[0].End = 7 },
		"block of a path":           func(s *wpp.Snapshot) { s.Symbols[0].Blocks[1] = 3 },
		"skips more than the block": func(s *wpp.Snapshot) { s.Symbols[0].Skip = 4 },
		"cuts more than the block":  func(s *wpp.Snapshot) { s.Symbols[0].Cut = 2 },
		"skips and cuts more": func(s *wpp.Snapshot) {
			s.Symbols[0] = wpp.Symbol{Blocks: []int{0}, Skip: 2, Cut: 2}
		},
		"negative skip":            func(s *wpp.Snapshot) { s.Symbols[0].Skip = -1 },
		"negative cut":             func(s *wpp.Snapshot) { s.Symbols[0].Cut = -1 },
		"cuts a path of no blocks": func(s *wpp.Snapshot) { s.Symbols[3].Cut = 1 },
		"unknown mark":             func(s *wpp.Snapshot) { s.Symbols[1].Mark = 5 },
		"thread without a grammar": func(s *wpp.Snapshot) { s.Threads[0].Grammar = nil },
		"terminal of a grammar":    func(s *wpp.Snapshot) { s.Symbols = s.Symbols[:4] },
	} {
		s := wpptest.Small()
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		spoil(s)
		if s.Check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
