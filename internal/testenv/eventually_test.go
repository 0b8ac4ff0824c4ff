package testenv

import (
	"testing"
	"time"
)

func TestEventually(t *testing.T) {
	asked := 0
	Eventually(t, func() bool { asked++; return asked == 3 }, "it is asked for the third time")
	if asked != 3 {
		t.Errorf("it was asked %d times", asked)
	}
	if within(10*time.Millisecond, func() bool { return false }) {
		t.Error("what is never so has become so")
	}
}
