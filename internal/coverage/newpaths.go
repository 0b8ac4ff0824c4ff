package coverage

import (
	"fmt"
	"maps"
	"time"

	"wpptrace/internal/pathcount"
	"wpptrace/internal/text"
	"wpptrace/query/report"
)

// A NewPaths is a routine that has run paths that no baseline has, as a reading of counters says:
// the paths' threads, and who called them, are not known.
type NewPaths struct {
	SchemaVersion int `json:"schema_version"` // of the object; 2

	Time  string `json:"time"` // of the reading, RFC 3339: they ran before
	PID   int    `json:"pid"`  // of the process
	Frame        // the routine, where it begins
	// how often such paths of the routine have run since the beginning, in all processes that were
	// watched: at least
	Executions uint64 `json:"executions_of_new_paths"`

	when time.Time
}

// A pathWatch reports routines that have run new paths.
type pathWatch struct {
	watch    *pathcount.Watch
	residual *residual
	read     time.Time         // the last time
	weighed  time.Time         // the last time that what it costs was looked at
	before   map[uint64]uint64 // executions in processes before, by the address of the routine
	pending  map[uint64]bool   // routines of which not all has been reported
}

// watchPaths chooses the probes for paths, if these are wanted.
func (r *residual) watchPaths(x *observation) (*pathWatch, error) {
	o := r.options
	if !o.Paths {
		return nil, nil
	}
	if len(o.Baseline.blocks) > 0 {
		return nil, fmt.Errorf("look at the paths of process %d (%s): the baseline %s has blocks "+
			"alone: give recordings or files of wpptrace profile -o", x.process.PID, x.process.Name,
			o.Baseline.blocks[0])
	}
	w, err := pathcount.NewWatch(x.process, x.images[0].file, o.Selection, o.Baseline.files)
	if err != nil {
		return nil, err
	}
	r.result.Paths = true
	line := fmt.Sprintf("paths of %s are counted by %s", text.Count(w.Routines, "routine"),
		text.Count(w.Probes, "probe"))
	if w.HitsPerPath != nil {
		line += fmt.Sprintf(", %.2f hits for each path by the baselines", *w.HitsPerPath)
	}
	if w.LeftOut > 0 {
		line += fmt.Sprintf("; left out: %s, whose paths no probes tell apart",
			text.Count(w.LeftOut, "routine"))
	}
	if !r.isSuccessor {
		r.options.Remark(line)
	}
	return &pathWatch{watch: w, residual: r, before: maps.Clone(r.executions),
		pending: map[uint64]bool{}}, nil
}

// pathReadings is how long after one reading of counters the next follows.
const pathReadings = 200 * time.Millisecond

// look reads the counters, if it is time to or the end, and reports what has risen.
func (p *pathWatch) look(x *observation, isEnd bool) error {
	now := time.Now()
	if p == nil || !isEnd && now.Sub(p.read) < pathReadings {
		return nil
	}
	p.read = now
	if err := p.watch.Ended(); err != nil {
		return fmt.Errorf("observe process %d (%s): %w", x.process.PID, x.process.Name, err)
	}
	risen, err := p.watch.Next()
	if err != nil {
		return err
	}
	r := p.residual
	for _, n := range risen {
		all := p.before[n.Addr] + n.Executions
		r.result.NewExecutions += all - r.executions[n.Addr]
		r.executions[n.Addr], p.pending[n.Addr] = all, true
	}
	r.result.NewPaths = len(r.executions)
	p.report(x, now, isEnd)
	if isEnd {
		return nil
	}
	return p.weigh(x, now)
}

// report reports what has not been reported: a routine at once, and every few seconds after that.
func (p *pathWatch) report(x *observation, now time.Time, isEnd bool) {
	const again = 10 * time.Second
	r := p.residual
	for addr := range p.pending {
		if !isEnd && (now.Sub(r.reported[addr]) < again || !r.mayReport()) {
			continue
		}
		e := &NewPaths{SchemaVersion: report.SchemaVersion, when: now, PID: x.process.PID,
			Time: now.Format(time.RFC3339Nano), Executions: r.executions[addr],
			Frame: r.mapped(x)[0].frame(addr, addr)}
		r.options.Found(e)
		r.reported[addr] = now
		delete(p.pending, addr)
	}
}

// weigh ends it where it costs a process too much that is attached to.
func (p *pathWatch) weigh(x *observation, now time.Time) error {
	const often = time.Second
	o := p.residual.options
	if x.options.Child != nil || now.Sub(p.weighed) < often {
		return nil
	}
	p.weighed = now
	share, err := p.watch.Share()
	if err != nil || share <= o.Overhead {
		return err
	}
	if err := p.watch.Close(); err != nil {
		return fmt.Errorf("take the probes of paths out: %w", err)
	}
	o.Remark(fmt.Sprintf("paths are not looked at any more, new blocks still are: hits "+
		"of paths took some %.0f%% of the process's CPU time, of %g%% allowed", 100*share,
		100*o.Overhead))
	return nil
}
