package uprobe

import (
	"os"
	"slices"
	"testing"
	"time"

	"wpptrace/internal/testenv"
)

// TestPrimed: a change that follows Prime does not wait for the kernel, as the first one after a
// while does for several ms. The median of some is far below that whatever the machine does
// besides.
func TestPrimed(t *testing.T) {
	m := Detect()
	p, err := m.NewPrimer()
	if err != nil {
		testenv.Missing(t, err)
	}
	defer p.Close()
	const atOnce, tries, pause = 4 * time.Millisecond, 9, 50 * time.Millisecond
	var took []time.Duration
	for range tries {
		if err := p.Prime(2 * renewal); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		probes, err := m.Put(p.file, p.program, []uint64{2, 3, 4}, nil, os.Getpid())
		took = append(took, time.Since(began))
		if err != nil {
			t.Fatal(err)
		}
		if err := probes.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(pause)
	}
	if slices.Sort(took); took[tries/2] > atOnce {
		t.Errorf("changes after Prime took %v", took)
	}
}

// TestPrimerEnds: of what a primer does in the background nothing is left when it is closed, though
// it was to go on for long.
func TestPrimerEnds(t *testing.T) {
	files := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	before := files()
	p, err := Detect().NewPrimer()
	if err != nil {
		testenv.Missing(t, err)
	}
	for range 3 {
		if err := p.Prime(time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if after := files(); after > before {
		t.Errorf("%d files are open, %d were before", after, before)
	}
}

func TestNoPrimerOfEvents(t *testing.T) {
	if _, err := Events.NewPrimer(); err == nil {
		t.Error("a primer where each probe is an event")
	}
}
