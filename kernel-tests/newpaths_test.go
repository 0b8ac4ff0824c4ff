package kerneltests

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"wpptrace/internal/coverage"
	"wpptrace/internal/testenv"
	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/zoo"
)

// New paths of programs as the distribution ships them are found, and nothing else: in just those
// routines, and as often, as a recording of the same input has paths that the baseline lacks.
func TestNewPathsOfRealPrograms(t *testing.T) {
	long, short := filepath.Join(t.TempDir(), "long"), filepath.Join(t.TempDir(), "short")
	text := ""
	for i := range 2000 {
		text += fmt.Sprintf("%d %x\n", i*7919%1009, i)
	}
	for file, b := range map[string]string{long: text, short: text[:3000] + "\n\nno end"} {
		if err := os.WriteFile(file, []byte(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("LC_ALL", "C")
	for _, argv := range [][]string{{"gzip", "-kf"}, {"sort", "-o", "/dev/null"},
		{"sed", "-n", "s/a1*/b/g"}} {
		path, err := zoo.Real{Command: argv[0], Package: argv[0]}.Path()
		if err != nil {
			testenv.Missing(t, err)
		}
		with := func(file string) exact.Target {
			target := exact.Target{Path: path, Args: append(slices.Clone(argv[1:]), file),
				Env: zoo.Env()}
			if _, err := target.Run(t.Context()); err != nil { // what it writes is there each time
				t.Fatal(err)
			}
			return target
		}
		newPathsAgree(t, 0, with(long), with(long))
		newPathsAgree(t, 1, with(long), with(short))
	}
}

// newPathsAgree checks that routines of the target run new paths to the baseline. So many at most
// are left out.
func newPathsAgree(t *testing.T, leftOut int, baseline, target exact.Target) {
	t.Helper()
	file, _ := recordOnce(t, baseline)
	known, knownRoutines := ranOf(t, file)
	of, _ := recordOnce(t, target)
	ran, _ := ranOf(t, of)
	want := map[string]uint64{}
	for at, n := range ran {
		if _, ok := knownRoutines[at.entry]; ok && known[at] == 0 {
			want[strconv.FormatUint(at.entry, 16)] += n
		}
	}
	b, err := coverage.ReadBaseline([]string{file})
	if err != nil {
		t.Fatal(err)
	}
	child, err := zoo.Start(append([]string{target.Path}, target.Args...), "")
	if err != nil {
		t.Fatal(err)
	}
	defer child.Process.Close()
	got := map[string]uint64{}
	result, err := coverage.Residual(t.Context(), coverage.ResidualOptions{
		Options: coverage.Options{Child: child}, Paths: true, Baseline: b,
		Found: func(e coverage.Event) {
			if n, ok := e.(*coverage.NewPaths); ok {
				got[n.Address] = n.Executions
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	<-child.Done()
	missing := 0
	for at, n := range want {
		switch {
		case got[at] == 0:
			missing++
		case got[at] != n:
			t.Errorf("%q: the routine at %s ran %d new paths, not %d", target.Args, at, got[at], n)
		}
	}
	if missing > leftOut || len(got) != len(want)-missing || result.NewPaths != len(got) {
		t.Errorf("%q after %q: new paths %v, not %v: %s", target.Args, baseline.Args, got, want,
			result.Text())
	}
	t.Logf("%q after %q: %v", target.Args, baseline.Args, got)
}
