package coverage

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/internal/traced"
	"wpptrace/loader/firsthit"
	"wpptrace/loader/image"
	"wpptrace/loader/paths"
	"wpptrace/loader/target"
	"wpptrace/loader/x86"
	"wpptrace/query/report"
)

// A New is a block that has run for the first time, and that no baseline has run, or an edge that
// none has taken.
type New struct {
	SchemaVersion int `json:"schema_version"` // of the object; 2

	Time       string  `json:"time"`        // when, RFC 3339
	PID        int     `json:"pid"`         // of the process
	Thread     int     `json:"thread"`      // its number
	ThreadName *string `json:"thread_name"` // as ps -L has it; not known where it is gone
	Frame              // where; of an edge, its jump
	// of an edge between blocks, where it leads; null: it is a block that is new
	To      *Frame  `json:"to"`
	Callers []Frame `json:"callers"`       // of the routine, the innermost first
	Whole   bool    `json:"callers_whole"` // there are no more callers than these
	// blocks and edges that ran before, for the first time too, and that were not reported: too
	// many came at once
	Suppressed int `json:"suppressed"`

	when time.Time
}

// ResidualOptions say what is reported.
type ResidualOptions struct {
	Options
	Baseline *Baseline
	// Paths are looked at, too: those that no baseline has, of routines that one has run. No
	// baseline may be a coverage then.
	Paths bool
	// Edges are looked at, too, that no baseline has taken and that lead to blocks which run
	// anyway.
	Edges bool
	// Overhead is what hits of paths, and those of edges, may be of the CPU time of a process that
	// is attached to, as a share of it: when they take more, paths are not looked at any more, nor
	// are the edges that take most.
	Overhead float64
	// Found is called for what is new, within a second: a *New for each block and edge that is, and
	// a *NewPaths for routines.
	Found func(Event)
	// Most is how many are reported a second; 0: 100. A second's worth may come at once. The first
	// of a routine is reported in any case.
	Most int
	// Restarts goes on with another process when this one has ended: the next whose command has the
	// same name and that a baseline is of. No capabilities are given up.
	Restarts bool
}

// A Residue is what has run that no baseline has.
type Residue struct {
	Watched    int // blocks, of the process that was watched last
	NotWatched int // blocks of which the baselines do not say whether they have run them
	New        int // blocks that have run

	Edges           bool // are looked at
	EdgesWatched    int  // as Watched
	EdgesNotWatched int
	NewEdges        int // that were taken
	JumpsGivenUp    int // whose edges are not watched any more: they took too much

	Reported    int // blocks and edges
	NotReported int // blocks and edges that were not reported, for too many came at once

	Paths         bool   // are looked at
	NewPaths      int    // routines that have run paths that no baseline has
	NewExecutions uint64 // of such paths, at least
}

// An Event is something new.
type Event interface {
	// Text is the event in one line.
	Text() string
}

// A residual finds out what is new.
type residual struct {
	options *ResidualOptions
	result  Residue
	met     map[met]bool
	named   map[met]bool // routines of which something was reported
	images  []mapped
	tokens  float64 // reports that may be made now
	at      time.Time
	held    int // not reported since the last one that was

	jumpsRan uint64 // those that are hit while nothing is new, by the baselines
	// how often new paths have run, and when that was reported, by the address of the routine
	executions  map[uint64]uint64
	reported    map[uint64]time.Time
	isSuccessor bool // another process was watched before
}

// A met is a block that has run, or an edge.
type met struct {
	buildID string
	addr    uint64 // of the block
	outcome int    // of the edge; noOutcome: it is the block
}

const noOutcome = -1

// Residual watches a process until the context is done, the time is over, or the process has ended,
// and reports what runs that no baseline has run. Nothing else has probes. It is otherwise as Run.
func Residual(ctx context.Context, o ResidualOptions) (Residue, error) {
	if o.Remark == nil {
		o.Remark = func(string) {}
	}
	if o.Most == 0 {
		o.Most = 100
	}
	if o.Restarts {
		o.Confine = nil
	}
	r := &residual{options: &o, met: map[met]bool{}, named: map[met]bool{},
		tokens: float64(o.Most), at: time.Now(), executions: map[uint64]uint64{},
		reported: map[uint64]time.Time{}}
	r.result.Edges = o.Edges
	own := o.Options
	own.residual = r
	ends := false
	own.EndsEarly = func(why error) {
		ends = true
		if o.EndsEarly != nil {
			o.EndsEarly(why)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if o.Duration > 0 { // from when the first process is watched
		over := sync.OnceFunc(func() { time.AfterFunc(o.Duration, cancel) })
		own.Duration = 0
		own.Began = func(pid, probes int) {
			over()
			if o.Began != nil {
				o.Began(pid, probes)
			}
		}
	}
	for {
		if err := r.watch(ctx, own); err != nil || !o.Restarts || ends || ctx.Err() != nil {
			return r.result, err
		}
		p, err := r.successor(ctx, own.Process)
		if p == nil {
			return r.result, err
		}
		defer p.Close()
		own.Process, r.isSuccessor = p, true
	}
}

// watch watches one process.
func (r *residual) watch(ctx context.Context, o Options) error {
	r.images, r.result.Watched, r.result.NotWatched = nil, 0, 0
	r.result.EdgesWatched, r.result.EdgesNotWatched, r.jumpsRan = 0, 0, 0
	x, err := prepare(&o)
	defer x.close()
	if err == nil {
		err = x.run(ctx)
	}
	if err != nil {
		return err
	}
	for { // what was reported since it was last looked
		p, err := x.session.Next(time.Now())
		if errors.Is(err, firsthit.ErrWoken) {
			continue
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			return err
		}
		r.report(x, p)
	}
	if err := x.paths.look(x, true); err != nil {
		return err
	}
	passages := make([]uint64, x.session.Counters())
	if err := x.session.Passages(passages); err != nil {
		return err
	}
	for i, n := range passages { // also those that there was no room to report
		if n > 0 {
			r.result.NotReported += len(r.news(x, i/firsthit.Outcomes, i%firsthit.Outcomes))
		}
	}
	return nil
}

// successor waits for a process whose command has the name of one that has ended, and that a
// baseline is of; nil: the context is done first. The caller closes it.
func (r *residual) successor(ctx context.Context, of *target.Process) (*target.Process, error) {
	const often = 500 * time.Millisecond
	for {
		list, err := named(of.Comm)
		if err != nil {
			return nil, err
		}
		var found *target.Process
		for _, p := range list {
			if found == nil && r.isOfBaseline(p) {
				found = p
			} else {
				p.Close()
			}
		}
		if found != nil {
			return found, nil
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(often):
		}
	}
}

// isOfBaseline reports whether a process runs a program that a baseline is of.
func (r *residual) isOfBaseline(p *target.Process) bool {
	exe, err := p.Executable()
	if err != nil {
		return false
	}
	defer exe.Close()
	st, err := exe.Stat()
	if err != nil {
		return false
	}
	im, err := image.Open(exe, st.Size(), p.File)
	return err == nil && r.options.Baseline.images[im.BuildID] != nil
}

// news notes that a site was passed. It returns what of that is new, the block first.
func (r *residual) news(x *observation, i, outcome int) (list []met) {
	m := &x.images[x.imageOf(i)]
	s := &x.watch.sites[i]
	block := met{m.graphs.Image.BuildID, m.graphs.Routines[s.routine].Blocks[s.block].Lo, noOutcome}
	edge := met{block.buildID, block.addr, outcome}
	if s.isNew && !r.met[block] {
		list = append(list, block)
		r.result.New++
	}
	if s.wants[outcome] && !r.met[edge] {
		list = append(list, edge)
		r.result.NewEdges++
	}
	for _, n := range list {
		r.met[n] = true
	}
	return list
}

// choose leaves the sites of an image that no baseline has run, or behind which there are edges
// that none has taken.
func (r *residual) choose(g *traced.Graphs, sites []site) (list []site, err error) {
	before, err := r.options.Baseline.of(g.Image.Name, g.Image.BuildID)
	if err != nil {
		return nil, err
	}
	edges := edgeChooser{residual: r, graphs: g, before: before, paths: map[int]*paths.Numbering{},
		alone: shownAlone(g, sites)}
	losses := make([]map[int]lost, len(g.Routines))
	for _, routine := range g.Routines {
		if losses[routine.ID], err = before.lostOf(routine); err != nil {
			return nil, err
		}
	}
	for i, s := range sites {
		routine, lost := g.Routines[s.routine], losses[s.routine][s.block]
		lo := routine.Blocks[s.block].Lo
		isNew, known := before.isNew(lo)
		switch {
		case !isNew, r.met[met{g.Image.BuildID, lo, noOutcome}]:
		case !known, lost.begun:
			r.result.NotWatched++
			continue
		default:
			s.isNew = true
			r.result.Watched++
		}
		if r.options.Edges && s.isJump() {
			if err := edges.choose(i, &s, lost.ran || lost.begun); err != nil {
				return nil, err
			}
		}
		if !s.wantsAny() {
			s.place.Condition = x86.NoCondition // that it is passed is all that matters
		}
		if s.isNew || s.wantsAny() {
			list = append(list, s)
		}
	}
	return list, nil
}

// mapped are those of an observation, with their lines.
func (r *residual) mapped(x *observation) []mapped {
	for i := len(r.images); i < len(x.images); i++ {
		m := &x.images[i]
		lines, err := m.graphs.Image.Lines()
		if err != nil {
			x.options.Log.Warn("no source lines", "image", m.graphs.Image.Name, "why", err)
		}
		r.images = append(r.images, mapped{m.graphs, m.base, lines})
	}
	return r.images
}

// report reports a first passage, unless too many come.
func (r *residual) report(x *observation, p firsthit.Passage) {
	if p.Passages != 1 {
		return
	}
	for _, is := range r.news(x, p.Place, p.Outcome) {
		s := x.watch.sites[p.Place]
		in := &x.images[x.imageOf(p.Place)]
		routine := met{is.buildID, in.graphs.Routines[s.routine].Addr, noOutcome}
		if !r.mayReport() && r.named[routine] {
			r.held++
			r.result.NotReported++
			continue
		}
		r.named[routine] = true
		r.result.Reported++
		n := r.describe(x, p, is.outcome)
		n.Suppressed, r.held = r.held, 0
		r.options.Found(n)
	}
}

// mayReport takes a token, of which as many come a second as may be reported.
func (r *residual) mayReport() bool {
	now := time.Now()
	most := float64(r.options.Most)
	r.tokens = min(most, r.tokens+most*now.Sub(r.at).Seconds())
	r.at = now
	if r.tokens < 1 {
		return false
	}
	r.tokens--
	return true
}

// describe describes a passage: of an edge, if there is an outcome, or of a block.
func (r *residual) describe(x *observation, p firsthit.Passage, outcome int) *New {
	n := &New{SchemaVersion: report.SchemaVersion, when: wallTime(p.Time), PID: x.process.PID,
		Thread: p.Thread, Callers: []Frame{}}
	n.Time = n.when.Format(time.RFC3339Nano)
	if name := x.process.ThreadName(p.Thread); name != "" {
		n.ThreadName = &name
	}
	s, images := x.watch.sites[p.Place], r.mapped(x)
	m := &images[x.imageOf(p.Place)]
	b := &m.graphs.Routines[s.routine].Blocks[s.block]
	n.Frame = m.frame(b.Lo, b.Lo)
	if outcome != noOutcome {
		jump := &b.Insns[len(b.Insns)-1]
		to := m.frame(targetOf(jump, outcome), targetOf(jump, outcome))
		n.Frame, n.To = m.frame(jump.Addr, jump.Addr), &to
	}
	if p.Trace != nil {
		callers, whole := chain(p.Trace, images)
		n.Callers, n.Whole = append(n.Callers, callers...), whole
	}
	return n
}

// wallTime is the time of day of a reading of CLOCK_MONOTONIC, ns.
func wallTime(monotonic uint64) time.Time {
	var now unix.Timespec
	wall := time.Now()
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return wall
	}
	return wall.Add(-time.Duration(uint64(now.Nano()) - monotonic))
}
