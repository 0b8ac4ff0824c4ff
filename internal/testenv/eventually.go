package testenv

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// Patience is how long Eventually waits: what takes longer has failed, however busy the machine is.
// With make soak tests do more, and it is longer.
var Patience = patience()

func patience() time.Duration {
	if os.Getenv("WPPTRACE_SOAK") != "" {
		return time.Hour
	}
	return 2 * time.Minute
}

// Eventually waits until something is so, which it asks every millisecond. Where it is not so
// within Patience, the test ends, and says what it has waited for. It is called by the test's
// goroutine.
func Eventually(t testing.TB, is func() bool, what string, args ...any) {
	t.Helper()
	if !within(Patience, is) {
		t.Fatalf("%v are over, but not: %s", Patience, fmt.Sprintf(what, args...))
	}
}

// within reports whether something has become so in time.
func within(patience time.Duration, is func() bool) bool {
	for began := time.Now(); !is(); time.Sleep(time.Millisecond) {
		if time.Since(began) > patience {
			return false
		}
	}
	return true
}
