//go:build linux && cgo

package states_test

import (
	"slices"
	"testing"

	"wpptrace/bpf/wire"
	"wpptrace/compress/wet/machine"
	"wpptrace/kernel-tests/truth"
	"wpptrace/kernel-tests/truth/states"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
	"wpptrace/loader/loads"
	"wpptrace/loader/plan/planner"
)

// planOf plans a sample as values are recorded.
func planOf(t *testing.T, s *states.Sample) *loads.Plan {
	t.Helper()
	path, err := s.Install(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	im, err := image.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	c, err := recovery.Recover(im)
	if err != nil {
		t.Fatal(err)
	}
	p, err := planner.Make(c, planner.Options{EveryRound: true})
	if err != nil {
		t.Fatal(err)
	}
	l, err := loads.Make(p, loads.Options{Extra: true})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestRecordsAreOfTheRun: each hit of the run has an event and, before it, a state, with the
// registers of the run.
func TestRecordsAreOfTheRun(t *testing.T) {
	for _, name := range states.Names() {
		t.Run(name, func(t *testing.T) {
			s, err := states.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			p := planOf(t, s)
			records, err := s.Records(p)
			if err != nil {
				t.Fatal(err)
			}
			next := hits(s, p)
			var sites []int
			events, seen, alone, whole := uint64(0), 0, 0, 0 // alone: for values
			for _, record := range records {
				b, err := wire.ParseBatch(record)
				if err != nil {
					t.Fatal(err)
				}
				events += b.Received()
				if int(events) > seen-alone {
					t.Fatalf("%d events, and %d states before them", events, seen)
				}
				if !b.HasStates() {
					continue
				}
				for state, err := range b.States() {
					if err != nil {
						t.Fatal(err)
					}
					site, registers := next()
					if seen++; site >= loads.FirstExtra {
						alone++
					}
					sites = append(sites, state.Site)
					if state.Site != site || int(state.Ordinal) != seen-alone {
						t.Fatalf("state %d of hit %d is of site %d, the run's of %d", seen,
							state.Ordinal, state.Site, site)
					}
					general := [16]uint64(registers[:16])
					if state.Hash != machine.HashOf(&general) {
						t.Fatalf("state %d has another hash", seen)
					}
					if state.Whole {
						whole++
						if !slices.Equal(state.Registers, registers[:]) {
							t.Fatalf("state %d has other registers", seen)
						}
					}
				}
			}
			if site, _ := next(); site >= 0 || seen == 0 || whole == 0 ||
				events != uint64(seen-alone) {
				t.Errorf("%d states, %d whole, of %d events", seen, whole, events)
			}
		})
	}
}

// hits are the hits of the run, one after the other: the cookie, -1 behind the last, and the
// general registers with the base of fs.
func hits(s *states.Sample, p *loads.Plan) func() (int, [17]uint64) {
	sites := map[uint64]int{}
	for i := range p.Base.Sites {
		sites[p.Base.Sites[i].Addr] = i
	}
	for i := range p.Extra {
		sites[p.Extra[i].Addr] = loads.FirstExtra + i
	}
	steps := s.Trace.Threads[0].Values
	var r truth.Replay
	return func() (int, [17]uint64) {
		for len(steps) > 0 {
			step := &steps[0]
			steps = steps[1:]
			r.Before(step)
			registers := [17]uint64(r.Registers[:17])
			r.After(step)
			if site, ok := sites[step.PC]; ok {
				return site, registers
			}
		}
		return -1, [17]uint64{}
	}
}
