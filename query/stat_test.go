package query

import (
	"testing"
	"time"

	"wpptrace/query/querytest"
)

// TestSlowDownIsWithinBounds: a slow-down that is vague is no more than what so many instructions
// allow, which a reader of the least alone would not guess.
func TestSlowDownIsWithinBounds(t *testing.T) {
	s := querytest.Compressor()
	s.Figures.CPUTime, s.Figures.SlowDown = 40*time.Millisecond, 5
	if most := NewStat(s, 0).SlowDownMost; most != 0 {
		t.Errorf("at most %v, and it is known", most)
	}
	s.Figures.SlowDownVague = true
	x := NewStat(s, 0)
	if want := 40e6 / (InstructionTime * float64(x.Instructions)); x.SlowDownMost != want {
		t.Errorf("at most %v, want %v", x.SlowDownMost, want)
	}
	if want := 40e6 / (UsualInstructionTime * float64(x.Instructions)); x.SlowDownLikely != want {
		t.Errorf("%v likely, want %v", x.SlowDownLikely, want)
	}
	s.Figures.SlowDownMost, s.Figures.SlowDownLikely = 8, 9
	if likely := NewStat(s, 0).SlowDownLikely; likely != 8 {
		t.Errorf("%v likely by CPU times, and at most 8", likely)
	}
	s.Figures.SlowDownLikely = 0
	if likely := NewStat(s, 0).SlowDownLikely; likely != 8 {
		t.Errorf("%v likely, and at most 8", likely)
	}
	if most := NewStat(s, 0).SlowDownMost; most != 8 {
		t.Errorf("at most %v, and CPU times tell 8", most)
	}
	s.Figures.CPUTime = 1
	if most := NewStat(s, 0).SlowDownMost; most != 5 {
		t.Errorf("at most %v, and at least 5", most)
	}
	s.Figures.CPUTime, s.Figures.SlowDownMost = 0, 0
	if most := NewStat(s, 0).SlowDownMost; most != 0 {
		t.Errorf("at most %v, and nothing is known", most)
	}
}
