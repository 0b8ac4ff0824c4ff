package main

import (
	"fmt"
	"os"
	"time"

	"wpptrace/internal/memory"
	"wpptrace/internal/record"
	"wpptrace/internal/traced"
	"wpptrace/loader/attach"
	"wpptrace/loader/requirement"
	"wpptrace/loader/target"
)

// canaryTime is how long the probes of a canary stand.
const canaryTime = 50 * time.Millisecond

// sendCanary attaches to a process for a moment. What comes is dropped.
func sendCanary(pid int, exe *os.File, program *traced.Program) (*record.Trial, error) {
	if _, err := requirement.Privileges(); err != nil {
		return nil, fmt.Errorf("try probes in process %d: %w: %s", pid, err,
			requirement.PrivilegesFix)
	}
	p, err := target.Open(pid)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	ring := memory.FitBuffer(attach.DefaultRing, memory.Allowed())
	return record.Try(p, exe, program, int(ring), canaryTime)
}
