package values_test

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/compress/ops"
	"wpptrace/compress/wet"
	"wpptrace/decoder/code"
	"wpptrace/decoder/values"
	"wpptrace/kernel-tests/truth/states"
)

type nowhere struct{ ops.Sink }

func (nowhere) NewPath(int, uint64, uint64) {}
func (nowhere) Mark(ops.Mark, uint64)       {}

// BenchmarkWalk measures what an instruction costs while its values are recorded: the walk, what
// hits have read, the log.
func BenchmarkWalk(b *testing.B) {
	for _, name := range states.Names() {
		b.Run(name, func(b *testing.B) {
			r := load(b, name)
			c := code.Of(r.plan.Base, nil)
			c.Place(0, r.sample.Trace.Bias)
			rec := values.New(r.plan, c, r.paths, &ops.Symbols{}, nil)
			th := rec.Thread(1, 1, nowhere{})
			batches := r.batches(b)
			again := func() {
				for _, states := range batches {
					rec.Take(states)
				}
				for _, s := range r.symbols {
					th.NewPath(s.routine, s.number, 1)
				}
				th.Mark(ops.Gap, 0)
				th.Gap(0)
			}
			again() // what is met first is decoded
			b.ReportAllocs()
			b.ResetTimer()
			before := cpuTime(b)
			for range b.N {
				again()
			}
			perInsn(b, len(r.steps), before)
		})
	}
}

// BenchmarkReplay measures what one costs when it is asked for.
func BenchmarkReplay(b *testing.B) {
	for _, name := range states.Names() {
		b.Run(name, func(b *testing.B) {
			r := load(b, name)
			s, _ := r.record(b, nil)
			segments, err := wet.Segments(s, 0)
			if err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			before := cpuTime(b)
			for range b.N {
				if err := segments[0].Replay(0, ^uint64(0), unheard{}); err != nil {
					b.Fatal(err)
				}
			}
			perInsn(b, len(r.steps), before)
		})
	}
}

type unheard struct{}

func (unheard) Executed(*wet.Executed) error { return nil }

// cpuTime is what this process has used so far: other processes run at the same time.
func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func perInsn(b *testing.B, steps int, before time.Duration) {
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N)/float64(steps), "cpu-ns/instruction")
}
