//go:build linux

package verify_test

import (
	"context"
	"testing"

	"wpptrace/kernel-tests/zoo"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
	"wpptrace/loader/plan/planner"
	"wpptrace/loader/plan/verify"
)

// TestPlansOfTheZooAreProven, of each program as the compiler makes it at one of two levels.
func TestPlansOfTheZooAreProven(t *testing.T) {
	b, err := zoo.NewBuilder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i, program := range zoo.Programs() {
		t.Run(program.Name, func(t *testing.T) {
			path, err := b.Build(context.Background(), program,
				zoo.Flavour{Compiler: "gcc", Opt: []string{"-O0", "-O2"}[i%2], PIE: true})
			if err != nil {
				t.Fatal(err)
			}
			proveFile(t, path)
		})
	}
}

// proveFile proves both plans of the program at a path.
func proveFile(t *testing.T, path string) {
	t.Helper()
	im, err := image.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	c, err := recovery.Recover(im)
	if err != nil {
		t.Fatal(err)
	}
	for _, complete := range []bool{false, true} {
		p, err := planner.Make(c, planner.Options{Complete: complete})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range verify.Plan(p) {
			t.Errorf("complete %v: %s", complete, f)
		}
	}
}
