package coverage

import (
	"path/filepath"
	"strings"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/covered"
	"wpptrace/compress/wpp/store"
	"wpptrace/loader/target"
)

// coverCommand is what a command runs.
func coverCommand(t *testing.T, argv ...string) *covered.Coverage {
	t.Helper()
	child, err := target.Start(argv)
	if err != nil {
		t.Fatal(err)
	}
	defer child.Process.Close()
	c, err := Run(t.Context(), Options{Child: child})
	if err != nil {
		t.Fatal(err)
	}
	<-child.Done()
	return c
}

// Two runs that run different code are one when their files are read together.
func TestReadFiles(t *testing.T) {
	program := compile(t, "arguments.c", "-O0")
	var files []string
	dir := t.TempDir()
	for _, arg := range []string{"a", "b"} {
		path := filepath.Join(dir, arg+".wpp")
		if err := WriteSnapshot(path, coverCommand(t, program, arg), Origin{}); err != nil {
			t.Fatal(err)
		}
		files = append(files, path)
	}
	lines := func(files ...string) int {
		c, err := ReadFiles(files)
		if err != nil {
			t.Fatal(err)
		}
		return NewReport(c).Lines.Ran
	}
	a, b, both := lines(files[0]), lines(files[1]), lines(files...)
	if both != a+2 || both != b+2 {
		t.Errorf("%d and %d lines ran, and together %d", a, b, both)
	}
	other := filepath.Join(dir, "other.wpp")
	if err := store.WriteFile(other, &wpp.Snapshot{}); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFiles([]string{other}); err == nil ||
		!strings.Contains(err.Error(), "it does not say what has run") {
		t.Errorf("a snapshot of no coverage: %v", err)
	}
}
