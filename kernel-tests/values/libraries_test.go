package valuetests

import (
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
