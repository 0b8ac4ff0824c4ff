package sequitur

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Memory that could not be mapped grows and goes as mapped memory does.
func TestMemoryThatIsNotMapped(t *testing.T) {
	const n = 3 * mapped
	s := make([]uint64, n)
	s[n-1] = 7
	s = resize(s, 2*n)
	if len(s) != 2*n || s[n-1] != 7 || s[2*n-1] != 0 {
		t.Error("what was there is lost")
	}
	release(s)
	release(make([]uint64, n))
}

// The peak is what matters: at no time from a thousand symbols on may a grammar hold more than
// thirty bytes for each, and fifteen for each distinct run.
func TestPeakMemory(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	var runs []uint32
	for len(runs) < 200_000 {
		runs = append(runs, slices.Repeat([]uint32{random.Uint32N(40)},
			1+random.IntN(1+random.IntN(60)))...)
	}
	for name, stream := range map[string][]uint32{
		"program": programStream(1, 1<<19), "random": randomStream(random, 1<<16), "runs": runs,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewFolding()
			worst, at := 0.0, 0
			for i, v := range stream {
				g.Append(v)
				if symbols := g.built.live - len(g.built.rules) +
					len(g.built.freeRules); i%100 == 0 && symbols >= 1000 {
					if x := float64(g.Bytes()-15*uint64(len(g.runs.all))) /
						float64(symbols); x > worst {
						worst, at = x, symbols
					}
				}
			}
			if worst == 0 || worst > 30 {
				t.Errorf("%.1f bytes for each of %d symbols", worst, at)
			}
		})
	}
}
