package cfg_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
)

// compile builds a program from C, or from C++ when the flags say -xc++, and returns its path.
func compile(t testing.TB, source string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	compiler, in := "gcc", filepath.Join(dir, "in.c")
	for i, f := range flags {
		if f == "-xc++" {
			compiler, in = "g++", filepath.Join(dir, "in.cc")
			flags = append(flags[:i:i], flags[i+1:]...)
			break
		}
	}
	if err := os.WriteFile(in, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "program")
	args := append([]string{"-w", "-o", out, in}, flags...)
	if b, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", compiler, strings.Join(flags, " "), err, b)
	}
	return out
}

// compileLibrary compiles a shared library and returns the directory that has it.
func compileLibrary(t testing.TB, name, source string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Rename(compile(t, source, "-shared", "-fPIC"), filepath.Join(dir, "lib"+name+".so")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// recoverFile recovers the routines of the file at path.
func recoverFile(t testing.TB, path string) *cfg.Program {
	t.Helper()
	im, err := image.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { im.Close() })
	p, err := cfg.Recover(im)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// routine returns the routine of that symbol.
func routine(t testing.TB, p *cfg.Program, symbol string) *cfg.Routine {
	t.Helper()
	for _, r := range p.Routines {
		if r.Symbol == symbol {
			return r
		}
	}
	t.Fatalf("no routine %s", symbol)
	return nil
}

// ends counts the blocks of a routine by how they end.
func ends(r *cfg.Routine) map[cfg.End]int {
	n := map[cfg.End]int{}
	for b := range r.Blocks {
		n[r.Blocks[b].End]++
	}
	return n
}
