package plan

import (
	"strings"
	"testing"

	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
)

// A plan that needs more probes than an event can name is refused, and the error says how many.
func TestTooManySites(t *testing.T) {
	program := &cfg.Program{Image: &image.Image{Name: "large"}, Routines: []*cfg.Routine{{}}}
	found := []Findings{{Blocks: make([]Block, 1)}}
	if _, err := New(program, Imports{}, found, make([]Site, MaxSites), nil); err != nil {
		t.Errorf("%d sites: %v", MaxSites, err)
	}
	const want = "plan large: 262145 probes are needed, 262144 are possible"
	if _, err := New(program, Imports{}, found, make([]Site, MaxSites+1), nil); err == nil ||
		!strings.HasPrefix(err.Error(), want) {
		t.Errorf("%d sites: error %v, want %q", MaxSites+1, err, want)
	}
}

// TestRunsOnce: a block runs once a call if it is on all routes to the end, and on no circle.
func TestRunsOnce(t *testing.T) {
	// 0 -> 1 or 2, 1 -> 3, 2 -> 2 or 3, 3 -> 4 or 5 (a call that does not return), 4 returns
	r := &Routine{Routine: &cfg.Routine{Blocks: []cfg.Block{
		{End: cfg.Jcc, Succ: []int{1, 2}}, {End: cfg.Jmp, Succ: []int{3}},
		{End: cfg.Jcc, Succ: []int{2, 3}}, {End: cfg.Jcc, Succ: []int{4, 5}},
		{End: cfg.Ret}, {End: cfg.NoReturn},
	}}}
	for b, want := range []bool{true, false, false, true, true, false} {
		if got := r.RunsOnce(b); got != want {
			t.Errorf("block %d runs once: %v", b, got)
		}
	}
	r.Blocks[3].Succ = []int{4, 0} // all of it is a loop
	for b, want := range []bool{false, false, false, false, true, false} {
		if got := r.RunsOnce(b); got != want {
			t.Errorf("in a loop, block %d runs once: %v", b, got)
		}
	}
}
