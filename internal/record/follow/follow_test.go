package follow

import (
	"context"
	"errors"
	"testing"

	"wpptrace/internal/record"
)

// What waits for a recording that is to be replaced does not wait when all is to end.
func TestAwaitOut(t *testing.T) {
	done, cancel := context.WithCancel(t.Context())
	cancel()
	r := &recorder{options: record.Options{Abort: t.Context()}, running: newRunning(1)}
	if r.awaitOut(done, &recording{recorder: &record.Recorder{}}) {
		t.Error("the probes are taken for out")
	}
}

// A process that is not recorded for the same reason as another is counted, not reported again.
func TestLeaveOutOnceForEachReason(t *testing.T) {
	var events []record.Event
	r := &recorder{handle: func(e record.Event) { events = append(events, e) }}
	for pid, why := range []string{"a", "b", "a", "a"} {
		r.leaveOut(pid, "x", errors.New(why))
	}
	result := r.totals.result(0)
	if len(events) != 2 || len(result.Unrecorded) != 2 || result.Unrecorded[0].Processes != 3 ||
		result.Unrecorded[1].Processes != 1 {
		t.Errorf("%d events, %+v", len(events), result)
	}
}
