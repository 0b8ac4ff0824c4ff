package attach

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"wpptrace/bpf"
	"wpptrace/bpf/wire"
	"wpptrace/compress/wet/machine"
	"wpptrace/loader/loads"
	"wpptrace/loader/plan"
)

// editing has sed do something.
const editing = `s/[a-e]\(.\)/\1b/g`

// runWithStates runs a program to its end, and hands over what is read, at once if it is held.
func runWithStates(t *testing.T, o Options, take func(wire.Batch), argv ...string) *subject {
	t.Helper()
	s := loadWith(t, o, argv...)
	if err := s.session.Attach(s.exe); err != nil {
		t.Fatal(err)
	}
	if err := s.session.Enable(true); err != nil {
		t.Fatal(err)
	}
	s.Release()
	for running := true; running; {
		select {
		case <-s.Done():
			running = false
		case <-time.After(time.Millisecond):
			if o.Hold {
				takeAll(t, s, take)
			}
		}
	}
	if err := s.session.Detach(); err != nil {
		t.Fatal(err)
	}
	if err := s.session.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	takeAll(t, s, take)
	return s
}

// takeAll hands over what waits to be read.
func takeAll(t *testing.T, s *subject, take func(wire.Batch)) {
	t.Helper()
	for {
		b, err := s.session.Read(time.Now())
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		take(b)
	}
}

// TestStates: each hit has its state, which comes before its event.
func TestStates(t *testing.T) {
	p := loadsOf(t, "/bin/sed")
	sites := len(p.Base.Sites)
	states, hits, reads, failed := uint64(0), uint64(0), 0, 0
	s := runWithStates(t, Options{Ring: 1 << 24, Loads: p}, func(b wire.Batch) {
		if hits += b.Received(); hits > states {
			t.Fatalf("events of %d hits, states of %d", hits, states)
		}
		first := true
		for s, err := range b.States() {
			if err != nil {
				t.Fatal(err)
			}
			states++
			if s.Ordinal != states || s.Site >= sites {
				t.Fatalf("state %d is of hit %d, of site %d", states, s.Ordinal, s.Site)
			}
			if s.Whole && machine.HashOf((*[16]uint64)(s.Registers)) != s.Hash ||
				first && !s.Whole {
				t.Fatalf("state %d: %+v", states, s)
			}
			first = false
			reads += len(s.Words)
			if s.FailedReads != 0 {
				failed++
			}
		}
	}, "/bin/sed", "-n", editing, "load.go")
	m, err := s.session.Counters().Metrics()
	if err != nil || m != (Metrics{}) {
		t.Errorf("metrics %+v, %v", m, err)
	}
	t.Logf("events of %d hits, states of %d, %d words read, at %d hits not all", hits, states,
		reads, failed)
	if hits < 10_000 || states != hits || reads < 1000 || failed > int(hits)/20 {
		t.Error("are too few, or too many")
	}
}

// TestLooksOfLibraries: where libraries may come the tables of what is read have room for them.
func TestLooksOfLibraries(t *testing.T) {
	s := loadWith(t, Options{Ring: 1 << 20, Shared: true, Loads: loadsOf(t, "/bin/cat")},
		"/bin/cat", "/dev/null")
	x := &s.session.objects
	for _, c := range []struct {
		what string
		has  uint32
		want int
	}{
		{"sites", x.Looks.MaxEntries(), loads.FirstExtra}, {"calls", x.After.MaxEntries(),
			int(x.Calls.MaxEntries())}, {"steps", x.LoadSteps.MaxEntries(), roomForSteps},
	} {
		if int(c.has) != c.want {
			t.Errorf("%s: room for %d, want %d", c.what, c.has, c.want)
		}
	}
}

// TestLostStates: what the ring buffer has no room for is counted.
func TestLostStates(t *testing.T) {
	states := uint64(0)
	o := Options{Ring: os.Getpagesize(), Loads: loadsOf(t, "/bin/sed")}
	s := runWithStates(t, o, func(b wire.Batch) {
		for _, err := range b.States() {
			if err != nil {
				t.Fatal(err)
			}
			states++
		}
	}, "/bin/sed", "-n", editing, "load.go")
	m, err := s.session.Counters().Metrics()
	h, known := s.session.Counters().Losses()
	if err != nil || known != nil || len(h) != 1 || m.LostStates == 0 ||
		m.LostStates+states < h[0].Hits {
		t.Errorf("metrics %+v, %v; losses %+v, %v; %d states", m, err, h, known, states)
	}
}

// TestNoStateIsLost: where the program is held before the ring buffer is full, states have room
// there as events have.
func TestNoStateIsLost(t *testing.T) {
	states, hits := uint64(0), uint64(0)
	o := Options{Ring: 1 << 15, Hold: true, Loads: loadsOf(t, "/bin/sed")}
	s := runWithStates(t, o, func(b wire.Batch) {
		hits += b.Received()
		for _, err := range b.States() {
			if err != nil {
				t.Fatal(err)
			}
			states++
		}
	}, "/bin/sed", "-n", editing, "doc.go")
	m, err := s.session.Counters().Metrics()
	if err != nil || m != (Metrics{}) || states != hits || hits < 1000 {
		t.Errorf("metrics %+v, %v; states of %d of %d hits", m, err, states, hits)
	}
}

// TestProbesForValuesAlone: they make states, and no events.
func TestProbesForValuesAlone(t *testing.T) {
	planned := *loadsOf(t, "/bin/sed")
	p := &planned
	p.Looks = slices.Clone(p.Looks)
	const push = 0x55 // %rbp
	probed := map[uint64]bool{}
	for _, s := range p.Base.Sites {
		probed[s.Addr] = true
	}
	for i, r := range p.Base.Parts[0].Program.Routines {
		at := r.Addr
		code := p.Base.Parts[0].Program.Image.Bytes(at, at+1)
		if len(code) == 1 && code[0] == push && !probed[at] {
			probed[at] = true
			p.Extra = append(p.Extra, loads.Site{Addr: at, Routine: i,
				Condition: plan.NoCondition})
			p.Looks = append(p.Looks, loads.Look{})
		}
	}
	states, events, extra := uint64(0), uint64(0), map[int]uint64{}
	s := runWithStates(t, Options{Ring: 1 << 24, Loads: p}, func(b wire.Batch) {
		events += b.Received()
		for s, err := range b.States() {
			if err != nil {
				t.Fatal(err)
			}
			if s.Site >= loads.FirstExtra {
				extra[s.Site-loads.FirstExtra]++
			} else {
				states++
			}
			if s.Ordinal != states {
				t.Fatalf("a state of hit %d of probe %d behind %d hits", s.Ordinal, s.Site, states)
			}
		}
	}, "/bin/sed", "-n", editing, "load.go")
	var hits uint64
	for i, n := range extra {
		if i >= len(p.Extra) {
			t.Errorf("%d hits of probe %d of %d", n, i, len(p.Extra))
		}
		hits += n
	}
	m, err := s.session.Counters().Metrics()
	if err != nil || m != (Metrics{ValueHits: hits}) || hits < 100 || states != events {
		t.Errorf("%d hits for values alone; states of %d of %d others; %+v, %v", hits, states,
			events, m, err)
	}
}

// BenchmarkLook measures what a state adds to a hit, ns: one of registers alone, what each read
// adds to that where a hit makes 2, 4, 8 or 16, each of 8 bytes of the stack, and each of 16 steps
// that compute. It is as BenchmarkHitParts is.
func BenchmarkLook(b *testing.B) {
	const stack = 4
	read := loads.Step{Op: loads.Fetch, A: stack, B: loads.NoCell, Size: 8}
	sum := loads.Step{Op: loads.Sum, Dst: loads.FirstResult, A: stack, B: loads.NoCell, Size: 8}
	programs := [][]loads.Step{nil, slices.Repeat([]loads.Step{sum}, 16)}
	reads := []int{2, 4, 8, 16}
	for _, n := range reads {
		programs = append(programs, slices.Repeat([]loads.Step{read}, n))
	}
	subjects := benchmarkSubjects(b, "machine", "recursion", "tailcalls")
	for b.Loop() {
		const rounds = 9
		sums := make([]float64, len(programs))
		for _, s := range subjects {
			var r round
			runs := []func() time.Duration{
				func() time.Duration { return s.runTraced(b, bpf.TracerPartPART_ALL, &r) }}
			for _, steps := range programs {
				o := Options{Ring: DefaultRing, Loads: everywhere(s.plan, steps)}
				runs = append(runs, func() time.Duration { return s.runWith(b, o, &round{}) })
			}
			took := make([][]time.Duration, len(runs))
			for n := range rounds {
				for i := range runs {
					i = (i + n) % len(runs)
					took[i] = append(took[i], runs[i]())
				}
			}
			for i := range sums {
				sums[i] += float64(median(took[i+1])-median(took[0])) / float64(r.hits)
			}
		}
		for i := range sums {
			sums[i] /= float64(len(subjects))
		}
		b.ReportMetric(sums[0], "ns/state")
		b.ReportMetric((sums[1]-sums[0])/16, "ns/step-of-16")
		for i, n := range reads {
			b.ReportMetric((sums[2+i]-sums[0])/float64(n), fmt.Sprintf("ns/read-of-%d", n))
		}
	}
}

// everywhere has each hit run the same load program.
func everywhere(p *plan.Plan, steps []loads.Step) *loads.Plan {
	l := &loads.Plan{Base: p, Steps: []loads.Step{{}}}
	first := uint32(0)
	if len(steps) > 0 {
		first = 1
		l.Steps = append(append(l.Steps, steps...), loads.Step{})
	}
	for range p.Sites {
		l.Looks = append(l.Looks, loads.Look{First: [2]uint32{first, first}})
	}
	return l
}
