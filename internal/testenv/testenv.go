// Package testenv knows what tests may expect of the machine. Where CI is set, all is installed
// that .ci/run asks for: a test that went without a program would go unnoticed there, and fails.
package testenv

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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

// ThreadTime is the CPU time of the thread so far: what else the machine does is not in it. The
// clock cannot fail.
func ThreadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}
