package main

import (
	"fmt"
	"os"
	"time"

	"wpptrace/internal/record"
	"wpptrace/internal/text"
	"wpptrace/loader/attach"
	"wpptrace/loader/requirement"
	"wpptrace/loader/target"
)

// canaryTime is how long the probes of a canary stand.
const canaryTime = 50 * time.Millisecond

// A canary is what a process did while its probes stood for a moment.
type canary struct {
	Seconds  float64
	CPU      float64 // that it used
	Hits     uint64
	SlowDown float64 // CPU time over what it would have been; 0: it did not run
	Vague    bool    // that is the least
	Most     float64 // where it is vague; 0: not known
	Likely   float64 // where it is vague: if one figure is wanted; 0: not known
}

// sendCanary attaches to a process for a moment. What comes is dropped.
func sendCanary(pid int, exe *os.File, program *record.Program) (*canary, error) {
	if _, err := requirement.Privileges(); err != nil {
		return nil, fmt.Errorf("try probes in process %d: %w: %s", pid, err, requirement.PrivilegesFix)
	}
	p, err := target.Open(pid)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	t, err := record.Try(p, exe, program, int(fitRing(attach.DefaultRing, allowedMemory())), canaryTime)
	if err != nil {
		return nil, err
	}
	return &canary{t.Stood.Seconds(), t.CPUTime.Seconds(), t.Hits, t.SlowDown, t.Vague, t.Most, t.Likely}, nil
}

func (c *canary) String() string {
	const least = 50e-6 // s: less rounds to nothing
	switch {
	case c.SlowDown == 0 && c.CPU < least:
		return fmt.Sprintf("not a hit in %.0f ms: it did not run; try again when it does", 1000*c.Seconds)
	case c.SlowDown == 0:
		return fmt.Sprintf("not a hit in %.0f ms: it ran for %.1f ms, but not its own code", 1000*c.Seconds, 1000*c.CPU)
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
	return fmt.Sprintf("slowed down %s, by %d hits in %.0f ms", slower, c.Hits, 1000*c.Seconds)
}
