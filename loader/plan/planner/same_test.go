package planner

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
)

// TestPlanIsTheSameOnAllCPUs: routines are recovered and planned side by side, and what comes out
// does not depend on which is done first.
func TestPlanIsTheSameOnAllCPUs(t *testing.T) {
	for _, c := range []struct {
		file    string
		options Options
		weighed bool
	}{
		{"/bin/bash", Options{}, false},
		{"/bin/gzip", Options{Complete: true}, false},
		{"/bin/gzip", Options{EveryRound: true, Distrust: true}, false},
		{"/bin/gzip", Options{}, true},
	} {
		one, eight := planOn(t, 1, c.file, c.options, c.weighed), planOn(t, 8, c.file, c.options,
			c.weighed)
		if !slices.Equal(one, eight) {
			t.Errorf("%s, %+v: on one CPU %d lines, on eight %d, and not the same", c.file,
				c.options, len(one), len(eight))
			for i := range min(len(one), len(eight)) {
				if one[i] != eight[i] {
					t.Fatalf("first %s, then %s", one[i], eight[i])
				}
			}
		}
	}
}

// planOn lists all that a plan made on so many CPUs says.
func planOn(t *testing.T, cpus int, file string, o Options, weighed bool) (lines []string) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cpus))
	program := recoverFile(t, file)
	if weighed {
		o.Weights = someWeights(program)
	}
	p, err := Make(program, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Sites {
		var captures plan.Capture
		if s.Capture != nil {
			captures, s.Capture = *s.Capture, nil
		}
		lines = append(lines, fmt.Sprintf("%+v %+v", s, captures))
	}
	for _, r := range p.Routines {
		lines = append(lines, fmt.Sprint(r.Name, r.LeftOut, r.ProbeFree, r.MayLeaveCallOpen(),
			r.ExternalCallers(), r.LoopsCounted()))
	}
	for at, call := range p.Calls {
		lines = append(lines, fmt.Sprintf("%x %+v", at, call))
	}
	slices.Sort(lines)
	return lines
}

// someWeights are the same at every call.
func someWeights(p *cfg.Program) *Weights {
	random := rand.New(rand.NewPCG(1, 2))
	w := &Weights{Blocks: map[uint64]uint64{}, Entries: map[uint64]uint64{}}
	for _, r := range p.Routines {
		w.Entries[r.Addr] = random.Uint64N(100)
		for b := range r.Blocks {
			w.Blocks[r.Blocks[b].Lo] = random.Uint64N(1000)
		}
	}
	return w
}

func recoverFile(t *testing.T, path string) *cfg.Program {
	t.Helper()
	im, err := image.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { im.Close() })
	program, err := recovery.Recover(im)
	if err != nil {
		t.Fatal(err)
	}
	return program
}
