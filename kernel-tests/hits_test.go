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
// static frequencies, with ones measured on the other input, and, as a bound, on the same one. Medians
// are those of the programs, over both of their inputs, and of all recordings. The numbers are the
// same in every run of the same binaries.
func BenchmarkHitsPerPath(b *testing.B) {
	var static, measured tally
	for _, pair := range zoo.Pairs() {
		b.Run(pair[0].Name, func(b *testing.B) {
			for b.Loop() {
				s, m := hitsPerPath(b, pair)
				static.add(s)
				measured.add(m)
			}
		})
	}
	b.Run("median", func(b *testing.B) {
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
	})
}

// A tally has hits a path, by program and by recording, and all hits.
type tally struct {
	programs, recordings []float64
	hits, stepped        uint64
}

// add takes the recordings of a program.
func (t *tally) add(recordings [2]query.Stat) {
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
