package zoo

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What was built in one place is found in another, and nothing else is.
func TestBuilt(t *testing.T) {
	dir := t.TempDir()
	b, err := NewBuilder(dir)
	if err != nil {
		t.Fatal(err)
	}
	cases := []Case{{Named("empty"), Flavour{Compiler: "gcc", Opt: "-O1", PIE: true}}}
	want, err := b.Build(t.Context(), cases[0].Program, cases[0].Flavour)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.List(cases); err != nil {
		t.Fatal(err)
	}
	built, got, err := Built(dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(cases, got); d != "" {
		t.Error(d)
	}
	if path, err := built.Build(t.Context(), got[0].Program, got[0].Flavour); err != nil ||
		path != want {
		t.Errorf("built %q, %v; want %q", path, err, want)
	}
	if path, err := built.Build(t.Context(), Named("loops"), got[0].Flavour); err == nil ||
		errors.Is(err, ErrNotBuildable) {
		t.Errorf("what was not built: %q, %v", path, err)
	}
	if _, _, err := Built(t.TempDir()); err == nil {
		t.Error("a directory without a list is taken")
	}
}
