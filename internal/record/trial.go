package record

import (
	"context"
	"os"
	"time"

	"wpptrace/compress/spill"
	"wpptrace/internal/record/overhead"
	"wpptrace/internal/remedy"
	"wpptrace/internal/traced"
	"wpptrace/loader/attach"
	"wpptrace/loader/guard"
	"wpptrace/loader/target"
	"wpptrace/query"
)

// A Trial is what a process did while its probes stood for a moment.
type Trial struct {
	Stood    time.Duration
	CPUTime  time.Duration // that the process used
	Hits     uint64
	SlowDown float64 // CPU time over what it would have been; 0: the process did not run
	Vague    bool    // SlowDown is the least
	Most     float64 // where it is vague; 0: not known
	Likely   float64 // where it is vague: if one figure is wanted; 0: not known
}

// Try puts the probes of a program into a process for a moment, and takes them out again. What is
// recorded is dropped. exe is what the program was loaded from, ring the size of the buffer between
// kernel and wpptrace, in bytes.
func Try(p *target.Process, exe *os.File, program *traced.Program, ring int,
	long time.Duration) (*Trial, error) {
	if err := program.CheckRecordable(p.File); err != nil {
		return nil, err
	}
	session, err := attach.Load(p, program.Image, program.Plan, attach.Options{Ring: ring})
	if err != nil {
		return nil, gone(p, err)
	}
	defer session.Close()
	if err := session.Mechanism().SupportsWindows(); err != nil {
		return nil, remedy.Errorf(remedy.NoTrial, "try probes in process %d (%s): %w", p.PID,
			p.Name,
			err)
	}
	r := &Recorder{options: Options{Process: p}.withDefaults(), program: program, session: session}
	if err := r.begin(spill.New(nil, spill.Limits{})); err != nil {
		return nil, err
	}
	r.usage.meter = overhead.NewMeter(session, r.options.Log)
	defer r.usage.meter.Close()
	before, _, err := measureLoad(p)
	if err != nil {
		return nil, err
	}
	r.usage.meter.KernelShare = overhead.KernelShareOf(before)
	if err := session.Attach(exe); err != nil {
		return nil, gone(p, err)
	}
	t, err := r.try(long)
	if err != nil {
		return nil, gone(p, err)
	}
	return t, nil
}

// try records for a time and detaches.
func (r *Recorder) try(long time.Duration) (*Trial, error) {
	defer guard.RaisePriority()() // not to stand longer than was asked for
	if err := r.Begin(false); err != nil {
		return nil, err
	}
	unreported := r.usage.meter.Hits()
	if err := r.threads.listen(r.began.Add(long)); err != nil {
		return nil, err
	}
	t := &Trial{Stood: time.Since(r.began)}
	// Before the probes go out: that may take longer than they stood, while the process is slowed
	// down less and less.
	r.usage.sample()
	if err := r.threads.detach(context.Background()); err != nil {
		return nil, err
	}
	t.CPUTime, _ = r.usage.traced()
	if t.Hits = r.usage.meter.Hits() - unreported; t.Hits == 0 {
		return t, nil
	}
	r.usage.last.Hits = r.usage.first.Hits.Plus(r.costOfUnread(t.Hits))
	s, err := r.snapshots.snapshot()()
	if err != nil {
		return nil, err
	}
	stat, err := query.NewStat(s, 0)
	if err != nil {
		return nil, err
	}
	t.SlowDown, t.Vague, t.Most, t.Likely = stat.SlowDown, stat.SlowDownVague, stat.SlowDownMost,
		stat.SlowDownLikely
	if t.CPUTime < leastRun {
		t.Vague, t.Most, t.Likely = true, 0, 0
	}
	return t, nil
}

// leastRun is how much CPU time a process has to use in a trial for more than a bound to be known.
const leastRun = 5 * time.Millisecond

// costOfUnread is what some hits cost, if as many of them were single-stepped as of all that have
// come: of those that were not reported yet it was not known.
func (r *Recorder) costOfUnread(hits uint64) overhead.HitCost {
	var come, stepped uint64
	for _, t := range r.threads.all {
		come, stepped = come+t.hits, stepped+t.stepped
	}
	if come == 0 {
		return overhead.HitCost{}
	}
	single := float64(hits) * float64(stepped) / float64(come)
	cost := r.usage.meter.Cost()
	return overhead.NewHitCost(time.Duration((float64(hits)-single)*float64(cost.Emulated)),
		time.Duration(single*float64(cost.Stepped)))
}
