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

// BenchmarkHitsPerPath says how many hits a path takes and how many of them are single-stepped: in
// real programs, each with two inputs, with static frequencies, with ones measured on the other
// input and, as a bound, on the same one; in the programs of the zoo, each in one flavour, with
// static frequencies and with those measured in the same run; and in all of these together. Medians
// are those of the programs, over both of their inputs, and of all recordings. The numbers are the
// same in every run of the same binaries.
func BenchmarkHitsPerPath(b *testing.B) {
	var all tallies
	b.Run("real", func(b *testing.B) { all.addReals(b) })
	b.Run("zoo", func(b *testing.B) { all.addZoo(b) })
	b.Run("all", all.report)
}

// Tallies are those of recordings with static frequencies and with measured ones.
type tallies struct{ static, measured tally }

// A tally has hits a path, by program and by recording, and all hits.
type tally struct {
	programs, recordings []float64
	hits, stepped        uint64
}

func (t *tallies) addReals(b *testing.B) {
	var reals tallies
	for _, pair := range zoo.Pairs() {
		b.Run(pair[0].Name, func(b *testing.B) {
			var static, measured, own [2]query.Stat
			for b.Loop() {
				static, measured, own = recordPair(b, pair)
			}
			for i, input := range []string{"A", "B"} {
				b.ReportMetric(static[i].HitsPerPath, "static-"+input)
				b.ReportMetric(measured[i].HitsPerPath, "measured-"+input)
				b.ReportMetric(own[i].HitsPerPath, "own-"+input)
				b.ReportMetric(percentStepped(static[i].HitsSingleStepped, static[i].Hits),
					"%stepped-"+input)
			}
			reals.add(static[:], measured[:])
			t.add(static[:], measured[:])
		})
	}
	b.Run("median", reals.report)
}

func (t *tallies) addZoo(b *testing.B) {
	builder, err := zoo.NewBuilder(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	var programs tallies
	for _, c := range zoo.Cases() {
		b.Run(c.Program.Name, func(b *testing.B) {
			path, err := builder.Build(b.Context(), c.Program, c.Flavour)
			if errors.Is(err, zoo.ErrNotBuildable) {
				b.Skip(err)
			}
			if err != nil {
				b.Fatal(err)
			}
			var static, measured query.Stat
			for b.Loop() {
				file := filepath.Join(b.TempDir(), "static")
				target := targetOf(c, path, b.TempDir())
				static = record(b, target, c.Program.Exit, file)
				measured = record(b, target, c.Program.Exit, filepath.Join(b.TempDir(), "measured"),
					"--weights", file)
			}
			b.ReportMetric(static.HitsPerPath, "static")
			b.ReportMetric(measured.HitsPerPath, "measured")
			b.ReportMetric(percentStepped(static.HitsSingleStepped, static.Hits), "%stepped")
			programs.add([]query.Stat{static}, []query.Stat{measured})
			t.add([]query.Stat{static}, []query.Stat{measured})
		})
	}
	b.Run("median", programs.report)
}

// add takes the recordings of a program.
func (t *tallies) add(static, measured []query.Stat) {
	t.static.add(static)
	t.measured.add(measured)
}

func (t *tally) add(recordings []query.Stat) {
	var hits, paths uint64
	for _, s := range recordings {
		t.recordings = append(t.recordings, s.HitsPerPath)
		t.stepped += s.HitsSingleStepped
		hits, paths = hits+s.Hits, paths+s.Paths
	}
	t.hits += hits
	t.programs = append(t.programs, float64(hits)/float64(max(paths, 1)))
}

func (t *tallies) report(b *testing.B) {
	if len(t.static.programs) == 0 {
		b.Skip("of nothing: the programs were not chosen")
	}
	b.ReportMetric(float64(len(t.static.programs)), "programs")
	b.ReportMetric(middle(t.static.programs), "static")
	b.ReportMetric(middle(t.measured.programs), "measured")
	b.ReportMetric(middle(t.static.recordings), "static-recordings")
	b.ReportMetric(middle(t.measured.recordings), "measured-recordings")
	b.ReportMetric(slices.Max(slices.Concat(t.static.recordings, t.measured.recordings)), "most")
	b.ReportMetric(percentStepped(t.static.stepped, t.static.hits), "%stepped")
	b.ReportMetric(percentStepped(t.measured.stepped, t.measured.hits), "%stepped-measured")
	b.ReportMetric(0, "ns/op") // not that
}

func percentStepped(stepped, hits uint64) float64 {
	return 100 * float64(stepped) / float64(max(hits, 1))
}

// recordPair records a real program with its two inputs: with static frequencies, with those
// measured on the other, and on the same.
func recordPair(b *testing.B, pair [2]zoo.Real) (static, measured, own [2]query.Stat) {
	dir := b.TempDir()
	file := func(i int) string { return filepath.Join(dir, "AB"[i:i+1]) }
	for i, real := range pair {
		static[i] = recordReal(b, real, file(i))
	}
	for i, real := range pair {
		measured[i] = recordReal(b, real, filepath.Join(dir, "other"), "--weights", file(1-i))
		own[i] = recordReal(b, real, filepath.Join(dir, "own"), "--weights", file(i))
	}
	return static, measured, own
}

// recordReal records a run of a real program into a file, whole.
func recordReal(b *testing.B, real zoo.Real, file string, flags ...string) query.Stat {
	b.Helper()
	path, err := real.Path()
	if err != nil {
		testenv.Missing(b, err)
	}
	target := exact.Target{Path: path, Args: real.Args,
		Env: append(zoo.Env(), "PYTHONHASHSEED=0", "PERL_HASH_SEED=0"), Stdin: []byte(real.Stdin),
		FixedAddresses: true}
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
