package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"wpptrace/compress/wpp"
	"wpptrace/kernel-tests/production/load"
	"wpptrace/kernel-tests/production/server"
	"wpptrace/query"
)

// A run is what one wpptrace -p has come to, beside the times before and behind it in which the
// server was left alone.
type run struct {
	Server string `json:"server"`
	// the other tool that ran at the same time; "": none did; inFull: it was traced in full
	Beside string `json:"beside"`

	Before load.Figures `json:"before"`
	Traced load.Figures `json:"traced"` // from the command to its end
	Behind load.Figures `json:"behind"`
	// CPU time of the traced process for each answer, in ns
	CPUUntraced float64 `json:"cpu_ns_per_answer_untraced"`
	CPUTraced   float64 `json:"cpu_ns_per_answer_traced"`

	// from the command to the first window, in seconds; 0: there was none
	FirstWindow float64  `json:"first_window_seconds"`
	Took        float64  `json:"command_seconds"` // from the command to its end
	Exit        int      `json:"exit_status"`     // -1: a signal has killed it
	Messages    []string `json:"messages"`        // on stderr
	Report      string   `json:"report"`          // on stdout
	PeakRSS     uint64   `json:"peak_rss_bytes"`
	// by wpptrace's account, as a share of the process's own CPU time; -1: it has printed none
	Overhead float64 `json:"overhead"`
	Probes   uint64  `json:"probes"`
	Windows  uint64  `json:"windows"`
	Paths    uint64  `json:"paths"`
	Sampled  float64 `json:"sampled"` // which share of the CPU time windows saw, by its account
	Lost     uint64  `json:"lost"`
	Snapshot int64   `json:"snapshot_bytes"`

	// beside perf: where that has found the process, as shares of its samples
	Where map[string]float64 `json:"where,omitempty"`
	// and where wpptrace has, of its samples
	WhereEstimated map[string]float64 `json:"where_wpptrace,omitempty"`
	// shares of routines, of the time in traced code, and by how many points they differ at most
	Shares    []routineShare `json:"shares,omitempty"`
	SharesOff float64        `json:"shares_off_points"`
	// beside bpftrace: entries of routines
	Counts []routineCount `json:"counts,omitempty"`
	// of a full trace: its ten hottest subpaths, and how many of them windows have found
	Top        int      `json:"top"`
	TopFound   int      `json:"top_found"`
	Unmeasured []string `json:"unmeasured,omitempty"`
}

// inFull is what a run is beside that traces all, however slow.
const inFull = "full"

// Loss is by how much the throughput was down, as a share.
func (r *run) Loss() float64 { return 1 - ratio(r.Traced.Rate(), r.untracedRate()) }

// CPUMore is how much more CPU time an answer took, as a share.
func (r *run) CPUMore() float64 { return ratio(r.CPUTraced, r.CPUUntraced) - 1 }

func (r *run) untracedRate() float64 {
	return ratio(float64(r.Before.Answers+r.Behind.Answers),
		(r.Before.Duration + r.Behind.Duration).Seconds())
}

// Untraced is the longest hold-up of the time before: that behind may have come of taking probes
// out.
func (r *run) Untraced() time.Duration { return r.Before.Longest }

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// A bench measures one server that runs.
type bench struct {
	o    *options
	name string
	pid  int
	load *load.Load
	dir  string
}

// measure starts a server and measures it.
func measure(ctx context.Context, o *options, s server.Server, each func(*run)) error {
	dir, err := os.MkdirTemp("", "production-"+s.Name())
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	home, work := dir+"/server", dir+"/work"
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(home, 0o755),
		os.Mkdir(work, 0o700)); err != nil {
		return err
	}
	running, err := s.Start(ctx, home)
	if err != nil {
		return fmt.Errorf("start %s: %w", s.Name(), err)
	}
	b := &bench{o: o, name: s.Name(), pid: running.PID, load: load.Start(running.Clients),
		dir: work}
	others := load.Start(running.Others)
	err = b.all(ctx, each)
	if err == nil {
		_, err = others.Figures()
	}
	return errors.Join(err, b.load.Close(), others.Close(), running.Stop())
}

// all makes the runs, and those beside other tools: one after the other, for bpftrace's probes take
// time in the kernel that perf would see.
func (b *bench) all(ctx context.Context, each func(*run)) error {
	if err := sleep(ctx, b.o.duration()/5); err != nil { // until it is warm
		return err
	}
	before, usedBefore, err := b.untraced(ctx)
	if err != nil {
		return err
	}
	var last *tracing
	for range b.o.runs {
		r := &run{Server: b.name, Before: before}
		cpuBefore := usedBefore
		if last, err = b.traced(ctx, r, nil); err != nil {
			return err
		}
		if r.Behind, usedBefore, err = b.untraced(ctx); err != nil {
			return err
		}
		r.CPUUntraced = ratio(float64(cpuBefore+usedBefore),
			float64(r.Before.Answers+r.Behind.Answers))
		before = r.Behind
		each(r)
	}
	alone := ratio(float64(usedBefore), float64(before.Answers))
	beside := func(tool string) *run {
		return &run{Server: b.name, Beside: tool, Before: before, CPUUntraced: alone}
	}
	if b.o.compare {
		r := beside("perf")
		if last, err = b.besidePerf(ctx, r); err != nil {
			return err
		}
		each(r)
		if last.snapshot == nil {
			return nil
		}
		r = beside(inFull)
		if err := b.full(ctx, r, last.snapshot); err != nil {
			return err
		}
		each(r)
	}
	if b.o.counts == 0 || last.snapshot == nil {
		return nil
	}
	maps, err := mapsOf(b.pid)
	if err != nil {
		return err
	}
	chosen, err := chooseCounted(last.snapshot, maps)
	if err != nil || len(chosen) == 0 {
		return err
	}
	for range b.o.counts {
		r := beside("bpftrace")
		if err := b.besideBpftrace(ctx, r, last.snapshot, chosen); err != nil {
			return err
		}
		each(r)
	}
	return nil
}

// untraced measures the server while it is left alone.
func (b *bench) untraced(ctx context.Context) (load.Figures, time.Duration, error) {
	b.load.Begin()
	start := used(b.pid)
	if err := sleep(ctx, b.o.duration()); err != nil {
		return load.Figures{}, 0, err
	}
	f, err := b.load.Figures()
	return f, used(b.pid) - start, err
}

// traced measures it from the beginning of a wpptrace -p to its end.
func (b *bench) traced(ctx context.Context, r *run, began func(), flags ...string) (*tracing,
	error) {
	b.load.Begin()
	start := used(b.pid)
	t, err := trace(ctx, b.o, flags, b.pid, b.dir, b.load.Answers, began)
	if err != nil {
		return nil, err
	}
	if r.Traced, err = b.load.Figures(); err != nil {
		return nil, err
	}
	r.CPUTraced = ratio(float64(used(b.pid)-start), float64(r.Traced.Answers))
	r.fill(t)
	return t, nil
}

// fill takes over what wpptrace has come to.
func (r *run) fill(t *tracing) {
	first, _, ok := t.recording()
	if ok {
		r.FirstWindow = first.Seconds()
	}
	r.Took, r.Exit, r.Messages, r.PeakRSS = t.took.Seconds(), t.exit, t.messages(), t.peak
	r.Overhead, r.Snapshot, r.Report = -1, t.bytes, string(t.out)
	if share, ok := t.overhead(); ok {
		r.Overhead = share
	}
	if t.snapshot == nil {
		return
	}
	if stat, err := query.NewStat(t.snapshot, uint64(t.bytes)); err == nil {
		r.Paths = stat.Paths
	}
	f := &t.snapshot.Figures
	r.Probes, r.Windows, r.Lost = f.Probes, f.Windows, f.Lost
	r.Sampled = query.Sampled(f)
}

// besidePerf traces it while perf samples it, and compares shares.
func (b *bench) besidePerf(ctx context.Context, r *run) (*tracing, error) {
	maps, err := mapsOf(b.pid)
	if err != nil {
		return nil, err
	}
	var sampler *perf
	var failed error
	t, err := b.traced(ctx, r, func() {
		sampler, failed = startPerf(b.pid, b.dir+"/perf.data")
	})
	if sampler == nil || failed != nil {
		r.unmeasured(failed)
		return t, err
	}
	samples, failed := sampler.samples()
	if r.unmeasured(failed) || err != nil {
		return t, err
	}
	p := locate(samples, maps, t.snapshot)
	r.Where = map[string]float64{}
	for place, n := range p.where {
		r.Where[place] = float64(n) / float64(p.samples)
	}
	if t.snapshot == nil {
		return t, nil
	}
	if r.WhereEstimated, err = places(t.snapshot); err != nil {
		return nil, err
	}
	r.Shares, r.SharesOff, err = compareShares(p, t.snapshot)
	return t, err
}

// full traces all, however slow, and looks for what was hot then in what windows have seen.
func (b *bench) full(ctx context.Context, r *run, windows *wpp.Snapshot) error {
	t, err := b.traced(ctx, r, nil, "--overhead", "0", "--max-slowdown", "0")
	if err != nil || t.snapshot == nil {
		return err
	}
	r.TopFound, r.Top, err = topFound(t.snapshot, windows)
	return err
}

// besideBpftrace traces it while bpftrace counts the entries of routines that a tracing before has
// seen, and compares counts.
func (b *bench) besideBpftrace(ctx context.Context, r *run, before *wpp.Snapshot,
	chosen []counted) error {
	var counter *bpftrace
	var failed error
	t, err := b.traced(ctx, r, func() {
		counter, failed = startBpftrace(b.pid, chosen, b.load.Answers)
	})
	if counter == nil || failed != nil {
		r.unmeasured(failed)
		return err
	}
	rates, failed := counter.perAnswer()
	if r.unmeasured(failed) || err != nil || t.snapshot == nil {
		return err
	}
	_, answers, _ := t.recording()
	r.Counts, err = compareCounts(t.snapshot, before, chosen, rates, answers)
	if len(estimated(r.Counts)) == 0 && err == nil {
		r.unmeasured(errNoTotals)
	}
	return err
}

var errNoTotals = errors.New("wpptrace does not know how often routines ran in all: there are no " +
	"totals to compare")

// unmeasured takes note of what could not be compared, if anything.
func (r *run) unmeasured(err error) bool {
	if err != nil {
		r.Unmeasured = append(r.Unmeasured, err.Error())
	}
	return err != nil
}

// companions says which of the other tools are missing.
func companions() (missing []string) {
	for _, tool := range []string{"perf", "bpftrace"} {
		if _, err := exec.LookPath(tool); err != nil {
			missing = append(missing, tool)
		}
	}
	return slices.Clip(missing)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
