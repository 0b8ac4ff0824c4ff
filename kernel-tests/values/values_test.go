package valuetests

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"wpptrace/internal/testenv"
	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/truth"
	"wpptrace/kernel-tests/zoo"
	"wpptrace/loader/guard"
)

// What is made once for all tests: wpptrace, and a directory, which goes with the last of them.
var (
	tracer *exact.Tracer
	work   string
)

// TestMain lets the test binary, started again, be the guard of a session.
func TestMain(m *testing.M) {
	guard.Main()
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	var err error
	if work, err = os.MkdirTemp("", "value-tests"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(work)
	if tracer, err = exact.Build(context.Background(), work); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// TestValuesOfOneRoutine: of the routines of a program that call no library each instruction has
// the values of the truth.
func TestValuesOfOneRoutine(t *testing.T) {
	b, err := zoo.NewBuilder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path, err := b.Build(t.Context(), zoo.Named("values_one"),
		zoo.Flavour{Compiler: "gcc", Opt: "-O2", PIE: true})
	if err != nil {
		t.Fatal(err)
	}
	report := prove(t, exact.Target{Path: path, Env: zoo.Env(), FixedAddresses: true}, "-F",
		"^one_")
	if isKnown(t, report, 0.995); report.Steps < 7000 {
		t.Errorf("%d instructions", report.Steps)
	}
}

// prove fails the test unless each value that is recorded of some routines is that of the truth.
func prove(t *testing.T, target exact.Target, flags ...string) truth.ValueReport {
	t.Helper()
	r, want := runs(t, target, flags...)
	return compare(t, r.Streams, want, r.Routines)
}

// runs are a recorded run, and one that is single-stepped.
func runs(t *testing.T, target exact.Target,
	flags ...string) (r *exact.ValueRecord, want *truth.Trace) {
	t.Helper()
	r, err := tracer.Values(t.Context(), target, flags...)
	if err != nil {
		t.Fatal(err)
	}
	opt := truth.Options{Path: target.Path, Args: target.Args, Env: target.Env, Dir: target.Dir,
		Stdin: target.Stdin, FixedAddresses: true, Values: true, Within: r.Routines}
	again := make(chan *truth.Trace, 1)
	go func() {
		other, err := truth.Run(t.Context(), opt)
		if err != nil {
			t.Error(err)
		}
		again <- other
	}()
	want, err = truth.Run(t.Context(), opt)
	other := <-again
	if err != nil || other == nil {
		t.Fatal(err)
	}
	if err := truth.MarkUnlike(want, other); err != nil {
		t.Fatal(err)
	}
	return r, want
}

// compare fails the test where a value is not that of the truth.
func compare(t *testing.T, got []*truth.ValueStream, want *truth.Trace,
	routines truth.Routines) truth.ValueReport {
	t.Helper()
	report, err := truth.CompareValues(got, want, routines)
	t.Logf("%d instructions: %.2f %% confirmed, %.2f %% unconfirmed, %.2f %% unknown%s",
		report.Steps, share(report.Confirmed, report), share(report.Unconfirmed, report),
		share(report.Unknown, report), places(report, routines))
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func share(n int, r truth.ValueReport) float64 {
	return 100 * float64(n) / float64(max(r.Steps, 1))
}

// places are those of which most is unknown.
func places(r truth.ValueReport, routines truth.Routines) (text string) {
	const most = 12
	list := slices.SortedFunc(maps.Keys(r.ByPlace), func(a, b uint64) int {
		return cmp.Or(cmp.Compare(r.ByPlace[b], r.ByPlace[a]), cmp.Compare(a, b))
	})
	for _, pc := range list[:min(most, len(list))] {
		in, _ := routines.Find(pc)
		text += fmt.Sprintf("\n  %6d unknown at %x, %s+%x", r.ByPlace[pc], pc, in.Name, pc-in.Start)
	}
	return text
}

// TestValuesOfTheZoo: programs of one thread and without handlers, with all routines traced.
func TestValuesOfTheZoo(t *testing.T) {
	b, err := zoo.NewBuilder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, least := range map[string]float64{ // that is known
		"alloca": 0.997, "calculator": 0.7, "computed_goto": 0.995, "containers": 0.79,
		"counted": 0.995, "function_tables": 0.995, "leaves": 0.97, "loops": 0.995,
		"machine": 0.995, "many_paths": 0.995, "mutual": 0.995, "recursion": 0.995, "rep": 0.77,
		"switch_dense": 0.995, "tailcalls": 0.995, "threaded_code": 0.98, "virtuals": 0.95,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, err := b.Build(t.Context(), zoo.Named(name),
				zoo.Flavour{Compiler: "gcc", Opt: "-O2", PIE: true})
			if err != nil {
				t.Fatal(err)
			}
			target := exact.Target{Path: path, Env: zoo.Env(), FixedAddresses: true}
			isKnown(t, prove(t, target), least)
		})
	}
}

// TestValuesOfRealPrograms: programs as the distribution ships them.
func TestValuesOfRealPrograms(t *testing.T) {
	least := map[string]float64{"bash": 0.96, "gzip": 0.995, "sed": 0.93, "sort": 0.97,
		"sqlite3": 0.88} // that is known
	aside := map[string]string{ // what depends on single digits and bytes of process numbers
		"bash": "^(fmtumax|set_job_control)$",
	}
	for _, real := range zoo.Reals() {
		if real.Long {
			continue
		}
		t.Run(real.Name, func(t *testing.T) {
			path, err := real.Path()
			if err != nil {
				testenv.Missing(t, err)
			}
			target := exact.Target{Path: path, Args: real.Args, Env: zoo.Env(),
				Stdin: []byte(real.Stdin), FixedAddresses: true, Dir: t.TempDir()}
			report := prove(t, target, "-F", ".", "--no-func", cmp.Or(aside[real.Name], "^$"))
			isKnown(t, report, least[real.Name])
			if report.Unlike > report.Steps/50 {
				t.Errorf("%d of %d instructions are not alike in two runs", report.Unlike,
					report.Steps)
			}
		})
	}
}

// isKnown fails the test where less is known than that share.
func isKnown(t *testing.T, r truth.ValueReport, least float64) {
	t.Helper()
	if r.Known() < least {
		t.Errorf("%.2f %% are known, and %.2f %% are asked for", 100*r.Known(), 100*least)
	}
}
