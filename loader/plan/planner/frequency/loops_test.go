package frequency

import (
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"wpptrace/internal/testenv"
	"wpptrace/loader/cfg"
)

// drawing makes a routine of the successors of its blocks.
func drawing(succ ...[]int) *cfg.Routine {
	r := &cfg.Routine{Blocks: make([]cfg.Block, len(succ))}
	for b := range succ {
		r.Blocks[b].Succ = succ[b]
	}
	return r
}

func TestNest(t *testing.T) {
	type (
		to     = []int
		around = []int32
	)
	for _, c := range []struct {
		name  string
		succ  [][]int
		pads  []int
		outer []int32 // by block
		exits [][2]int
	}{
		{"no loop", [][]int{{1, 2}, {2}, {}}, nil, around{none, none, none}, nil},
		{"a block by itself", [][]int{{1}, {1, 2}, {}}, nil, around{none, none, none},
			[][2]int{{1, 2}}},
		{"the entry as header", [][]int{{1, 2}, {0}, {}}, nil, around{none, 0, none},
			[][2]int{{0, 2}}},
		{"two back edges", [][]int{{1}, {2, 4}, {1, 3}, {1}, {}}, nil,
			around{none, none, 1, 1, none}, [][2]int{{1, 4}}},
		{"one within another, left at once", [][]int{{1}, {2}, {2, 3, 4}, {1, 4}, {}}, nil,
			around{none, none, 1, 1, none}, [][2]int{{2, 3}, {2, 4}, {3, 4}}},
		{"one after another", [][]int{{1}, {1, 2}, {2, 3}, {}}, nil, around{none, none, none, none},
			[][2]int{{1, 2}, {2, 3}}},
		{"entered in the middle", [][]int{{1, 2}, {2}, {1, 3}, {}}, nil,
			around{none, none, 1, none}, [][2]int{{2, 3}}},
		{"entered in the middle, within another",
			[][]int{{1}, {2, 5}, {3}, {2, 4}, {1, 6}, {3}, {}}, nil, around{none, none, 1, 2, 1, 1,
				none},
			[][2]int{{3, 4}, {4, 6}}},
		{"a landing pad that goes on in the loop", [][]int{{1}, {2}, {1, 3}, {}, {2, 3}}, to{4},
			around{none, none, 1, none, 1}, [][2]int{{2, 3}, {4, 3}}},
		{"a landing pad before the loop", [][]int{{1}, {2}, {1, 3}, {}, {1, 3}}, to{4},
			around{none, none, 1, none, none}, [][2]int{{2, 3}}},
	} {
		r := drawing(c.succ...)
		r.Pads = c.pads
		n := newNest(r)
		if !slices.Equal(n.outer, c.outer) {
			t.Errorf("%s: loops around the blocks %v, want %v", c.name, n.outer, c.outer)
		}
		var exits [][2]int
		for from, succ := range c.succ {
			for _, to := range succ {
				if n.leaves(int32(from), int32(to)) {
					exits = append(exits, [2]int{from, to})
				}
			}
		}
		if !slices.Equal(exits, c.exits) {
			t.Errorf("%s: loops are left by %v, want %v", c.name, exits, c.exits)
		}
	}
}

// TestLoopsAreNatural: where each loop is entered by its header alone, it is what reaches an edge
// back to the header without passing it.
func TestLoopsAreNatural(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 12).Draw(t, "blocks")
		succ := make([][]int, size)
		for b := 1; b < size; b++ { // all can be reached
			from := rapid.IntRange(0, b-1).Draw(t, "from")
			succ[from] = append(succ[from], b)
		}
		for range rapid.IntRange(0, size).Draw(t, "more") {
			from, to := rapid.IntRange(0, size-1).Draw(t, "from"), rapid.IntRange(0, size-1).Draw(t,
				"to")
			succ[from] = append(succ[from], to)
		}
		n := newNest(drawing(succ...))
		loops, ok := naturalLoops(n)
		if !ok {
			return
		}
		for from := range succ {
			for _, to := range succ[from] {
				want := slices.ContainsFunc(loops,
					func(in []bool) bool { return in[from] && !in[to] })
				if got := n.leaves(int32(from), int32(to)); got != want {
					t.Fatalf("%v: the edge from %d to %d leaves a loop: %v, want %v", succ, from,
						to, got, want)
				}
			}
		}
	})
}

// naturalLoops finds them one by one; not if one can be entered in its middle.
func naturalLoops(n *nest) (loops [][]bool, ok bool) {
	for header := range n.r.Blocks {
		if !n.header[header] {
			continue
		}
		in := make([]bool, len(n.r.Blocks))
		in[header] = true
		var work []int
		for _, b := range n.preds.Of(header) {
			if n.isBack(b, int32(header)) {
				work = append(work, int(b))
			}
		}
		for len(work) > 0 {
			b := work[len(work)-1]
			work = work[:len(work)-1]
			if !in[b] {
				in[b] = true
				for _, from := range n.preds.Of(b) {
					work = append(work, int(from))
				}
			}
		}
		if in[0] && header != 0 {
			return nil, false
		}
		loops = append(loops, in)
	}
	return loops, true
}

// TestManyLoops: the time grows with the number of loops, however they lie, and not with its
// square.
func TestManyLoops(t *testing.T) {
	// much for the collector, and for memory that does not fit into caches
	const few, often, much = 3_000, 16, 5
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin, many := manyLoops(few), manyLoops(few*often)
	for name := range begin {
		one, all := frequencyTime(begin[name]), frequencyTime(many[name])
		t.Logf("%s: %v, and %v for %d times as many", name, one, all, often)
		if all > often*much*one {
			t.Error("it grows faster than they do")
		}
	}
}

// frequencyTime is what estimating frequencies takes, as least of a few times.
func frequencyTime(succ [][]int) time.Duration {
	least := time.Duration(math.MaxInt64)
	for range 9 {
		began := testenv.ThreadTime()
		Estimate(drawing(succ...))
		least = min(least, testenv.ThreadTime()-began)
	}
	return least
}

// manyLoops are the successors of blocks that make so many loops.
func manyLoops(loops int) map[string][][]int {
	sequence, nested, middle := make([][]int, loops+1), make([][]int, 2*loops+1), make([][]int,
		2*loops+1)
	for i := range loops {
		sequence[i] = []int{i, i + 1}
		nested[i] = []int{i + 1, 2 * loops}
		middle[i] = []int{i + 1, 2*loops - 1 - i} // where the loop's last block is
		nested[2*loops-1-i] = []int{i, 2*loops - i}
		middle[2*loops-1-i] = []int{i, 2*loops - i}
	}
	return map[string][][]int{"in sequence": sequence, "nested": nested,
		"entered in the middle": middle}
}
