package query

import (
	"testing"
	"time"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/samples"
	"wpptrace/query/querytest"
)

// TestSlowDownIsWithinBounds: a slow-down that is vague is no more than what so many instructions
// allow, which a reader of the least alone would not guess.
func TestSlowDownIsWithinBounds(t *testing.T) {
	s := querytest.Compressor()
	s.Figures.CPUTime, s.Figures.SlowDown = 40*time.Millisecond, 5
	if most := statOf(t, s).SlowDownMost; most != 0 {
		t.Errorf("at most %v, and it is known", most)
	}
	s.Figures.SlowDownVague = true
	x := statOf(t, s)
	if want := 40e6 / (InstructionTime * float64(x.Instructions)); x.SlowDownMost != want {
		t.Errorf("at most %v, want %v", x.SlowDownMost, want)
	}
	if want := 40e6 / (UsualInstructionTime * float64(x.Instructions)); x.SlowDownLikely != want {
		t.Errorf("%v likely, want %v", x.SlowDownLikely, want)
	}
	// a quarter of its time is that of traced routines
	profile := &samples.Profile{Kernel: 600, Files: []samples.File{{Path: "/bin/squeeze",
		Samples: 400, Routines: []samples.InRoutine{{Routine: 0, Samples: 250}}}}}
	s.Sections = append(s.Sections, profile.Section())
	part := statOf(t, s)
	if part.SlowDownLikely != x.SlowDownLikely/4 || part.SlowDownMost < x.SlowDownMost*0.25 ||
		part.SlowDownMost > x.SlowDownMost*0.29 {
		t.Errorf("%v likely, at most %v, of %v and %v", part.SlowDownLikely, part.SlowDownMost,
			x.SlowDownLikely, x.SlowDownMost)
	}
	s.Sections = nil
	s.Figures.SlowDownMost, s.Figures.SlowDownLikely = 8, 9
	if likely := statOf(t, s).SlowDownLikely; likely != 8 {
		t.Errorf("%v likely by CPU times, and at most 8", likely)
	}
	s.Figures.SlowDownLikely = 0
	if likely := statOf(t, s).SlowDownLikely; likely != 8 {
		t.Errorf("%v likely, and at most 8", likely)
	}
	if most := statOf(t, s).SlowDownMost; most != 8 {
		t.Errorf("at most %v, and CPU times show 8", most)
	}
	s.Figures.CPUTime = 1
	if most := statOf(t, s).SlowDownMost; most != 5 {
		t.Errorf("at most %v, and at least 5", most)
	}
	s.Figures.CPUTime, s.Figures.SlowDownMost = 0, 0
	if most := statOf(t, s).SlowDownMost; most != 0 {
		t.Errorf("at most %v, and nothing is known", most)
	}
}

func statOf(t *testing.T, s *wpp.Snapshot) Stat {
	t.Helper()
	x, err := NewStat(s, 0)
	if err != nil {
		t.Fatal(err)
	}
	return x
}
