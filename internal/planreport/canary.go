package planreport

import (
	"fmt"
	"time"

	"wpptrace/internal/record"
	"wpptrace/internal/record/overhead"
	"wpptrace/internal/text"
)

// A Canary is what a process did while its probes stood for a moment.
type Canary struct {
	Seconds float64 `json:"seconds"`     // that the probes stood
	CPU     float64 `json:"cpu_seconds"` // that the process used meanwhile
	Hits    uint64  `json:"hits"`        // of its probes
	// CPU time over what it would have been; null: it did not run
	SlowDown *float64 `json:"slow_down"`
	Vague    bool     `json:"slow_down_vague"` // slow_down is the least
	Most     *float64 `json:"slow_down_most"`  // where it is vague; null: not known
	// where it is vague: if one figure is wanted; null: not known
	Likely *float64 `json:"slow_down_likely"`
}

func newCanary(t *record.Trial) *Canary {
	known := func(figure float64) *float64 {
		if figure == 0 {
			return nil
		}
		return &figure
	}
	return &Canary{t.Stood.Seconds(), t.CPUTime.Seconds(), t.Hits, known(t.SlowDown), t.Vague,
		known(t.Most), known(t.Likely)}
}

// trialText says what a process did while its probes stood for a moment.
func trialText(t *record.Trial) string {
	const least = 50 * time.Microsecond // less rounds to nothing
	stood := 1000 * t.Stood.Seconds()
	switch {
	case t.SlowDown == 0 && t.CPUTime < least:
		return fmt.Sprintf("not a hit in %.0f ms: it did not run; try again when it does", stood)
	case t.SlowDown == 0:
		return fmt.Sprintf("not a hit in %.0f ms: it ran for %.1f ms, but not its own code", stood,
			1000*t.CPUTime.Seconds())
	}
	slower := overhead.Times(t.SlowDown)
	if t.Vague {
		slower = "at least " + slower
	}
	if t.Likely > 0 {
		slower += ", likely some " + text.Factor(t.Likely)
	}
	if t.Most > 0 {
		slower += ", at most " + text.Factor(t.Most)
	}
	return fmt.Sprintf("slowed down %s, by %d hits in %.0f ms; of these it ran for %.1f ms, which "+
		"are slowed down so, in the kernel and in libraries too", slower, t.Hits, stood,
		1000*t.CPUTime.Seconds())
}
