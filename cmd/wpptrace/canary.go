package main

import (
	"fmt"
	"os"
	"time"

	"wpptrace/internal/memory"
	"wpptrace/internal/record"
	"wpptrace/internal/text"
	"wpptrace/loader/attach"
	"wpptrace/loader/requirement"
	"wpptrace/loader/target"
)

// canaryTime is how long the probes of a canary stand.
const canaryTime = 50 * time.Millisecond

// sendCanary attaches to a process for a moment. What comes is dropped.
func sendCanary(pid int, exe *os.File, program *record.Program) (*record.Trial, error) {
	if _, err := requirement.Privileges(); err != nil {
		return nil, fmt.Errorf("try probes in process %d: %w: %s", pid, err,
			requirement.PrivilegesFix)
	}
	p, err := target.Open(pid)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return record.Try(p, exe, program, int(fitRing(attach.DefaultRing, memory.Allowed())),
		canaryTime)
}

// canaryText says what a process did while its probes stood for a moment.
func canaryText(c *record.Trial) string {
	const least = 50 * time.Microsecond // less rounds to nothing
	stood := 1000 * c.Stood.Seconds()
	switch {
	case c.SlowDown == 0 && c.CPUTime < least:
		return fmt.Sprintf("not a hit in %.0f ms: it did not run; try again when it does", stood)
	case c.SlowDown == 0:
		return fmt.Sprintf("not a hit in %.0f ms: it ran for %.1f ms, but not its own code", stood,
			1000*c.CPUTime.Seconds())
	}
	slower := times(c.SlowDown)
	if c.Vague {
		slower = "at least " + slower
	}
	if c.Likely > 0 {
		slower += ", likely some " + text.Factor(c.Likely)
	}
	if c.Most > 0 {
		slower += ", at most " + text.Factor(c.Most)
	}
	return fmt.Sprintf("slowed down %s, by %d hits in %.0f ms", slower, c.Hits, stood)
}
