package image

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// install puts the debug information of a program where a distribution does, as if for a build id, and strips the program of it.
func install(t *testing.T, program, id string) (companion string) {
	t.Helper()
	companion = filepath.Join(debugRoot, ".build-id", id[:2], id[2:]+".debug")
	if err := os.MkdirAll(filepath.Dir(companion), 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, "", "objcopy", "--only-keep-debug", program, companion)
	run(t, "", "strip", program)
	return companion
}

// A stripped program with its debug information under /usr/lib/debug has the names and lines that it had.
func TestCompanion(t *testing.T) {
	defer func(root string) { debugRoot = root }(debugRoot)
	debugRoot = t.TempDir()
	program := compile(t, "exceptions.cc", exceptions, "-O2", "-g")
	whole := mustOpen(t, program)
	want, err := whole.Lines()
	if err != nil {
		t.Fatal(err)
	}
	companion := install(t, program, whole.BuildID)
	stripped := mustOpen(t, program)
	if diff := cmp.Diff(whole.Symbols(), stripped.Symbols()); diff != "" {
		t.Errorf("symbols: %s", diff)
	}
	if got, err := stripped.Lines(); err != nil || !slices.Equal(got.rows, want.rows) || !slices.Equal(got.files, want.files) {
		t.Errorf("the lines differ: %v", err)
	}

	// What is not its own, or not whole, is none.
	file, err := os.ReadFile(companion)
	if err != nil {
		t.Fatal(err)
	}
	other := compile(t, "exceptions.cc", exceptions, "-O1", "-g")
	for name, damage := range map[string]func() error{
		"another program's": func() error { install(t, other, whole.BuildID); return nil },
		"cut off":           func() error { return os.WriteFile(companion, file[:len(file)/2], 0o600) },
		"a directory":       func() error { return errors.Join(os.Remove(companion), os.Mkdir(companion, 0o755)) },
		"not there":         func() error { return os.Remove(companion) },
	} {
		os.RemoveAll(companion)
		if err := os.WriteFile(companion, file, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		im := mustOpen(t, program)
		if slices.ContainsFunc(im.Symbols(), func(s Symbol) bool { return !s.Dynamic }) {
			t.Errorf("%s: it is read for symbols", name)
		}
		if _, err := im.Lines(); err == nil || errors.Is(err, ErrNoLines) != (name == "not there") || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: lines: %v", name, err)
		}
	}
}
