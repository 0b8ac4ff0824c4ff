package kerneltests

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"wpptrace/internal/testenv"
	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/zoo"
	"wpptrace/query"
)

// BenchmarkHitsPerPath tells how many hits a path takes in real programs: with static frequencies,
// with ones measured on the program's other input, and, as a bound, on the same one. A number is
// the same in every run of the same binaries.
func BenchmarkHitsPerPath(b *testing.B) {
	for b.Loop() {
		static, measured := hitsPerPath(b)
		b.ReportMetric(middle(static), "hits/path:static")
		b.ReportMetric(middle(measured), "hits/path:measured")
		b.ReportMetric(slices.Max(append(static, measured...)), "hits/path:most")
	}
}

// hitsPerPath records the pairs of real programs, and returns the figure of each run.
func hitsPerPath(b *testing.B) (static, measured []float64) {
	dir := b.TempDir()
	row := "%-8s %5s %9s %7s %8s %6s %12s"
	b.Logf(row, "PROGRAM", "INPUT", "PATHS", "STATIC", "STEPPED", "OTHER", "OWN")
	for _, pair := range zoo.Pairs() {
		plain := func(i int) string { return filepath.Join(dir, fmt.Sprint(pair[i].Name, i)) }
		var figures [2]query.Stat
		for i, real := range pair {
			figures[i] = recordReal(b, real, plain(i))
		}
		for i, real := range pair {
			other := recordReal(b, real, filepath.Join(dir, "other"), "--weights", plain(1-i))
			own := recordReal(b, real, filepath.Join(dir, "own"), "--weights", plain(i))
			s := figures[i]
			static, measured = append(static, s.HitsPerPath), append(measured, other.HitsPerPath)
			b.Logf(row, real.Name, string("AB"[i]), fmt.Sprint(s.Paths), fmt.Sprintf("%.3f", s.HitsPerPath),
				fmt.Sprintf("%.2f %%", 100*float64(s.HitsSingleStepped)/float64(s.Hits)), fmt.Sprintf("%.3f", other.HitsPerPath), fmt.Sprintf("%.3f", own.HitsPerPath))
		}
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
