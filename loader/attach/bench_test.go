package attach

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"wpptrace/bpf"
	"wpptrace/bpf/wire"
	"wpptrace/kernel-tests/zoo"
	"wpptrace/loader/target"
	"wpptrace/loader/uprobe"
)

// BenchmarkHit measures what a hit costs over whole runs of the zoo, return addresses, activations
// and batches included, beside that of an empty BPF program at the same places. All are CPU times
// of the traced programs, less those of untraced runs. As the machine's speed changes, the three
// runs of a program are short and take turns at being the first, and of each a program counts with
// its median over the rounds. The figures are means over the programs, those called emulated over
// the programs none of whose hits is single-stepped.
func BenchmarkHit(b *testing.B) {
	subjects := benchmarkSubjects(b)
	empty := emptyProgram(b)
	for b.Loop() {
		const rounds = 11
		runs := make([][]round, len(subjects))
		for n := range rounds {
			for i, s := range subjects {
				runs[i] = append(runs[i], s.compare(b, empty, n))
			}
		}
		var all, emulated cost
		for i, s := range subjects {
			m := medians(runs[i])
			all.add(m)
			if !s.stepped {
				emulated.add(m)
			}
		}
		all.report(b, "")
		emulated.report(b, "-emulated")
	}
}

// BenchmarkHitParts measures what each part of a hit costs, ns: over the programs of the zoo none
// of whose hits is single-stepped the difference between hits that end behind that part and those
// that end before it, beside an empty BPF program, trap included. It is as BenchmarkHit is, and its
// figures are means over the programs as well.
func BenchmarkHitParts(b *testing.B) {
	parts := []struct {
		name string
		last bpf.TracerPart
	}{
		{"thread", bpf.TracerPartPART_THREAD}, {"site", bpf.TracerPartPART_SITE},
		{"frame", bpf.TracerPartPART_FRAME}, {"callers", bpf.TracerPartPART_CALLERS},
		{"capture", bpf.TracerPartPART_CAPTURE}, {"output", bpf.TracerPartPART_ALL},
	}
	subjects := slices.DeleteFunc(benchmarkSubjects(b),
		func(s *benchmarkSubject) bool { return s.stepped })
	empty := emptyProgram(b)
	for b.Loop() {
		const rounds = 7
		sums := make([]float64, len(parts)+1) // behind the empty program and each part
		for _, s := range subjects {
			var r round
			runs := []func() time.Duration{s.runUntraced(b), s.runEmpty(b, empty)}
			for _, p := range parts {
				runs = append(runs, func() time.Duration { return s.runTraced(b, p.last, &r) })
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
		b.ReportMetric(sums[0]/float64(len(subjects)), "ns/trap")
		for i, p := range parts {
			b.ReportMetric((sums[i+1]-sums[i])/float64(len(subjects)), "ns/"+p.name)
		}
	}
}

// A cost is what a hit costs, ns, summed over programs.
type cost struct {
	programs, ours, empty float64
}

func (c *cost) add(r round) {
	c.programs++
	c.ours += float64(r.traced-r.untraced) / float64(r.hits)
	c.empty += float64(r.empty-r.untraced) / float64(r.hits)
}

func (c *cost) report(b *testing.B, which string) {
	b.ReportMetric(c.ours/c.programs, "ns/hit"+which)
	b.ReportMetric(c.empty/c.programs, "ns/hit-empty"+which)
	b.ReportMetric(c.ours/c.empty, "ratio"+which)
}

// A benchmarkSubject is a program of the zoo and its plan.
type benchmarkSubject struct {
	planned
	argv    []string
	stepped bool // some of its hits are single-stepped
}

// benchmarkSubjects compiles and plans programs that can do all their work over and over, so often
// that their hits take long enough: those with names, or all.
func benchmarkSubjects(b *testing.B, names ...string) (list []*benchmarkSubject) {
	const emulated, stepped, enough = time.Microsecond, 13 * time.Microsecond, 50 * time.Millisecond
	builder, err := zoo.NewBuilder(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range zoo.Repeatable() {
		if len(names) > 0 && !slices.Contains(names, p.Name) {
			continue
		}
		path, err := builder.BuildRepeated(b.Context(), p,
			zoo.Flavour{Compiler: "gcc", Opt: "-O2", PIE: true})
		if err != nil {
			b.Fatal(err)
		}
		s := &benchmarkSubject{planned: planOf(b, path),
			argv: append([]string{path, "1"}, p.Args...)}
		var once round
		s.runTraced(b, bpf.TracerPartPART_ALL, &once)
		s.argv[1] = fmt.Sprint(1 +
			int(enough/(time.Duration(once.hits-once.stepped)*emulated+
				time.Duration(once.stepped)*stepped+1)))
		s.stepped = once.stepped > 0
		list = append(list, s)
	}
	return list
}

func emptyProgram(b *testing.B) *ebpf.Program {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type:         ebpf.Kprobe,
		AttachType:   ebpf.AttachTraceUprobeMulti,
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
		License:      "MIT",
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { p.Close() })
	return p
}

// A round is what a program took untraced, traced, and with the empty program at each hit.
type round struct {
	untraced, traced, empty time.Duration
	hits, stepped           uint64 // of the traced
}

// compare makes the three runs, beginning with another one each time.
func (s *benchmarkSubject) compare(b *testing.B, empty *ebpf.Program, turn int) (r round) {
	runs := []func(){
		func() { r.untraced = s.runUntraced(b)() },
		func() { r.traced = s.runTraced(b, bpf.TracerPartPART_ALL, &r) },
		func() { r.empty = s.runEmpty(b, empty)() },
	}
	for i := range runs {
		runs[(turn+i)%len(runs)]()
	}
	return r
}

func (s *benchmarkSubject) runUntraced(b *testing.B) func() time.Duration {
	return func() time.Duration {
		return s.run(b, func(*target.Child, *os.File) func() { return func() {} })
	}
}

func (s *benchmarkSubject) runEmpty(b *testing.B, empty *ebpf.Program) func() time.Duration {
	attach := func(c *target.Child, exe *os.File) func() {
		offsets := make([]uint64, len(s.plan.Sites))
		for i := range offsets {
			var ok bool
			if offsets[i], ok = s.image.FileOffset(s.plan.Sites[i].Addr); !ok {
				b.Fatalf("no code in the file at %x", s.plan.Sites[i].Addr)
			}
		}
		l, err := uprobe.Detect().Put(exe, empty, offsets, nil, c.Process.PID)
		if err != nil {
			b.Fatal(err)
		}
		return func() { l.Close() }
	}
	return func() time.Duration { return s.run(b, attach) }
}

// runTraced returns the CPU time of a run whose hits end behind a part, and counts those that do
// not.
func (s *benchmarkSubject) runTraced(b *testing.B, last bpf.TracerPart, r *round) time.Duration {
	return s.runWith(b, Options{Ring: DefaultRing, last: last}, r)
}

// runWith is runTraced with other options.
func (s *benchmarkSubject) runWith(b *testing.B, o Options, r *round) time.Duration {
	return s.run(b, func(c *target.Child, exe *os.File) func() {
		session, err := Load(c.Process, s.image, s.plan, o)
		if err != nil {
			b.Fatal(err)
		}
		if err := session.Attach(exe); err != nil {
			b.Fatal(err)
		}
		if err := session.Enable(true); err != nil {
			b.Fatal(err)
		}
		return func() {
			if o.last == bpf.TracerPartPART_ALL {
				s.count(b, session, r)
			}
			session.Close()
		}
	})
}

// count counts the hits that a session of a process that has ended has reported.
func (s *benchmarkSubject) count(b *testing.B, session *Session, r *round) {
	r.hits, r.stepped = 0, 0
	last := map[uint32]wire.Event{} // of each thread
	eachWaiting(b, session, func(batch wire.Batch) {
		for i := range batch.Len() {
			n, w := uint64(1), batch.Event(i)
			switch w.Kind() {
			case wire.Hit:
				last[batch.Thread] = w
			case wire.Repeat:
				n = w.Value()
			default:
				continue
			}
			r.hits += n
			if s.plan.Sites[last[batch.Thread].Site()].Stepped {
				r.stepped += n
			}
		}
	})
	if m, err := session.Counters().Metrics(); err != nil || m.LostHits > 0 {
		b.Fatalf("metrics %+v, %v", m, err)
	}
}

// run returns the CPU time of a run between attach and the detaching that it returns.
func (s *benchmarkSubject) run(b *testing.B,
	attach func(*target.Child, *os.File) (detach func())) time.Duration {
	c, err := zoo.Start(s.argv, "")
	if err != nil {
		b.Fatal(err)
	}
	defer c.Process.Close()
	exe, err := c.Process.Executable()
	if err != nil {
		b.Fatal(err)
	}
	defer exe.Close()
	detach := attach(c, exe)
	defer detach()
	before, err := c.Times()
	if err != nil {
		b.Fatal(err)
	}
	c.Release()
	<-c.Done()
	after, err := c.Times()
	if err != nil {
		b.Fatal(err)
	}
	return after.Sub(before).CPU
}

// medians of the rounds of one program, each time by itself.
func medians(rounds []round) round {
	of := func(what func(round) time.Duration) time.Duration {
		list := make([]time.Duration, len(rounds))
		for i, r := range rounds {
			list[i] = what(r)
		}
		return median(list)
	}
	return round{
		untraced: of(func(r round) time.Duration { return r.untraced }),
		traced:   of(func(r round) time.Duration { return r.traced }),
		empty:    of(func(r round) time.Duration { return r.empty }),
		hits:     rounds[0].hits,
		stepped:  rounds[0].stepped,
	}
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}
