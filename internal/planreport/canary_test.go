package planreport

import (
	"testing"
	"time"

	"wpptrace/internal/record"
)

// A canary whose time nearly all went to hits prints both bounds of the slow-down.
func TestCanaryPrintsBounds(t *testing.T) {
	const stood = 50 * time.Millisecond
	const of = "; of these it ran for 20.0 ms, which are slowed down so, in the kernel and in " +
		"libraries too"
	ran := func(t record.Trial) record.Trial {
		t.Stood, t.Hits, t.CPUTime = stood, 7, 20*time.Millisecond
		return t
	}
	for want, c := range map[string]record.Trial{
		"not a hit in 50 ms: it did not run; try again when it does": {Stood: stood},
		"not a hit in 50 ms: it ran for 0.2 ms, but not its own code": {Stood: stood,
			CPUTime: 200 * time.Microsecond},
		"slowed down 2.5 times, by 7 hits in 50 ms" + of: ran(record.Trial{SlowDown: 2.5}),
		"slowed down at least 5.5 times, at most 700, by 7 hits in 50 ms" + of: ran(
			record.Trial{SlowDown: 5.5, Vague: true, Most: 700}),
		"slowed down at least 5.5 times, by 7 hits in 50 ms" + of: ran(
			record.Trial{SlowDown: 5.5, Vague: true}),
		"slowed down at least 5.5 times, likely some 70, at most 700, by 7 hits in 50 ms" + of: ran(
			record.Trial{SlowDown: 5.5, Vague: true, Most: 700, Likely: 70}),
	} {
		if got := trialText(&c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
