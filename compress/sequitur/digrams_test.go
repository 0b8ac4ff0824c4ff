package sequitur

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A table of random digrams against a map, and of those whose hashes are the largest: they meet the
// end of the table, for which it must grow.
func TestDigramTable(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 9))
	for name, smallest := range map[string]uint32{"any": 0, "last": 63 << 26} {
		t.Run(name, func(t *testing.T) {
			g, table := New(), newDigramTable()
			defer g.Release()
			defer func() { release(table.slots) }()
			recorded := map[[2]uint32]uint32{}
			for range 100_000 {
				d := [2]uint32{random.Uint32N(1 << 10), random.Uint32N(1 << 10)}
				if digramHash(d[0], d[1]) < smallest {
					continue
				}
				n, ok := recorded[d]
				if got := table.find(&g.built.arena, d[0], d[1]); got != n {
					t.Fatalf("digram %v is recorded at %d, found at %d", d, n, got)
				}
				switch {
				case !ok:
					n = digramNode(g, d)
					table.insert(d[0], d[1], n)
					recorded[d] = n
				case random.IntN(2) == 0:
					recorded[d] = digramNode(g, d)
					table.move(d[0], d[1], n, recorded[d])
				default:
					table.remove(d[0], d[1], n)
					delete(recorded, d)
				}
			}
			for d, n := range recorded {
				if got := table.find(&g.built.arena, d[0], d[1]); got != n {
					t.Errorf("digram %v is recorded at %d, found at %d", d, n, got)
				}
			}
			entries := slices.DeleteFunc(slices.Clone(table.slots),
				func(e uint64) bool { return e == 0 })
			if len(entries) != len(recorded) || int(table.used) != len(recorded) ||
				!slices.IsSorted(entries) {
				t.Errorf("%d digrams: %d entries, %d counted, sorted %v", len(recorded),
					len(entries), table.used, slices.IsSorted(entries))
			}
		})
	}
}

// digramNode returns the left one of two nodes.
func digramNode(g *Grammar, d [2]uint32) uint32 {
	n, right := g.built.take(d[0]), g.built.take(d[1])
	g.built.link(n, right)
	return n
}
