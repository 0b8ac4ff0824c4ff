package coverage

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"wpptrace/internal/testenv"
)

// lcov reads the file, and makes no change of it, and genhtml makes pages of it.
func TestLCOVIsAccepted(t *testing.T) {
	for _, tool := range []string{"lcov", "genhtml"} {
		if _, err := exec.LookPath(tool); err != nil {
			testenv.Missing(t, err)
		}
	}
	c := coverCommand(t, compile(t, "exceptions.cc", "-O1"))
	file := filepath.Join(t.TempDir(), "x.info")
	if err := WriteFile(file, c, WriteLCOV); err != nil {
		t.Fatal(err)
	}
	patch := filepath.Join(t.TempDir(), "x.diff")
	if err := os.WriteFile(patch, []byte("--- a/other.c\n+++ b/other.c\n@@ -1 +1 @@\n-a\n+b\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"lcov", "--rc", "lcov_branch_coverage=1", "--summary", file},
		{"lcov", "--diff", file, patch, "-o", file + ".new"},
		{"genhtml", "--branch-coverage", "-o", filepath.Join(t.TempDir(), "html"), file},
	} {
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", args[0], err, out)
		}
		for _, kind := range []string{"lines", "functions", "branches"} {
			if args[1] != "--diff" && !strings.Contains(string(out), kind) {
				t.Errorf("%s says nothing of %s:\n%s", args[0], kind, out)
			}
		}
		for line := range strings.Lines(string(out)) {
			if strings.Contains(strings.ToLower(line), "warning") {
				t.Errorf("%s: %s", args[0], line)
			}
		}
	}
}
