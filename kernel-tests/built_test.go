package kerneltests

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/truth"
	"wpptrace/kernel-tests/zoo"
)

// built is the directory with all that tests run and compare with, on a machine that has no
// compilers and is slow; elsewhere "".
func built() string { return os.Getenv("WPPTRACE_BUILT") }

// buildAll makes such a directory.
func buildAll(dir string) error {
	ctx := context.Background()
	if _, err := exact.Build(ctx, dir); err != nil {
		return err
	}
	builder, err := zoo.NewBuilder(dir)
	if err != nil {
		return err
	}
	for _, c := range midRunCases() {
		path, err := builder.Build(ctx, c.Program, c.Flavour)
		if err != nil {
			return err
		}
		want, err := midRunTruth(ctx, path, targetOf(c, path, "").Libraries)
		if err := errors.Join(err, writeTruth(path, "mid-run", want)); err != nil {
			return err
		}
	}
	var cases []zoo.Case
	for _, c := range zoo.Cases() {
		c.Flavour.Static = false // the C library would be most of what is recorded
		path, err := builder.Build(ctx, c.Program, c.Flavour)
		if errors.Is(err, zoo.ErrNotBuildable) {
			continue
		}
		if err != nil {
			return err
		}
		cases = append(cases, c)
		if c.Program.Has(zoo.Vector) { // it asks which processor it runs on
			continue
		}
		x := expectation(c)
		x.Limit = mostSoak
		want, err := targetOf(c, path, dir).Truth(ctx, x)
		if err := errors.Join(err, writeTruth(path, "whole", want)); err != nil {
			return err
		}
	}
	return builder.List(cases)
}

// newBuilder returns the builder of all tests: it compiles each program once.
var newBuilder = sync.OnceValues(func() (*zoo.Builder, error) {
	dir := filepath.Join(work, "zoo")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	return zoo.NewBuilder(dir)
})

// programs returns a builder and the cases that it is to build: on a machine that has no compilers
// those that have been built before.
func programs(t *testing.T, cases []zoo.Case) (*zoo.Builder, []zoo.Case) {
	t.Helper()
	if built() == "" {
		builder, err := newBuilder()
		if err != nil {
			t.Fatal(err)
		}
		return builder, cases
	}
	builder, all, err := zoo.Built(built())
	if err != nil {
		t.Fatal(err)
	}
	return builder, all
}

// build builds a program of the zoo. The test is skipped where the flavour makes no sense for it.
func build(t *testing.T, builder *zoo.Builder, c zoo.Case) (path string) {
	t.Helper()
	path, err := builder.Build(context.Background(), c.Program, c.Flavour)
	if errors.Is(err, zoo.ErrNotBuildable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// proof compares records of a target with the truth: with that of another test, or of the machine
// that has built it, if there is one, for what most programs of the zoo execute does not depend on
// the machine.
func proof(ctx context.Context, target exact.Target, x exact.Expect) (*exact.Proof, error) {
	if matrix() && built() == "" { // a truth of more steps, or of other arguments
		return exact.Prove(ctx, tracer, target, x)
	}
	want, err := readTruth(target.Path, "whole")
	if errors.Is(err, os.ErrNotExist) {
		return exact.Prove(ctx, tracer, target, x)
	}
	if err != nil {
		return nil, err
	}
	bare, err := target.Run(ctx)
	if err != nil {
		return nil, err
	}
	p, err := exact.ProveAgainst(ctx, tracer, target, x, bare, want)
	if errors.Is(err, exact.ErrInexact) && built() == "" { // it is made again
		return exact.Prove(ctx, tracer, target, x)
	}
	return p, err
}

// writeTruth writes what a program executes in some run beside it.
func writeTruth(path, run string, want *truth.Trace) error {
	f, err := os.Create(path + "." + run)
	if err != nil {
		return err
	}
	return errors.Join(gob.NewEncoder(f).Encode(want), f.Close())
}

func readTruth(path, run string) (*truth.Trace, error) {
	f, err := os.Open(path + "." + run)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	want := &truth.Trace{}
	if err := gob.NewDecoder(f).Decode(want); err != nil {
		return nil, fmt.Errorf("read the truth of %s: %w", path, err)
	}
	return want, nil
}
