package truth_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"wpptrace/kernel-tests/truth"
	"wpptrace/kernel-tests/zoo"
)

func TestTmpCounts(t *testing.T) {
	dir := t.TempDir()
	b, err := zoo.NewBuilder(dir)
	if err != nil {
		t.Fatal(err)
	}
	only := os.Getenv("ONLY")
	static := os.Getenv("STATIC") != ""
	for _, p := range zoo.Programs() {
		if only != "" && p.Name != only {
			continue
		}
		path, err := b.Build(t.Context(), p, zoo.Flavour{Compiler: "gcc", Opt: "-O0", PIE: true, Static: static})
		if err != nil {
			t.Log(err)
			continue
		}
		opt := truth.Options{Path: path, Args: p.Args, Env: zoo.Env(), Dir: dir, FixedAddresses: static, Limit: 2000000}
		t0 := time.Now()
		tr, err := truth.Run(t.Context(), opt)
		if err != nil {
			t.Errorf("%s: %v", p.Name, err)
			continue
		}
		d := time.Since(t0)
		tr2, err := truth.Run(t.Context(), opt)
		if err != nil {
			t.Fatal(err)
		}
		ev := 0
		for _, th := range tr.Threads {
			ev += len(th.Events)
		}
		t.Logf("%-20s threads %d insns %d steps %d exit %d sig %d events %d out %q %.1fs", p.Name, len(tr.Threads), tr.Total(), tr.Steps, tr.Exit, tr.Signal, ev, tr.Stdout, d.Seconds())
		if tr.Exit != p.Exit {
			t.Errorf("%s: exit %d want %d", p.Name, tr.Exit, p.Exit)
		}
		for i, th := range tr.Threads {
			if i < len(tr2.Threads) && !slices.Equal(th.Insns, tr2.Threads[i].Insns) && !p.Has(zoo.Timer) {
				t.Errorf("%s: thread %d differs from run to run %d %d", p.Name, i, len(th.Insns), len(tr2.Threads[i].Insns))
			}
		}
	}
}
