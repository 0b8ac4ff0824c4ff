//go:build linux && amd64

package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestSteptrace(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("input\n"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	var out, errs bytes.Buffer
	if err := steptrace(t.Context(), r, &out, &errs,
		[]string{"--", "/bin/sh", "-c", "read line; echo got $line; exit 4"}); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(errs.String(), "got input\n") || !strings.Contains(errs.String(),
		"exit 4, signal 0") {
		t.Errorf("standard error %q", errs.String())
	}
	if !regexp.MustCompile(`\A(0 [0-9a-f]+\n){100,}\z`).Match(out.Bytes()) {
		t.Errorf("output is not lines of thread and address: %.80q", out.String())
	}
	if err := steptrace(t.Context(), r, &out, &errs, nil); err == nil {
		t.Error("no program, and no error")
	}
}
