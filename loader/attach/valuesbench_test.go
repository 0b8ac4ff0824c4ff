package attach

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
	"wpptrace/loader/loads"
	"wpptrace/loader/plan/planner"
	"wpptrace/loader/target"
)

// BenchmarkValues measures what values cost real programs beside paths alone: the CPU time that
// tracing adds, states and more probes included, over that of paths of the same routines, and their
// hits over those. "time" and "hits" are beside the plan of a recording of paths,
// "every-round" beside one whose loops have a probe each, as values need it. The runs take turns,
// and of each program each kind counts with its median; what is read of it is not decoded.
func BenchmarkValues(b *testing.B) {
	text := filepath.Join(b.TempDir(), "text")
	var words strings.Builder
	for i := range 1_500 {
		fmt.Fprintln(&words, "line", i*7919%10007, "of", i%97)
	}
	if err := os.WriteFile(text, []byte(words.String()), 0o644); err != nil {
		b.Fatal(err)
	}
	for name, argv := range map[string][]string{
		"gzip": {"/bin/gzip", "-9", "-c", text},
		"sort": {"/usr/bin/sort", text},
		"sed":  {"/bin/sed", "-e", "s/of \\([0-9]*\\)/\\1/", text},
		"bash": {"/bin/bash", "-c",
			"for i in {1..500}; do x=$((i*7%13)); case $x in *9*) y=${x%%9*};; esac; done"},
		"sqlite3": {"/usr/bin/sqlite3", ":memory:", "create table t(a,b);" +
			"with recursive c(i) as (select 1 union all select i+1 from c where i<3000)" +
			"insert into t select i*7919%1009, i from c; select count(*) from t x, t y " +
			"where x.a=y.b and y.a>500;"},
	} {
		b.Run(name, func(b *testing.B) {
			s := valuesSubjectOf(b, argv)
			for b.Loop() {
				s.compareValues(b)
			}
		})
	}
}

type valuesSubject struct {
	benchmarkSubject
	everyRound *loads.Plan // of paths in its Base, of values itself
}

func valuesSubjectOf(b *testing.B, argv []string) *valuesSubject {
	b.Helper()
	im, err := image.OpenFile(argv[0])
	if err != nil {
		b.Fatal(err)
	}
	defer im.Close()
	program, err := recovery.Recover(im)
	if err != nil {
		b.Fatal(err)
	}
	s := &valuesSubject{}
	s.image, s.argv = im, argv
	if s.plan, err = planner.Make(program, planner.Options{}); err != nil {
		b.Fatal(err)
	}
	p, err := planner.Make(program, planner.Options{EveryRound: true})
	if err != nil {
		b.Fatal(err)
	}
	if s.everyRound, err = loads.Make(p, loads.Options{Extra: true}); err != nil {
		b.Fatal(err)
	}
	return s
}

func (s *valuesSubject) compareValues(b *testing.B) {
	const rounds = 5
	kinds := []Options{{Ring: DefaultRing}, {Ring: DefaultRing},
		{Ring: DefaultRing, Loads: s.everyRound}}
	hits := make([]float64, len(kinds))
	took := make([][]time.Duration, len(kinds)+1)
	for n := range rounds {
		for i := range took {
			i = (i + n) % len(took)
			if i == len(kinds) {
				took[i] = append(took[i], s.runUntraced(b)())
				continue
			}
			p := s.everyRound.Base
			if i == 0 {
				p = s.plan
			}
			one := benchmarkSubject{planned: planned{s.image, p}, argv: s.argv}
			cpu, made := one.runRead(b, kinds[i])
			took[i], hits[i] = append(took[i], cpu), float64(made)
		}
	}
	base := median(took[len(kinds)])
	added := func(i int) float64 { return float64(median(took[i]) - base) }
	b.ReportMetric(added(2)/added(0), "time")
	b.ReportMetric(added(2)/added(1), "time-every-round")
	b.ReportMetric(hits[2]/hits[0], "hits")
	b.ReportMetric(hits[2]/hits[1], "hits-every-round")
	b.ReportMetric(added(2)/hits[2], "ns/hit")
	b.ReportMetric(added(0)/hits[0], "ns/hit-paths")
}

// runRead returns the CPU time of a run of which all is read, and its hits.
func (s *benchmarkSubject) runRead(b *testing.B, o Options) (cpu time.Duration, hits uint64) {
	o.Hold = true
	done := make(chan error, 1)
	cpu = s.run(b, func(c *target.Child, exe *os.File) func() {
		session, err := Load(c.Process, s.image, s.plan, o)
		if err == nil {
			err = errors.Join(session.Attach(exe), session.Enable(true))
		}
		if err != nil {
			b.Fatal(err)
		}
		go func() {
			for {
				batch, err := session.Read(time.Now().Add(20 * time.Millisecond))
				if errors.Is(err, os.ErrDeadlineExceeded) {
					select {
					case <-c.Done():
						if session.Fill() == 0 {
							done <- nil
							return
						}
					default:
					}
					continue
				}
				if err != nil {
					done <- err
					return
				}
				hits += batch.Received()
			}
		}()
		return func() {
			if err := <-done; err != nil {
				b.Fatal(err)
			}
			m, err := session.Counters().Metrics()
			if err != nil || m.LostHits > 0 || m.LostStates > 0 {
				b.Fatal(m, err)
			}
			hits += m.ValueHits
			session.Close()
		}
	})
	return cpu, hits
}
