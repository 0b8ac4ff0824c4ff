package follow

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"wpptrace/internal/record"
	"wpptrace/loader/guard"
	"wpptrace/loader/target"
)

// TestMain lets the test binary, started again, be a guard.
func TestMain(m *testing.M) {
	guard.Main()
	os.Exit(m.Run())
}

// What waits for the probes of a recording that is to be replaced goes on when they are out, or
// when the recording has ended, and does not wait when all is to end.
func TestAwaitOut(t *testing.T) {
	if testing.Short() {
		t.Skip("it traces a process")
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	goesOn := t.Context()
	for name, c := range map[string]struct {
		interrupt, abort context.Context
		isOut, hasEnded  bool
		want             bool
	}{
		"they are out":    {goesOn, goesOn, true, false, true},
		"it has ended":    {goesOn, goesOn, false, true, true},
		"interrupted":     {over, goesOn, false, false, false},
		"all is given up": {goesOn, over, false, false, false},
	} {
		one, p := standing(t)
		r := &recorder{options: record.Options{Abort: c.abort}, handle: func(Event) {},
			first: p, shared: &shared{}, running: newRunning(1)}
		if c.isOut {
			one.recorder.Close()
		}
		if c.hasEnded {
			r.running.over <- ending{recording: one}
		}
		if got := r.awaitOut(c.interrupt, one); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// standing is a recording whose probes stand in a command that has not run.
func standing(t *testing.T) (*recording, *target.Process) {
	t.Helper()
	command, err := target.Start([]string{"true"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { command.Kill(); command.Process.Close() })
	r, err := record.Prepare(record.Options{Process: command.Process, Stands: true,
		Output: filepath.Join(t.TempDir(), "x.wpp")}, func(record.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return &recording{recorder: r}, command.Process
}

// A process that is not recorded for the same reason as another is counted, not reported again.
func TestLeaveOutOnceForEachReason(t *testing.T) {
	var events []Event
	r := &recorder{handle: func(e Event) { events = append(events, e) }}
	for pid, why := range []string{"a", "b", "a", "a"} {
		r.leaveOut(pid, "x", errors.New(why))
	}
	result := r.totals.result(0)
	if len(events) != 2 || len(result.Unrecorded) != 2 || result.Unrecorded[0].Processes != 3 ||
		result.Unrecorded[1].Processes != 1 {
		t.Errorf("%d events, %+v", len(events), result)
	}
}
