package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// compileC compiles a program that is called prog.
func compileC(t testing.TB, code string, flags ...string) (path string) {
	t.Helper()
	dir := t.TempDir()
	source, program := filepath.Join(dir, "prog.c"), filepath.Join(dir, "prog")
	if err := os.WriteFile(source, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", append(flags, "-o", program, source)...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return program
}

// TestSourceLines: the snapshot of a program with debug information has its source lines.
func TestSourceLines(t *testing.T) {
	program := compileC(t, "int main(int c, char **v) {\n\tint s = 0;\n\tfor (int i = 0; i < 100; i++)\n\t\tif (i % 3)\n\t\t\ts += i;\n\treturn s == 0;\n}\n", "-g", "-O1")
	snapshot := filepath.Join(t.TempDir(), "x.wpp")
	if _, errs, status := wpptrace("-q", "-o", snapshot, "--", program); status != 0 {
		t.Fatalf("exit %d: %s", status, errs)
	}
	for _, args := range [][]string{{"hot", "-l", "1"}, {"path", "main#0"}} {
		out, errs, status := wpptrace(append(args, snapshot)...)
		if status != 0 || !strings.Contains(out, "prog.c:") {
			t.Errorf("%s: exit %d: %s, no source lines:\n%s", args[0], status, errs, out)
		}
	}
}
