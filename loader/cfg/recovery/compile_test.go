package recovery_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
)

// compile builds a program from C, or from C++ when the flags say -xc++, and returns its path.
func compile(t testing.TB, source string, flags ...string) string {
	t.Helper()
	in := filepath.Join(t.TempDir(), "in.c")
	if slices.Contains(flags, "-xc++") {
		in = strings.TrimSuffix(in, ".c") + ".cc"
	}
	if err := os.WriteFile(in, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	flags = slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return f == "-xc++" })
	return build(t, in, flags...)
}

// compileFile builds a program of testdata, from C or, of a file that ends in .cc, from C++, and
// returns its path. What the file includes is in testdata, too.
func compileFile(t testing.TB, name string, flags ...string) string {
	t.Helper()
	return build(t, filepath.Join("testdata", name), append([]string{"-Itestdata"}, flags...)...)
}

// build compiles and links a file, and returns the path of the program.
func build(t testing.TB, in string, flags ...string) string {
	t.Helper()
	compiler, out := "gcc", filepath.Join(t.TempDir(), "program")
	if filepath.Ext(in) == ".cc" {
		compiler = "g++"
	}
	args := append([]string{"-w", "-o", out, in}, flags...)
	if b, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", compiler, strings.Join(args, " "), err, b)
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
	p, err := recovery.Recover(im)
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
