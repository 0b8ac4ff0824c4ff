package main

import (
	"strings"
	"testing"
)

// The last line reports losses, also with -q, and --strict makes them the status.
func TestStrict(t *testing.T) {
	args := []string{"-q", "--strict", "--on-overflow", "gap", "--ring-size", "4096", "-o",
		t.TempDir() + "/x.wpp", "--", "bash", "-c", "for ((i = 0; i < 50; i++)); do x=$i; done"}
	_, errs, status := wpptrace(args...)
	if !strings.HasPrefix(errs, "lost: ") || strings.Count(errs, "\n") != 1 ||
		strings.Contains(errs, "lost: 0") {
		t.Errorf("%q", errs)
	}
	if status != exitLost {
		t.Errorf("status %d, want %d", status, exitLost)
	}
}
