package kerneltests

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"wpptrace/internal/testenv"
	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/zoo"
	"wpptrace/query"
)

// BenchmarkHitsPerPath tells how many hits a path takes in real programs, for each of two inputs: with
// static frequencies, with ones measured on the other input, and, as a bound, on the same one. Medians
// are those of the programs, over both of their inputs, and of all recordings. The numbers are the
// same in every run of the same binaries.
func BenchmarkHitsPerPath(b *testing.B) {
	var static, measured tally
	for _, pair := range zoo.Pairs() {
		b.Run(pair[0].Name, func(b *testing.B) {
			for b.Loop() {
				s, m := hitsPerPath(b, pair)
				static.add(s[:]...)
				measured.add(m[:]...)
			}
		})
	}
	b.Run("median", func(b *testing.B) { reportTallies(b, &static, &measured) })
}

func reportTallies(b *testing.B, static, measured *tally) {
	if len(static.programs) == 0 {
		b.Skip("of nothing: the programs were not chosen")
	}
	for b.Loop() {
		b.ReportMetric(middle(static.programs), "static")
		b.ReportMetric(middle(measured.programs), "measured")
		b.ReportMetric(middle(static.recordings), "static-recordings")
		b.ReportMetric(middle(measured.recordings), "measured-recordings")
		b.ReportMetric(slices.Max(slices.Concat(static.recordings, measured.recordings)), "most")
		b.ReportMetric(100*float64(static.stepped)/float64(static.hits), "%stepped")
	}
}

// BenchmarkHitsPerPathOfZoo tells how many hits a path takes in the programs of the zoo, each in one
// flavour, with static frequencies and with those measured in the same run.
func BenchmarkHitsPerPathOfZoo(b *testing.B) {
	builder, err := zoo.NewBuilder(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	var static, measured tally
	for _, c := range zoo.Cases() {
		b.Run(c.Program.Name, func(b *testing.B) {
			path, err := builder.Build(b.Context(), c.Program, c.Flavour)
			if errors.Is(err, zoo.ErrNotBuildable) {
				b.Skip(err)
			}
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				file := filepath.Join(b.TempDir(), "static")
				target := targetOf(c, path, b.TempDir())
				s := record(b, target, c.Program.Exit, file)
				m := record(b, target, c.Program.Exit, filepath.Join(b.TempDir(), "measured"), "--weights", file)
				b.ReportMetric(s.HitsPerPath, "static")
				b.ReportMetric(m.HitsPerPath, "measured")
				static.add(s)
				measured.add(m)
			}
		})
	}
	b.Run("median", func(b *testing.B) { reportTallies(b, &static, &measured) })
}

// A tally has hits a path, by program and by recording, and all hits.
type tally struct {
	programs, recordings []float64
	hits, stepped        uint64
}

// add takes the recordings of a program.
func (t *tally) add(recordings ...query.Stat) {
	var hits, paths uint64
	for _, s := range recordings {
		t.recordings = append(t.recordings, s.HitsPerPath)
		t.hits, t.stepped = t.hits+s.Hits, t.stepped+s.HitsSingleStepped
		hits, paths = hits+s.Hits, paths+s.Paths
	}
	t.programs = append(t.programs, float64(hits)/float64(paths))
}

// hitsPerPath records a real program with its two inputs, with static frequencies and with those
// measured on the other.
func hitsPerPath(b *testing.B, pair [2]zoo.Real) (static, measured [2]query.Stat) {
	dir := b.TempDir()
	file := func(i int) string { return filepath.Join(dir, "AB"[i:i+1]) }
	for i, real := range pair {
		static[i] = recordReal(b, real, file(i))
	}
	for i, real := range pair {
		measured[i] = recordReal(b, real, filepath.Join(dir, "other"), "--weights", file(1-i))
		own := recordReal(b, real, filepath.Join(dir, "own"), "--weights", file(i))
		b.ReportMetric(static[i].HitsPerPath, "static-"+"AB"[i:i+1])
		b.ReportMetric(measured[i].HitsPerPath, "measured-"+"AB"[i:i+1])
		b.ReportMetric(own.HitsPerPath, "own-"+"AB"[i:i+1])
		b.ReportMetric(100*float64(static[i].HitsSingleStepped)/float64(static[i].Hits), "%stepped-"+"AB"[i:i+1])
	}
	return static, measured
}

// recordReal records a run of a real program into a file, whole.
func recordReal(b *testing.B, real zoo.Real, file string, flags ...string) query.Stat {
	b.Helper()
	path, err := real.Path()
	if err != nil {
		testenv.Missing(b, err)
	}
	target := exact.Target{Path: path, Args: real.Args, Env: append(zoo.Env(), "PYTHONHASHSEED=0", "PERL_HASH_SEED=0"), Stdin: []byte(real.Stdin), FixedAddresses: true}
	return record(b, target, 0, file, flags...)
}

// record records a run of a target into a file, whole.
func record(b *testing.B, target exact.Target, exit int, file string, flags ...string) query.Stat {
	b.Helper()
	outcome, err := tracer.RecordTo(b.Context(), file, target, flags...)
	if err != nil {
		b.Fatal(err)
	}
	if outcome.Exit != exit || len(outcome.Stderr) > 0 && exit == 0 {
		b.Fatalf("%s: exit status %d, %s", target.Path, outcome.Exit, outcome.Stderr)
	}
	s, err := tracer.Stat(b.Context(), file)
	if err != nil {
		b.Fatal(err)
	}
	if s.Lost > 0 {
		b.Fatalf("%s: %d of %d hits lost", target.Path, s.Lost, s.Hits)
	}
	return s
}

func middle(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}
