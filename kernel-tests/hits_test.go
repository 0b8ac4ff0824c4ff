package kerneltests

import (
	"path/filepath"
	"slices"
	"testing"

	"wpptrace/internal/testenv"
	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/zoo"
	"wpptrace/query"
)

// BenchmarkHitsPerPath tells how many hits a path takes in real programs, for each of two inputs: with
// static frequencies, with ones measured on the other input, and, as a bound, on the same one. The
// numbers are the same in every run of the same binaries.
func BenchmarkHitsPerPath(b *testing.B) {
	var static, measured []float64
	for _, pair := range zoo.Pairs() {
		b.Run(pair[0].Name, func(b *testing.B) {
			var s, m []float64
			for b.Loop() {
				s, m = hitsPerPath(b, pair)
			}
			static, measured = append(static, s...), append(measured, m...)
		})
	}
	b.Run("median", func(b *testing.B) {
		if len(static) == 0 {
			b.Skip("of nothing: the programs were not chosen")
		}
		for b.Loop() {
			b.ReportMetric(middle(static), "static")
			b.ReportMetric(middle(measured), "measured")
			b.ReportMetric(slices.Max(append(static, measured...)), "most")
		}
	})
}

// hitsPerPath records a real program with its two inputs, and returns the figures of both.
func hitsPerPath(b *testing.B, pair [2]zoo.Real) (static, measured []float64) {
	dir := b.TempDir()
	file := func(i int) string { return filepath.Join(dir, "AB"[i:i+1]) }
	var figures [2]query.Stat
	for i, real := range pair {
		figures[i] = recordReal(b, real, file(i))
	}
	for i, real := range pair {
		other := recordReal(b, real, filepath.Join(dir, "other"), "--weights", file(1-i))
		own := recordReal(b, real, filepath.Join(dir, "own"), "--weights", file(i))
		s := figures[i]
		static, measured = append(static, s.HitsPerPath), append(measured, other.HitsPerPath)
		b.ReportMetric(s.HitsPerPath, "static-"+"AB"[i:i+1])
		b.ReportMetric(other.HitsPerPath, "measured-"+"AB"[i:i+1])
		b.ReportMetric(own.HitsPerPath, "own-"+"AB"[i:i+1])
		b.ReportMetric(100*float64(s.HitsSingleStepped)/float64(s.Hits), "%stepped-"+"AB"[i:i+1])
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
	outcome, err := tracer.RecordTo(b.Context(), file, target, flags...)
	if err != nil {
		b.Fatal(err)
	}
	if outcome.Exit != 0 || len(outcome.Stderr) > 0 {
		b.Fatalf("%s: exit status %d, %s", real.Name, outcome.Exit, outcome.Stderr)
	}
	s, err := tracer.Stat(b.Context(), file)
	if err != nil {
		b.Fatal(err)
	}
	if s.Lost > 0 {
		b.Fatalf("%s: %d of %d hits lost", real.Name, s.Lost, s.Hits)
	}
	return s
}

func middle(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}
