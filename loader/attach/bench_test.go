package attach

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"wpptrace/bpf/wire"
	"wpptrace/kernel-tests/zoo"
	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
	"wpptrace/loader/target"
	"wpptrace/loader/uprobe"
)

// BenchmarkHit measures what a hit costs over whole runs of the zoo, return addresses, activations and batches included, beside that of an empty BPF program
// at the same places. All are CPU times of the traced programs, less those of untraced runs. As the machine's speed changes, the three runs of a program take
// turns, and of each a program counts with its median over the rounds; figures called emulated are of the programs none of whose hits is single-stepped.
func BenchmarkHit(b *testing.B) {
	subjects := benchmarkSubjects(b)
	empty := emptyProgram(b)
	for b.Loop() {
		const rounds = 5
		runs := make([][]round, len(subjects))
		for range rounds {
			for i, s := range subjects {
				runs[i] = append(runs[i], s.compare(b, empty))
			}
		}
		var all, emulated round
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

// report gives what a hit costs, ns, traced and with the empty program, and the ratio of the two.
func (r *round) report(b *testing.B, which string) {
	ours, empty := float64(r.traced-r.untraced), float64(r.empty-r.untraced)
	b.ReportMetric(ours/float64(r.hits), "ns/hit"+which)
	b.ReportMetric(empty/float64(r.hits), "ns/hit-empty"+which)
	b.ReportMetric(ours/empty, "ratio"+which)
}

// A benchmarkSubject is a program of the zoo and its plan.
type benchmarkSubject struct {
	argv    []string
	image   *image.Image
	plan    *plan.Plan
	stepped bool // some of its hits are single-stepped
}

// benchmarkSubjects compiles and plans programs that can do all their work over and over, so often that each makes enough hits.
func benchmarkSubjects(b *testing.B) (list []*benchmarkSubject) {
	const enough = 50_000
	builder, err := zoo.NewBuilder(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range zoo.Repeatable() {
		path, err := builder.BuildRepeated(b.Context(), p, zoo.Flavour{Compiler: "gcc", Opt: "-O2", PIE: true})
		if err != nil {
			b.Fatal(err)
		}
		s := newSubject(b, append([]string{path, "1"}, p.Args...))
		var once round
		s.runTraced(b, &once)
		s.argv[1] = fmt.Sprint(1 + enough/max(once.hits, 1))
		s.stepped = once.stepped > 0
		list = append(list, s)
	}
	return list
}

func newSubject(b *testing.B, argv []string) *benchmarkSubject {
	im, err := image.OpenFile(argv[0])
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { im.Close() })
	program, err := cfg.Recover(im)
	if err != nil {
		b.Fatal(err)
	}
	p, err := plan.Make(program, plan.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return &benchmarkSubject{argv: argv, image: im, plan: p}
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

// A round is what some programs took untraced, traced, and with the empty program at each hit.
type round struct {
	untraced, traced, empty time.Duration
	hits, stepped           uint64 // of the traced
}

func (r *round) add(o round) {
	r.untraced += o.untraced
	r.traced += o.traced
	r.empty += o.empty
	r.hits += o.hits
	r.stepped += o.stepped
}

func (s *benchmarkSubject) compare(b *testing.B, empty *ebpf.Program) (r round) {
	r.untraced = s.run(b, func(*target.Child, *os.File) func() { return func() {} })
	s.runTraced(b, &r)
	r.empty = s.run(b, func(c *target.Child, exe *os.File) func() {
		offsets := make([]uint64, len(s.plan.Sites))
		for i := range offsets {
			var ok bool
			if offsets[i], ok = s.image.FileOffset(s.plan.Sites[i].Addr); !ok {
				b.Fatalf("no code in the file at %x", s.plan.Sites[i].Addr)
			}
		}
		l, err := uprobe.Here().Put(exe, empty, offsets, nil, c.PID)
		if err != nil {
			b.Fatal(err)
		}
		return func() { l.Close() }
	})
	return r
}

func (s *benchmarkSubject) runTraced(b *testing.B, r *round) {
	r.traced = s.run(b, func(c *target.Child, exe *os.File) func() {
		session, err := Load(c.Process, s.image, s.plan, Options{Ring: DefaultRing})
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
			s.count(b, session, r)
			session.Close()
		}
	})
}

// count counts the hits that a session of a process that has ended has reported.
func (s *benchmarkSubject) count(b *testing.B, session *Session, r *round) {
	last := map[uint32]wire.Word{} // of each thread
	for {
		batch, err := session.Read(time.Now())
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			b.Fatal(err)
		}
		for i := range batch.Len() {
			n, w := uint64(1), batch.Word(i)
			switch w.Kind() {
			case wire.Witness:
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
	}
	if m, err := session.Metrics(); err != nil || m.LostHits > 0 {
		b.Fatalf("metrics %+v, %v", m, err)
	}
}

// run returns the CPU time of a run between attach and the detaching that it returns.
func (s *benchmarkSubject) run(b *testing.B, attach func(*target.Child, *os.File) (detach func())) time.Duration {
	c, err := zoo.Start(s.argv, "")
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	exe, err := c.Executable()
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
		slices.Sort(list)
		return list[len(list)/2]
	}
	return round{
		untraced: of(func(r round) time.Duration { return r.untraced }),
		traced:   of(func(r round) time.Duration { return r.traced }),
		empty:    of(func(r round) time.Duration { return r.empty }),
		hits:     rounds[0].hits,
		stepped:  rounds[0].stepped,
	}
}
