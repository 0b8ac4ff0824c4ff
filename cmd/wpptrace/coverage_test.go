package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wpptrace/internal/coverage"
	"wpptrace/internal/testenv"
)

// A command's exit status and output are its own; what has run is known of it.
func TestCoverageOfCommand(t *testing.T) {
	program := testenv.CompileC(t, `#include <stdio.h>
int main(int argc, char **argv)
{
	if (argc > 1)
		puts("argument");
	else
		puts("none");
	return 7;
}`, "-g")
	file := filepath.Join(t.TempDir(), "x.info")
	out, errs, status := wpptrace("coverage", "--json", "-q", "--lcov", file, "--", program, "x")
	if status != 7 || out != "" {
		t.Errorf("status %d, stdout %q", status, out)
	}
	var r coverage.Report
	if err := json.Unmarshal([]byte(errs), &r); err != nil {
		t.Fatalf("%v: %s", err, errs)
	}
	if r.Lines.Observed != r.Lines.Ran+1 || len(r.Files) != 1 || len(r.Files[0].NotRun) != 1 ||
		r.Files[0].NotRun[0] != 7 {
		t.Errorf("lines: %+v", r.Files)
	}
	lcov, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"DA:5,1\n", "DA:7,0\n", "BRDA:4,0,0,1\n", "BRDA:4,0,1,0\n"} {
		if !strings.Contains(string(lcov), want) {
			t.Errorf("%q is not in\n%s", want, lcov)
		}
	}
}
