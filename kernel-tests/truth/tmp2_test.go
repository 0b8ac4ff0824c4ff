package truth_test

import (
	"slices"
	"testing"
	"time"

	"wpptrace/kernel-tests/truth"
	"wpptrace/kernel-tests/zoo"
)

func TestTmpReals(t *testing.T) {
	for _, p := range zoo.Reals() {
		if p.Name == "python3" {
			continue
		}
		path, err := p.Path()
		if err != nil {
			t.Log(err)
			continue
		}
		t0 := time.Now()
		opt := truth.Options{Path: path, Args: p.Args, Stdin: []byte(p.Stdin), Env: zoo.Env(), Dir: t.TempDir(), Limit: 2000000}
		tr, err := truth.Run(t.Context(), opt)
		if err != nil {
			t.Errorf("%s: %v", p.Name, err)
			continue
		}
		tr2, err := truth.Run(t.Context(), opt)
		if err != nil {
			t.Errorf("%s: %v", p.Name, err)
			continue
		}
		out := tr.Stdout
		if len(out) > 60 {
			out = out[:60]
		}
		t.Logf("%-20s threads %d insns %d steps %d exit %d sig %d same %v out %q %q %.1fs", p.Name, len(tr.Threads), tr.Total(), tr.Steps, tr.Exit, tr.Signal, slices.Equal(tr.Threads[0].Insns, tr2.Threads[0].Insns), out, tr.Stderr, time.Since(t0).Seconds()/2)
	}
}
