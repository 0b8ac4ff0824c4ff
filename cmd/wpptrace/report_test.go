package main

import (
	"strings"
	"testing"

	"wpptrace/internal/record"
	"wpptrace/loader/attach"
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

func TestLossText(t *testing.T) {
	for _, c := range []struct {
		m    attach.Metrics
		when overflow
		want string
		lost bool
	}{
		{attach.Metrics{}, overflowGap, "lost: 0 events", false},
		{attach.Metrics{LostHits: 5, LostBatches: 2}, overflowGap,
			"lost: 5 events in 2 places, where the ring buffer was full: use a larger " +
				"--ring-size than 4K, or --on-overflow stop", true},
		{attach.Metrics{LostHits: 5}, overflowStop,
			"lost: 5 events in 2 places, where the ring buffer was full, and the process was not " +
				"to be stopped, somebody let it go on (a debugger, strace, SIGCONT), or " +
				"thousands of threads ended at once: use a larger --ring-size than 4K", true},
		{attach.Metrics{LostHits: 5, LostByWhom: 1}, overflowGap,
			"lost: 5 events in 2 places or more, too many threads to know of each what it lost, " +
				"where the ring buffer was full: use a larger --ring-size than 4K, or " +
				"--on-overflow stop", true},
		{attach.Metrics{LostHits: 1, Dropped: 1}, overflowStop,
			"lost: 1 events in 2 places, where the kernel could not read what a jump of the " +
				"program was about to read, " +
				"in a page that was not in memory (swapped out, or never touched before): record " +
				"again, or leave the routine out with -N", true},
		{attach.Metrics{LostHits: 5, Dropped: 1}, overflowGap,
			"lost: 5 events in 2 places: 1 where the kernel could not read what a jump of the " +
				"program was about to read, " +
				"in a page that was not in memory (swapped out, or never touched before): record " +
				"again, or leave the routine out with -N; " +
				"the others where the ring buffer was full: use a larger --ring-size than 4K, or " +
				"--on-overflow stop", true},
		{attach.Metrics{NoStorage: 3}, overflowGap, "lost: 3 events for which the kernel had no " +
			"memory", true},
	} {
		if got, lost := lossText(record.Losses{Events: c.m.LostHits, Places: 2, Metrics: c.m},
			&recordFlags{ring: 4096, onOverflow: c.when}); got != c.want || lost != c.lost {
			t.Errorf("%+v: %q, %v; want %q", c.m, got, lost, c.want)
		}
	}
}
