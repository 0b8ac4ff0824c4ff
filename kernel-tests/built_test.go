package kerneltests

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/zoo"
)

// built is the directory with all that tests run, on a machine that has no compilers; elsewhere "".
func built() string { return os.Getenv("WPPTRACE_BUILT") }

// buildAll makes such a directory, for one that is to be built elsewhere.
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
		if _, err := builder.Build(ctx, c.Program, c.Flavour); err != nil {
			return err
		}
	}
	var cases []zoo.Case
	for _, c := range append(zoo.Cases(1), libraryCases()...) {
		c.Flavour.Static = false // the C library would be most of what is single-stepped, and slowly
		_, err := builder.Build(ctx, c.Program, c.Flavour)
		if errors.Is(err, zoo.ErrNotBuildable) {
			continue
		}
		if err != nil {
			return err
		}
		cases = append(cases, c)
	}
	return builder.List(cases)
}

// programs returns a builder and the cases that it is to build: on a machine that has no compilers those of their kind that have been built before.
func programs(t *testing.T, cases []zoo.Case) (*zoo.Builder, []zoo.Case) {
	t.Helper()
	if built() == "" {
		builder, err := zoo.NewBuilder(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return builder, cases
	}
	builder, all, err := zoo.Built(built())
	if err != nil {
		t.Fatal(err)
	}
	return builder, slices.DeleteFunc(all, func(c zoo.Case) bool { return c.Flavour.Shared != cases[0].Flavour.Shared })
}
