package query

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"wpptrace/compress/wpp"
)

// TestSlowDownIsWithinBounds: a slow-down that is vague is no more than what so many instructions
// allow, which a reader of the least alone would not guess.
func TestSlowDownIsWithinBounds(t *testing.T) {
	s := compressor()
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

// What is not known is told, and so is that a slow-down may be larger.
func TestWriteStatLimits(t *testing.T) {
	var out bytes.Buffer
	if err := WriteStat(&out, Stat{SlowDown: wpp.MostSlowDown, SampledMost: 0.0123}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\ncommand -\n", "\nstarted -\n", "\nslow_down >=100.000\n", "\nsampled unknown\n", "\nsampled_most 0.0123\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}
