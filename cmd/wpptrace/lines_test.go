package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSourceLines: the snapshot of a program with debug information has its source lines.
func TestSourceLines(t *testing.T) {
	dir := t.TempDir()
	source, program, snapshot := filepath.Join(dir, "lines.c"), filepath.Join(dir, "lines"), filepath.Join(dir, "lines.wpp")
	const code = "int main(int c, char **v) {\n\tint s = 0;\n\tfor (int i = 0; i < 100; i++)\n\t\tif (i % 3)\n\t\t\ts += i;\n\treturn s == 0;\n}\n"
	if err := os.WriteFile(source, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-g", "-O1", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	var out, errs bytes.Buffer
	if code := run([]string{"-q", "-o", snapshot, "--", program}, &out, &errs); code != 0 {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	if code := run([]string{"hot", "-l", "1", snapshot}, &out, &errs); code != 0 {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	if !strings.Contains(out.String(), "lines.c:") {
		t.Errorf("no source lines:\n%s", &out)
	}
}
