package valuetests

import (
	"os/exec"
	"path/filepath"
	"testing"

	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/zoo"
)

// TestValuesOfLibraries: of shared libraries that --lib names the values are those of the truth,
// and what they and the executable pass each other is known.
func TestValuesOfLibraries(t *testing.T) {
	b, err := zoo.NewBuilder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, least := range map[string]float64{"values_one": 0.99, "containers": 0.9} {
		t.Run(name, func(t *testing.T) {
			p, f := zoo.Named(name), zoo.Flavour{Compiler: "gcc", Opt: "-O2", Shared: true}
			path, err := b.Build(t.Context(), p, f)
			if err != nil {
				t.Fatal(err)
			}
			report := prove(t, exact.Target{Path: path, Env: zoo.Env(), FixedAddresses: true,
				Libraries: []string{f.Library(p)}}, 30_000, "-F", ".")
			if isKnown(t, report, least); report.Steps < 4000 {
				t.Errorf("%d instructions", report.Steps)
			}
		})
	}
}

// TestValuesOfBoundStubs: what routines of a library pass each other by stubs is known, and so is
// what memory holds behind them, unless other code comes between.
func TestValuesOfBoundStubs(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{
		{"-shared", "-fPIC", "-Wl,-z,now", "-o", filepath.Join(dir, "libbound.so")},
		{"-shared", "-fPIC", "-DBETWEEN", "-o", filepath.Join(dir, "libbetween.so")},
		{"-DMAIN", "-o", filepath.Join(dir, "bound"), "-L", dir, "-lbound", "-Wl,-rpath,$ORIGIN"},
	} {
		args = append([]string{"-O2", "testdata/bound.c"}, args...)
		out, err := exec.CommandContext(t.Context(), "gcc", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("gcc: %v: %s", err, out)
		}
	}
	target := exact.Target{Path: filepath.Join(dir, "bound"), Env: zoo.Env(),
		FixedAddresses: true, Libraries: []string{"libbound.so"}}
	direct := prove(t, target, 0, "-F", "bound_")
	isKnown(t, direct, 0.995)
	target.Env = append(zoo.Env(), "LD_PRELOAD="+filepath.Join(dir, "libbetween.so"))
	between := prove(t, target, 0, "-F", "bound_")
	if between.Known() >= direct.Known() {
		t.Errorf("%.2f %% are known with other code between, and %.2f %% without",
			100*between.Known(), 100*direct.Known())
	}
}
