package attach

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
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
		"python3": {"/usr/bin/python3", "-S", "-c",
			"d={}\nfor i in range(20000): d[i*7919%1009]=d.get(i%97,'')[:9]+str(i)"},
		"lua": {"/usr/bin/lua5.4", "-e", "local t={} for i=1,2500 do t[i]=i*7919%10007 end " +
			"table.sort(t,function(a,b) return a<b end) print(#table.concat(t,','))"},
		"sqlite3": {sqlite(b), "create table t(a,b);" +
			"with recursive c(i) as (select 1 union all select i+1 from c where i<1500)" +
			"insert into t select i*7919%1009, i from c; select count(*) from t x, t y " +
			"where x.a=y.b and y.a>800;"},
	} {
		b.Run(name, func(b *testing.B) {
			if _, err := os.Stat(argv[0]); err != nil {
				b.Skip(err)
			}
			s := valuesSubjectOf(b, argv)
			for b.Loop() {
				s.compareValues(b)
			}
		})
	}
}

// sqlite returns a program that is linked with the archive of sqlite3 and executes its argument;
// "" where there is none.
func sqlite(b *testing.B) string {
	const source = `#include <sqlite3.h>
		int main(int n, char **of) {
			sqlite3 *db;
			return sqlite3_open(":memory:", &db) || sqlite3_exec(db, of[1], 0, 0, 0);
		}`
	path := filepath.Join(b.TempDir(), "sqlite")
	gcc := exec.Command("gcc", "-O2", "-o", path, "-xc", "-", "-xnone", "-l:libsqlite3.a", "-lm",
		"-lz", "-lpthread", "-ldl")
	gcc.Stdin = strings.NewReader(source)
	if out, err := gcc.CombinedOutput(); err != nil {
		b.Logf("sqlite3 is left out: %v: %s", err, out)
		return ""
	}
	return path
}

type valuesSubject struct {
	benchmarkSubject
	everyRound *loads.Plan // of paths in its Base, of values itself
}

func valuesSubjectOf(b *testing.B, argv []string) *valuesSubject {
	b.Helper()
	path, err := filepath.EvalSymlinks(argv[0])
	if err != nil {
		b.Fatal(err)
	}
	im, err := image.OpenFile(path)
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
	const rounds = 3
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
