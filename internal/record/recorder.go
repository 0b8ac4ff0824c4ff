package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"kernel.org/pub/linux/libs/security/libcap/cap"

	"wpptrace/compress/ops"
	"wpptrace/compress/spill"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/counted"
	"wpptrace/compress/wpp/samples"
	"wpptrace/compress/wpp/store"
	"wpptrace/decoder"
	"wpptrace/internal/record/division"
	"wpptrace/internal/record/overhead"
	"wpptrace/internal/record/rawtrace"
	"wpptrace/internal/record/source"
	"wpptrace/internal/record/variables"
	"wpptrace/internal/remedy"
	"wpptrace/internal/traced"
	"wpptrace/loader/attach"
	"wpptrace/loader/guard"
	"wpptrace/loader/privilege"
	"wpptrace/loader/requirement"
	"wpptrace/loader/target"
)

// A Recorder is one recording of one process, from its plan to its snapshot. Run is for one alone;
// who records several at the same time calls, in this order, Prepare, Begin, Record and Close, the
// last after a failure of Begin or Record too. It belongs to one goroutine, but for Out.
type Recorder struct {
	options Options
	handle  func(Event)
	exe     *os.File // read until the last snapshot is written: source lines come last
	program *traced.Program
	session *attach.Session
	decoder *decoder.Decoder
	streams *spill.Recording

	threads   *threads
	snapshots *snapshots
	libraries *libraries
	images    *images
	usage     *usage
	sampling  *sampling // nil: the process is not sampled
	windows   *windows  // nil: there is no budget
	raw       *rawtrace.Trace
	forks     *forks // nil: what the process starts is recorded, too

	began, ended time.Time
	reason       Reason
	out          func() // closes isOut
	isOut        chan struct{}
}

// Prepare plans, checks and attaches: the probes stand then, and report nothing yet. When it fails
// nothing stays attached; else the recorder is to be closed.
func Prepare(o Options, handle func(Event)) (*Recorder, error) {
	o, err := o.Complete()
	if err != nil {
		return nil, err
	}
	r := &Recorder{options: o, handle: handle, isOut: make(chan struct{})}
	r.out = sync.OnceFunc(func() { close(r.isOut) })
	if !o.Unwritten {
		err = privilege.AsUser(func() error {
			return store.CheckOutput(o.Output, privilege.CheckReplace)
		})
	}
	if err != nil {
		return nil, err
	}
	p := o.Process
	run, err := p.Run()
	if err != nil {
		return nil, gone(p, err)
	}
	defer run.Close()
	if r.exe, err = p.Executable(); err != nil {
		return nil, gone(p, err)
	}
	if !p.Alive() { // its number may be another's by now, and what was opened the other's too
		r.exe.Close()
		return nil, gone(p, target.ErrGone)
	}
	var notSampled []Event // which is said when nothing worse is
	r.sampling = beginSampling(&r.options, func(e Event) { notSampled = append(notSampled, e) })
	if r.sampling != nil && o.Overhead > 0 && o.Child == nil && !o.Stands {
		r.options.Selection.Chooser = newHotRoutines(&r.options, r.sampling, handle)
	}
	if err := r.load(); err != nil {
		r.refuse(err)
		r.sampling.close()
		r.exe.Close()
		return nil, replaced(p, run, err)
	}
	for _, e := range notSampled {
		handle(e)
	}
	if err := r.attach(); err != nil {
		r.Close()
		return nil, replaced(p, run, err)
	}
	r.handle(Attached{r.unmatched()})
	return r, nil
}

// unmatched lists the globs of the selection that name no library so far.
func (r *Recorder) unmatched() []string {
	if r.options.Child == nil {
		return r.libraries.unmatched()
	}
	return slices.DeleteFunc(slices.Clone(r.options.Selection.Libraries), func(glob string) bool {
		return slices.ContainsFunc(r.program.Image.Needed,
			func(name string) bool { return traced.MatchesLibrary(glob, name) })
	})
}

// refuse says where the CPU time of a process goes of which another tool can show more than that.
func (r *Recorder) refuse(err error) {
	var marked *remedy.Error
	if r.sampling == nil || !errors.As(err, &marked) || marked.Kind != remedy.OtherProfiler {
		return
	}
	r.options.Process.Wait(time.Until(r.sampling.began.Add(sampleTime)))
	if r.sampling.take(); r.sampling.counts.Total() > 0 {
		r.handle(Refused{r.sampling.sum(nil, nil)})
	}
}

// load plans, and has the kernel take the BPF program.
func (r *Recorder) load() (err error) {
	o, p := &r.options, r.options.Process
	defer r.giveWay()()
	if r.program, err = o.Shared.Load(p, r.exe, o.Selection, o.ForkOfTraced); err != nil {
		return err
	}
	shared := len(o.Selection.Libraries) > 0
	if shared {
		if err := p.CheckLibraries(); err != nil {
			return gone(p, err)
		}
	}
	if err := r.program.CheckRecordable(p.File); err != nil && !shared {
		return err
	}
	r.session, err = attach.Load(p, r.program.Image, r.program.Plan, attach.Options{
		Ring: o.Ring, Hold: o.StopWhenFull, Shared: shared, Guard: o.Shared.Guard(),
		ForkOfTraced: o.ForkOfTraced, Loads: r.program.Loads,
	})
	if err != nil {
		return gone(p, err)
	}
	if err := r.session.Mechanism().SupportsWindows(); err != nil && o.Overhead > 0 {
		r.session.Close()
		return remedy.Errorf(remedy.NoBudget, "trace process %d (%s) within a budget: %w", p.PID,
			p.Name, err)
	}
	limits := o.Memory
	if r.program.Loads != nil {
		limits.Symbols = valuedSymbols
	}
	if err = r.begin(spill.New(newDraft(o.Output), limits)); err == nil {
		err = r.images.identify(r.exe)
	}
	if err == nil {
		err = r.images.addLibraries()
	}
	if err != nil {
		r.session.Close()
		return errors.Join(err, r.abandon())
	}
	return nil
}

// giveWay has us scheduled behind a process that is at work, which what takes CPUs holds up, while
// it is sampled: there is time until then. Afterwards somebody waits for us.
func (r *Recorder) giveWay() (end func()) {
	if r.sampling == nil || r.options.Child != nil || r.options.Stands {
		return func() {}
	}
	restore := guard.LowerPriority()
	late := time.AfterFunc(time.Until(r.sampling.began.Add(sampleTime)), restore)
	return func() {
		late.Stop()
		restore()
	}
}

// abandon closes the files that the recording has opened since begin, and drops the temporary ones.
func (r *Recorder) abandon() error {
	r.libraries.close()
	if r.threads != nil {
		r.threads.values.close()
	}
	return errors.Join(r.streams.Abandon(), r.raw.Abandon())
}

// begin makes what decodes and compresses the events of the session.
func (r *Recorder) begin(streams *spill.Recording) (err error) {
	o := &r.options
	r.streams = streams
	r.libraries = newLibraries(o.Process, o.Selection, r.program.Image.Needed)
	if r.decoder, err = decoder.New(r.program.Plan, o.Log); err != nil {
		return err
	}
	if o.Raw != "" {
		if r.raw, err = rawtrace.Create(o.Raw, r.program.Plan, r.decoder); err != nil {
			return err
		}
	}
	troubles := source.NewTroubles(o.Log)
	troubles.NotePassedOver(r.program.Image)
	r.threads = &threads{
		process: o.Process, session: r.session, plan: r.program.Plan, decoder: r.decoder,
		streams:  streams,
		alphabet: &ops.Symbols{}, raw: r.raw, byID: map[uint32]*thread{},
	}
	if o.Counted {
		r.threads.count(o.Overlap)
	} else {
		r.threads.keep()
	}
	r.threads.values, err = newValued(o.Process, r.session, r.program, r.decoder,
		r.threads.alphabet, r.exe)
	if err != nil {
		return err
	}
	for _, id := range o.Threads {
		if r.threads.only == nil {
			r.threads.only = map[uint32]bool{}
		}
		r.threads.only[uint32(id)] = true
	}
	r.usage = &usage{used: o.used, threads: r.threads, meter: overhead.UsualMeter()}
	r.snapshots = &snapshots{
		program: r.program, decoder: r.decoder, threads: r.threads, figures: r.figures,
		sources: source.NewTable(troubles),
		command: o.Process.Command(),
		profile: func() *samples.Profile {
			return r.sampling.profile(r.program.Plan, r.images.ids)
		},
		counts: func() *counted.Counts { return r.windows.counts() },
	}
	r.images = &images{
		program: r.program, exe: r.exe, session: r.session, decoder: r.decoder, raw: r.raw,
		threads: r.threads, troubles: troubles, libraries: r.libraries, handle: r.handle,
	}
	streams.AddOther(r.snapshots.bytes)
	if r.threads.values != nil {
		streams.AddOther(r.threads.values.Bytes)
		r.snapshots.variables = variables.NewTable(o.Log)
	}
	streams.Begin(r.snapshots.spilled)
	return nil
}

// attach puts the probes in.
func (r *Recorder) attach() error {
	o := &r.options
	r.usage.meter = o.Shared.Meter(r.session, o.Log)
	r.handle(Planned{r.program, r.session.Mechanism().Removal(len(r.program.Plan.Sites))})
	now, err := r.forecast()
	if err != nil {
		return err
	}
	if o.Overhead > 0 {
		if err := r.schedule(now); err != nil {
			return err
		}
	}
	if _, one := o.Shared.(alone); one { // else they are recorded
		r.forks = newForks(r.session, r.windows, r.probesAgain(), r.handle)
	}
	r.sampling.take()
	r.sampling.pause()
	if r.windows == nil { // probes will slow it down all the time
		r.sampling.stop()
	}
	if r.windows != nil && o.Child == nil && !o.Stands && now.wants >= hardly {
		defer r.sampling.resume()
		return r.divide()
	}
	if err := r.windows.change(now.uses,
		func() error { return r.session.Attach(r.exe) }); err != nil {
		return err
	}
	// also those that were mapped before the kernel would have said so
	return r.images.addLibraries()
}

// divide finds out which sites are hot, of a process that is at work, before its first window, in
// as short a time as there is. One that hardly works is not held up by probes that go in, and what
// it does next is not to be missed: all go in with its first window.
func (r *Recorder) divide() error {
	if err := r.session.Ready(r.exe); err != nil {
		return err
	}
	defer guard.RaisePriority()() // hot sites are to be found soon
	d := r.windows.division
	d.Begin(r.sampling.routines(r.program.Plan, r.images.ids))
	for began := time.Now(); !d.IsSettled() && time.Since(began) < longestDivision; {
		if err := d.Settle(); err != nil {
			return err
		}
		r.options.Process.Wait(betweenGroups)
	}
	r.windows.charge()
	return nil
}

// hardly is the load, of a CPU, below which a process hardly works: what it does next is not to be
// missed, and its probes may stand.
const hardly = 0.1

// longestDivision is how long the first window waits until it is known which sites are hot,
// betweenGroups how long the process runs freely between two groups of them.
const (
	longestDivision = 3 * time.Second
	betweenGroups   = 2 * time.Millisecond
)

// forecast measures the load of a process that is at work, and says how much slower it will be.
func (r *Recorder) forecast() (now load, err error) {
	if r.options.Child != nil || r.options.Stands {
		return load{}, nil
	}
	r.sampling.take()
	before, now, err := r.sampling.load(r.options.Process)
	if err != nil {
		return now, err
	}
	f := overhead.NewForecast(r.program.Plan, r.usage.meter.Cost(), r.program.IsPart())
	if r.usage.meter.KernelShare = overhead.KernelShareOf(before); !f.Some {
		r.usage.meter.Forecast = f.SlowDown(overhead.UsualTime)
	}
	share := r.sampling.traced(r.program.Plan, r.images.ids)
	r.usage.meter.Traced = share
	r.handle(Forecast{f, now.wants, share, len(r.program.Plan.Sites)})
	return now, nil
}

// divisionBy divides the sites of the recording.
func (r *Recorder) divisionBy(s *overhead.Scheduler) *division.Division {
	return division.New(r.session, r.options.Process, r.exe, r.program.Plan, s, r.usage)
}

// schedule begins to account for the budget.
func (r *Recorder) schedule(now load) error {
	used, err := r.options.used()
	if err != nil {
		return gone(r.options.Process, err)
	}
	if r.threads.only == nil { // of a thread among others it is not known what is its own
		r.threads.controls = overhead.NewControls(r.program.Plan)
	}
	schedule := overhead.NewScheduler(r.options.Overhead,
		r.options.limits(), used, now.uses,
		r.threads.controls)
	r.windows = &windows{
		schedule: schedule,
		division: r.divisionBy(schedule),
		usage:    r.usage, threads: r.threads, attach: r.images.attachAgain, sampling: r.sampling,
		handle: r.handle,
	}
	return nil
}

// Begin starts the reports of the probes. fromStart says that the process has not run yet.
func (r *Recorder) Begin(fromStart bool) error {
	if err := r.usage.begin(); err != nil {
		return gone(r.options.Process, err)
	}
	r.began = time.Now()
	r.windows.charge() // for what the probes cost before they report; it is no part of a window
	if r.windows != nil {
		r.windows.schedule.Begin()
	}
	if !r.session.Attached() {
		return nil // the first window comes later
	}
	r.windows.begin()
	if err := r.session.Enable(fromStart); err != nil {
		return err
	}
	return r.raw.Place()
}

// confine gives up what the recording does not take once it has begun: of the process that puts
// probes in, and by Options.Confine of this one. With windows probes go in again; with libraries
// those that come are opened.
func (r *Recorder) confine() error {
	shared := len(r.options.Selection.Libraries) > 0
	var own, guards []cap.Value
	if r.windows != nil {
		own = append(own, cap.SYS_NICE)
	}
	if r.probesAgain() {
		own = append(own, cap.SYS_PTRACE)
		guards = append(privilege.Probing(), cap.SYS_NICE)
	}
	if shared {
		own = append(own, privilege.Libraries()...)
	}
	if r.options.StopWhenFull || shared {
		own, guards = append(own, cap.KILL), append(guards, cap.KILL)
	}
	if err := r.session.Confine(guards...); err != nil || r.options.Confine == nil {
		return err
	}
	return r.options.Confine([]string{r.options.Output, store.Old(r.options.Output)}, own...)
}

// probesAgain reports whether probes go in after the recording has begun.
func (r *Recorder) probesAgain() bool {
	return r.windows != nil || len(r.options.Selection.Libraries) > 0
}

// Record records until the context is done or there is another reason to end, and writes the
// snapshot. Where that cannot be written, the result says that it is not, beside the error; an
// error beside a snapshot that was written is of something else.
func (r *Recorder) Record(ctx context.Context) (*Result, error) {
	if _, one := r.options.Shared.(alone); one && r.windows != nil {
		// There is little to compute, and between two windows none: a runtime that has a processor
		// to give away looks every 20 us whether to, at the first sign of work.
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	}
	abort := r.options.Abort
	b := &background{begin: r.beginSnapshot}
	defer b.wait() // no file is left half-written
	end, err := r.watch(ctx, b)
	if err != nil {
		return nil, err
	}
	r.handle(end)
	r.reason = end.Reason
	disturbance := r.finish(abort)
	r.forks.end()
	r.out()
	if err := abort.Err(); err != nil {
		return nil, cmp.Or(disturbance, err)
	}
	if _, err := r.images.settle(); err != nil {
		return nil, err
	}
	rawErr := r.raw.End()
	if err := b.wait(); err != nil {
		r.warn(err)
	}
	snapshot, err := r.snapshots.snapshot()()
	if err != nil {
		return nil, err
	}
	for _, missing := range r.images.troubles.News() {
		r.handle(DebugInfoMissing(missing))
	}
	if r.options.Unwritten {
		return r.result(snapshot, false), cmp.Or(rawErr, disturbance)
	}
	if err := r.streams.Finish(abort, snapshot); err != nil {
		kept := (*store.KeptError)(nil)
		if abort.Err() != nil || errors.As(err, &kept) {
			return nil, store.WriteError(r.options.Output, err)
		}
		return r.result(snapshot, false), store.WriteError(r.options.Output, err)
	}
	result := r.result(snapshot, true)
	st, err := statAsUser(r.options.Output)
	if err != nil {
		return result, fmt.Errorf("look at snapshot: %w", err)
	}
	result.FileSize = uint64(st.Size())
	return result, cmp.Or(rawErr, disturbance)
}

// beginSnapshot begins a snapshot in the middle of the recording; write goes on on another
// goroutine.
func (r *Recorder) beginSnapshot() (write func() error) {
	complete := r.snapshots.snapshot()
	return func() error {
		s, err := complete()
		if err != nil {
			return err
		}
		if err := newDraft(r.options.Output).Finish(r.options.Abort, s); err != nil {
			return store.WriteError(r.options.Output, err)
		}
		return nil
	}
}

// finish detaches and takes what is left. The recording stays readable, after an error too, as far
// as it goes.
func (r *Recorder) finish(abort context.Context) error {
	r.usage.sample()
	r.ended = time.Now()
	r.windows.charge()
	defer r.windows.relax()
	err := errors.Join(r.threads.detach(abort), r.threads.addLosses())
	if !r.options.Process.Alive() {
		r.usage.sample() // some of its hits have come but now
	}
	r.sampling.take()
	r.threads.end()
	return err
}

// Out is closed when no probe stands any more.
func (r *Recorder) Out() <-chan struct{} { return r.isOut }

// Close frees everything; what is attached is detached.
func (r *Recorder) Close() {
	r.usage.meter.Close()
	r.sampling.close()
	r.session.Close()
	r.out()
	if err := r.abandon(); err != nil {
		r.options.Log.Warn("a temporary file stays", "why", err)
	}
	r.exe.Close()
}

// Process is the process that is recorded.
func (r *Recorder) Process() *target.Process { return r.options.Process }

// Path is where the snapshot goes.
func (r *Recorder) Path() string { return r.options.Output }

// Program is the program of the process.
func (r *Recorder) Program() *traced.Program { return r.program }

// gone replaces an error by a plainer one where the process has ended.
func gone(p *target.Process, err error) error {
	if !p.Alive() {
		return fmt.Errorf("attach to process %d (%s): %w", p.PID, p.Name, target.ErrGone)
	}
	return err
}

// replaced replaces an error by a plainer one where the process has called exec since: nothing fits
// the plan then.
func replaced(p *target.Process, run *target.Run, err error) error {
	if !run.Over() {
		return err
	}
	exe, openErr := p.Executable()
	if openErr != nil { // a process that is about to exit has no memory, and so no program
		return fmt.Errorf("attach to process %d (%s): %w", p.PID, p.Name, p.WhyGone())
	}
	exe.Close()
	return fmt.Errorf("attach to process %d (%s): it has called exec meanwhile: try again", p.PID,
		p.Name)
}

// figures sum up the recording.
func (r *Recorder) figures() wpp.Figures {
	f := wpp.Figures{
		PID: r.options.Process.PID, Command: r.snapshots.command,
		Kernel: requirement.KernelRelease(), Tool: r.options.Tool,
		Start: r.began, Duration: r.duration(), Ended: string(r.reason),
	}
	for i := range r.program.Plan.Sites {
		f.Probes++
		if r.program.Plan.Sites[i].Stepped {
			f.ProbesSingleStep++
		}
	}
	r.threads.addFigures(&f)
	m, err := r.session.Counters().Metrics()
	if err == nil {
		f.Anomalies += m.NoSite + m.Unreadable + m.LongChain + m.HighAddress
	}
	f.Lost, f.Gaps = r.threads.lost(m), r.threads.gaps()
	f.HitTime = r.usage.hitTime()
	f.ReportTime, _ = r.session.Counters().ReportTime()
	f.CPUTime, _ = r.usage.traced()
	if r.windows.haveBegun() { // putting probes in and out counts, too
		f.SlowDown = 1 + r.windows.schedule.Overhead()
	} else {
		r.usage.addSlowDown(&f)
	}
	if end, known := r.session.Exit(); known {
		status := uint32(end)
		f.WaitStatus = &status
	}
	windows, share := r.windows.sampled()
	f.Windows, f.Sampled = windows, share.Share
	_, f.HeldUp = r.windows.heldUp()
	f.SampledLeast, f.SampledMost = share.Least, share.Most
	if r.windows.areToCome() {
		f.SetUntraced()
	}
	return f
}

func (r *Recorder) duration() time.Duration {
	if r.ended.IsZero() {
		return time.Since(r.began)
	}
	return r.ended.Sub(r.began)
}
