package main

import (
	"errors"
	"strings"
	"testing"

	"wpptrace/loader/requirement"
)

// What is missing is printed with the fix, and nothing hides what comes after it.
func TestCheckReport(t *testing.T) {
	r := checkReport{OK: true}
	r.add([]requirement.Requirement{
		{Name: "one", Find: func() (string, error) { return "fine", nil }, Fix: "never printed"},
		{Name: "two", Find: func() (string, error) { return "", errors.New("broken") },
			Fix: "mend it"},
		{Name: "three", Find: func() (string, error) { return "fine", nil }, Fix: ""},
		{Name: "four", Find: func() (string, error) { return "", requirement.ErrUnknown },
			Fix: "never printed"},
	}...)
	var out strings.Builder
	if err := r.write(&out, false); err != nil {
		t.Fatal(err)
	}
	const want = "ok       one              fine\nmissing  two              broken: mend it\nok  " +
		"     three            fine\n" +
		"unknown  four             not known without privileges: run wpptrace as root\n"
	if out.String() != want || r.OK {
		t.Errorf("%q, ok %v; want %q", out.String(), r.OK, want)
	}
}
