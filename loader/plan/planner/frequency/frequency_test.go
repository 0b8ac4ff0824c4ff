package frequency

import (
	"testing"

	"wpptrace/loader/cfg"
)

// TestInterpretersAreOneLoop: operations that each jump to any by a table of their own run as often
// as in one loop, not in as many within one another. A loop in one of them is one within.
func TestInterpretersAreOneLoop(t *testing.T) {
	// operations 1 to 8, and 0 the first jump; one has a loop, and its jump behind that
	const operations, looping, loop, done, end = 8, 3, 9, 10, 11
	r := drawing(make([][]int, end+1)...)
	jumps := func(b int) {
		r.Blocks[b].End = cfg.Table
		for to := 1; to <= operations; to++ {
			r.Blocks[b].Succ = append(r.Blocks[b].Succ, to)
		}
		r.Blocks[b].Succ = append(r.Blocks[b].Succ, end)
	}
	for b := 0; b <= operations; b++ {
		if b != looping {
			jumps(b)
		}
	}
	r.Blocks[looping].Succ = []int{loop}
	r.Blocks[loop] = cfg.Block{End: cfg.Jcc, Succ: []int{loop, done}}
	jumps(done)
	freq := Estimate(r)
	for b := 1; b <= operations; b++ {
		if most := 2.0 * loopRounds; freq[b] > most {
			t.Errorf("operation %d runs %v times, more than %v", b, freq[b], most)
		}
	}
	if rounds := freq[loop] / freq[looping]; rounds < loopRounds/2 {
		t.Errorf("the loop of operation %d runs %v rounds, fewer than %v", looping, rounds,
			loopRounds/2)
	}
}
