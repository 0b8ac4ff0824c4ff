package record

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"wpptrace/internal/testenv"
	"wpptrace/internal/traced"
	"wpptrace/kernel-tests/zoo"
	"wpptrace/loader/attach"
	"wpptrace/loader/target"
)

// BenchmarkLive records busy programs as they run, from the ring buffer through the decoder into
// the grammar: hits a second, of which none may be lost, and the CPU time that the consumer takes
// for each.
func BenchmarkLive(b *testing.B) {
	builder, err := zoo.NewBuilder(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	// for some 2,500,000 hits
	rounds := map[string]int{"many_paths": 1800, "machine": 1100, "switch_dense": 4000,
		"containers": 8000, "callbacks": 1400, "threads": 700}
	for _, p := range zoo.Repeatable() {
		n, ok := rounds[p.Name]
		if !ok {
			continue
		}
		path, err := builder.BuildRepeated(b.Context(), p,
			zoo.Flavour{Compiler: "gcc", Opt: "-O2", PIE: true})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(p.Name, func(b *testing.B) {
			var l live
			for b.Loop() {
				l.record(b, path, fmt.Sprint(n))
			}
			l.report(b)
		})
	}
}

// A live sums up recordings.
type live struct {
	hits, lost          uint64
	took, spent, target time.Duration // on the wall, by the consumer, by the target
	fullest             float64       // the ring buffer, 0 to 1
}

func (l *live) report(b *testing.B) {
	hits := float64(l.hits)
	b.ReportMetric(hits/l.took.Seconds(), "hits/s")
	b.ReportMetric(float64(l.target)/hits, "target-ns/hit")
	b.ReportMetric(float64(l.spent)/hits, "consumer-ns/hit")
	b.ReportMetric(100*l.fullest, "ring-%")
	b.ReportMetric(float64(l.lost), "lost")
	if l.lost > 0 {
		b.Errorf("%d of %d hits lost", l.lost, l.hits)
	}
}

func (l *live) record(b *testing.B, argv ...string) {
	c, err := zoo.Start(argv, "")
	if err != nil {
		b.Fatal(err)
	}
	defer c.Process.Close()
	exe, err := c.Process.Executable()
	if err != nil {
		b.Fatal(err)
	}
	defer exe.Close()
	program, err := traced.Load(exe, c.Process.Name, traced.Selection{})
	if err != nil {
		b.Fatal(err)
	}
	session, err := attach.Load(c.Process, program.Image, program.Plan,
		attach.Options{Ring: attach.DefaultRing})
	if err != nil {
		b.Fatal(err)
	}
	defer session.Close()
	r := newRecorder(b, Options{Child: c, Process: c.Process}, program, session)
	if err := session.Attach(exe); err != nil {
		b.Fatal(err)
	}
	if err := r.Begin(true); err != nil {
		b.Fatal(err)
	}
	l.consume(b, c, r)
}

// consume lets the program run and takes what it does, on one thread.
func (l *live) consume(b *testing.B, c *target.Child, r *Recorder) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began, idle := time.Now(), testenv.ThreadTime()
	c.Release()
	for !c.Process.Wait(0) {
		if err := r.threads.listen(time.Now().Add(tick)); err != nil {
			b.Fatal(err)
		}
		l.fullest = max(l.fullest, r.session.Fill())
	}
	if err := r.threads.drain(b.Context()); err != nil {
		b.Fatal(err)
	}
	l.took += time.Since(began)
	l.spent += testenv.ThreadTime() - idle
	if err := r.finish(b.Context()); err != nil {
		b.Fatal(err)
	}
	used, err := c.Times()
	if err != nil {
		b.Fatal(err)
	}
	l.target += used.CPU
	f := r.figures()
	l.hits += f.Hits
	l.lost += f.Lost
}
