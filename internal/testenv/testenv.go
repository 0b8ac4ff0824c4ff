// Package testenv knows what tests may expect of the machine. Where CI is set, all is installed
// that .ci/run asks for: a test that went without a program would go unnoticed there, and fails.
package testenv

import (
	"os"
	"testing"
)

// Missing ends a test for which something is not installed, as err says: it is skipped.
func Missing(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(err)
	} else {
		t.Skip(err)
	}
}

// Have reports whether there is a file that a test can do without.
func Have(t testing.TB, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal(err)
	}
	return err == nil
}
