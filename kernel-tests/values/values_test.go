package valuetests

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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
	report := prove(t, exact.Target{Path: path, Env: zoo.Env(), FixedAddresses: true}, 0, "-F",
		"^one_")
	if isKnown(t, report, 0.995); report.Steps < 7000 {
		t.Errorf("%d instructions", report.Steps)
	}
}

// compile compiles a C program of testdata.
func compile(t *testing.T, source string, flags ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), strings.TrimSuffix(source, ".c"))
	args := append(flags, "-o", path, filepath.Join("testdata", source))
	if out, err := exec.CommandContext(t.Context(), "gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v: %s", err, out)
	}
	return path
}

// prove fails the test unless each value that is recorded of some routines is that of the truth.
func prove(t *testing.T, target exact.Target, most int, flags ...string) truth.ValueReport {
	t.Helper()
	r, want := runs(t, target, most, flags...)
	return compare(t, r.Streams, want, r.Routines)
}

// runs are a recorded run, and one that is single-stepped.
func runs(t *testing.T, target exact.Target, most int,
	flags ...string) (r *exact.ValueRecord, want *truth.Trace) {
	t.Helper()
	if os.Getenv("WPPTRACE_SOAK") != "" {
		most = 0
	}
	r, err := tracer.Values(t.Context(), target, most, flags...)
	if err != nil {
		t.Fatal(err)
	}
	opt := truth.Options{Path: target.Path, Args: target.Args, Env: target.Env, Dir: target.Dir,
		Stdin: target.Stdin, FixedAddresses: true, Values: true, Within: r.Routines,
		Most: most, Libraries: target.Libraries}
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
	if len(r.Streams) > 0 && digits(r.Streams[0].TID) != digits(want.Threads[0].TID) {
		return runs(t, target, most, flags...) // programs write their numbers
	}
	return r, want
}

func digits(n int) int { return len(strconv.Itoa(n)) }

// compare fails the test where a value is not that of the truth.
func compare(t *testing.T, got []*truth.ValueStream, want *truth.Trace,
	routines truth.Routines) truth.ValueReport {
	t.Helper()
	report, err := truth.CompareValues(got, want, routines)
	t.Logf("%d instructions: %.2f %% confirmed, %.2f %% unconfirmed, %.2f %% unknown; %d use "+
		"flags, of which %d are known; %d of %d vectors are%s",
		report.Steps, share(report.Confirmed, report), share(report.Unconfirmed, report),
		share(report.Unknown, report), report.Flags, report.KnownFlags, report.KnownVectors,
		report.Vectors, places(report, routines))
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
		"alloca": 0.999, "calculator": 0.995, "callbacks": 0.997, "computed_goto": 0.995,
		"containers": 0.995, "counted": 0.995, "floats": 0.997, "function_tables": 0.995,
		"leaves": 0.995, "loops": 0.995,
		"machine": 0.995, "many_paths": 0.995, "mutual": 0.995, "recursion": 0.995, "rep": 0.995,
		"switch_dense": 0.995, "tailcalls": 0.995, "threaded_code": 0.98, "virtuals": 0.97,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, err := b.Build(t.Context(), zoo.Named(name),
				zoo.Flavour{Compiler: "gcc", Opt: "-O2", PIE: true})
			if err != nil {
				t.Fatal(err)
			}
			target := exact.Target{Path: path, Env: zoo.Env(), FixedAddresses: true}
			isKnown(t, prove(t, target, 0), least)
		})
	}
}

// TestCompleteValues: single-stepped probes show what calls have returned that is overwritten at
// once.
func TestCompleteValues(t *testing.T) {
	b, err := zoo.NewBuilder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path, err := b.Build(t.Context(), zoo.Named("calculator"),
		zoo.Flavour{Compiler: "gcc", Opt: "-O2", PIE: true})
	if err != nil {
		t.Fatal(err)
	}
	target := exact.Target{Path: path, Env: zoo.Env(), FixedAddresses: true}
	isKnown(t, prove(t, target, 0, "--complete"), 0.999)
}

// A real is a program as it is installed, of which some routines are traced.
type real struct {
	exact.Target
	flags []string
	least float64 // that is known
}

// reals are those of the zoo. What depends on the time and on single digits of process numbers is
// left aside.
func reals(t *testing.T) map[string]real {
	t.Helper()
	list := map[string]real{
		"bash": {least: 0.96, flags: []string{"--no-func",
			"^(main|fmtumax|make_variable_value|seedrand|set_ppid|set_job_control)$"}},
		"gzip":    {least: 0.99},
		"lua":     {least: 0.95},
		"sed":     {least: 0.995},
		"sort":    {least: 0.995},
		"sqlite3": {least: 0.985},
		"python3": {least: 0.8, flags: []string{"-F", "^_PyEval_EvalFrameDefault$"}},
	}
	for _, r := range append(zoo.Reals(), zoo.Lua()) {
		x := list[r.Name]
		path, err := r.Path()
		if err != nil {
			testenv.Missing(t, err)
		}
		x.Target = exact.Target{Path: path, Args: r.Args, Stdin: []byte(r.Stdin)}
		list[r.Name] = x
	}
	return list
}

// TestValuesOfRealPrograms: programs as the distribution ships them, the first of what they execute
// and, with WPPTRACE_SOAK=1, all of it.
func TestValuesOfRealPrograms(t *testing.T) {
	for name, x := range reals(t) {
		t.Run(name, func(t *testing.T) {
			x.FixedAddresses, x.Dir = true, t.TempDir()
			x.Env = append(zoo.Env(), "PYTHONHASHSEED=0")
			r, want := runs(t, x.Target, 30_000, x.flags...)
			if name == "bash" && digits(os.Getpid()) != digits(want.Threads[0].TID) {
				t.Skip("it writes its parent's number, of which two runs have other digits now")
			}
			report := compare(t, r.Streams, want, r.Routines)
			isKnown(t, report, x.least)
			if report.Unlike > report.Steps/10 {
				t.Errorf("%d of %d instructions are not alike in two runs", report.Unlike,
					report.Steps)
			}
		})
	}
}

// TestValuesOfStraightCode: code without jumps that loads from more places than a hit can read has
// probes for values alone in between.
func TestValuesOfStraightCode(t *testing.T) {
	target := exact.Target{Path: compile(t, "straight.c", "-O0"), Env: zoo.Env(),
		FixedAddresses: true}
	isKnown(t, prove(t, target, 0, "-F", "main|take|block"), 0.999)
}

// TestValuesOfReversedBytes: where code loads from addresses that follow from numbers whose bytes
// are in the other order.
func TestValuesOfReversedBytes(t *testing.T) {
	target := exact.Target{Path: compile(t, "reversed.c", "-O2"), Env: zoo.Env(),
		FixedAddresses: true}
	isKnown(t, prove(t, target, 0, "-F", "walk"), 0.995)
}

// TestValuesOfReturned: what code that is not traced has returned is known by what is known before
// it.
func TestValuesOfReturned(t *testing.T) {
	target := exact.Target{Path: compile(t, "returned.c", "-O0"), Env: zoo.Env(),
		FixedAddresses: true}
	isKnown(t, prove(t, target, 0, "-F", "returned_"), 0.99)
}

// TestValuesOfHiddenLoads: what is loaded from where no program of a probe computes is known, as is
// what code that is not traced has returned to a routine that returns it.
func TestValuesOfHiddenLoads(t *testing.T) {
	target := exact.Target{Path: compile(t, "hidden.c", "-O0"), Env: zoo.Env(),
		FixedAddresses: true}
	isKnown(t, prove(t, target, 0, "-F", "hidden_|main"), 0.99)
}

// TestValuesOfLibrary: what functions of the C library have returned that only read, and what they
// and those that allocate leave as it is.
func TestValuesOfLibrary(t *testing.T) {
	for _, level := range []string{"-O0", "-O2"} {
		target := exact.Target{Path: compile(t, "library.c", level, "-fno-builtin"), Env: zoo.Env(),
			FixedAddresses: true}
		isKnown(t, prove(t, target, 0, "-F", "library_"), 0.99)
	}
}

// TestValuesOfRust: a program of another compiler, where there is one.
func TestValuesOfRust(t *testing.T) {
	if _, err := exec.LookPath("rustc"); err != nil {
		t.Skip("there is no rustc")
	}
	path := filepath.Join(t.TempDir(), "rust")
	out, err := exec.CommandContext(t.Context(), "rustc", "-O", "-o", path,
		"testdata/values.rs").CombinedOutput()
	if err != nil {
		t.Fatalf("rustc: %v: %s", err, out)
	}
	target := exact.Target{Path: path, Env: zoo.Env(), FixedAddresses: true}
	isKnown(t, prove(t, target, 0, "-F", "rust_|sort"), 0.98)
}

// isKnown fails the test where less is known than that share.
func isKnown(t *testing.T, r truth.ValueReport, least float64) {
	t.Helper()
	if r.Known() < least {
		t.Errorf("%.2f %% are known, and %.2f %% are asked for", 100*r.Known(), 100*least)
	}
}
