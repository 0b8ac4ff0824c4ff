package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"
	"wpptrace/internal/record/overhead"

	"wpptrace/compress/spill"
	"wpptrace/loader/attach"
	"wpptrace/loader/guard"
	"wpptrace/loader/target"
	"wpptrace/query"
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
func sendCanary(pid int, exe *os.File, prog *program) (*canary, error) {
	if _, err := findPrivileges(); err != nil {
		return nil, fmt.Errorf("try probes in process %d: %w: %s", pid, err, privilegesFix)
	}
	p, err := target.Open(pid)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	if err := prog.recordable(p.File); err != nil {
		return nil, err
	}
	session, err := attach.Load(p, prog.image, prog.plan, attach.Options{Ring: int(fitRing(attach.DefaultRing, allowedMemory()))})
	if err != nil {
		return nil, gone(p, err)
	}
	defer session.Close()
	if err := session.Way().Windows(); err != nil {
		return nil, fmt.Errorf("try probes in process %d (%s): %w: leave --canary out", p.PID, p.Name, err)
	}
	r, err := newRecording(prog, p, session, spill.New(nil, spill.Limits{}), nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	r.used, r.meter = p.Times, overhead.NewMeter(session, r.log)
	defer r.meter.Close()
	before, _, err := measureLoad(p)
	if err != nil {
		return nil, err
	}
	r.meter.KernelShare = overhead.KernelShareOf(before)
	if err := session.Attach(exe); err != nil {
		return nil, gone(p, err)
	}
	c, err := r.try(canaryTime)
	if err != nil {
		err = gone(p, err)
	}
	return c, err
}

// try records for a time and detaches.
func (r *recording) try(long time.Duration) (*canary, error) {
	defer guard.Prompt()() // not to stand longer than was asked for
	if err := r.begin(false); err != nil {
		return nil, err
	}
	unheard := r.meter.Hits()
	if err := r.listen(r.began.Add(long)); err != nil {
		return nil, err
	}
	stood := time.Since(r.began)
	r.takeSample() // before the probes go out: that may take longer than they stood, while the process is slowed down less and less
	if err := r.detach(context.Background()); err != nil {
		return nil, err
	}
	cpu, _ := r.traced()
	c := &canary{Seconds: stood.Seconds(), CPU: cpu.Seconds(), Hits: r.meter.Hits() - unheard}
	if c.Hits == 0 {
		return c, nil
	}
	r.last.Hits = r.first.Hits.Plus(r.tollOfUnread(c.Hits))
	s, err := r.snapshot()()
	if err != nil {
		return nil, err
	}
	stat, err := query.NewStat(s, 0)
	if err != nil {
		return nil, err
	}
	c.SlowDown, c.Vague, c.Most, c.Likely = stat.SlowDown, stat.SlowDownVague, stat.SlowDownMost, stat.SlowDownLikely
	if cpu < leastRun {
		c.Vague, c.Most, c.Likely = true, 0, 0
	}
	return c, nil
}

// leastRun is how much CPU time a process has to use while a canary stands to tell more than a bound.
const leastRun = 5 * time.Millisecond

// tollOfUnread is what some hits cost, if as many of them were single-stepped as of all that have come: of
// those that were not reported yet it was not known.
func (r *recording) tollOfUnread(hits uint64) overhead.HitCost {
	var come, stepped uint64
	for _, t := range r.all {
		come, stepped = come+t.hits, stepped+t.stepped
	}
	if come == 0 {
		return overhead.HitCost{}
	}
	single := float64(hits) * float64(stepped) / float64(come)
	return overhead.NewHitCost(time.Duration((float64(hits)-single)*float64(r.meter.Cost().Emulated)), time.Duration(single*float64(r.meter.Cost().Stepped)))
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
		slower += ", likely some " + factor(c.Likely)
	}
	if c.Most > 0 {
		slower += ", at most " + factor(c.Most)
	}
	return fmt.Sprintf("slowed down %s, by %d hits in %.0f ms", slower, c.Hits, 1000*c.Seconds)
}
