package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"wpptrace/internal/record/overhead"

	"kernel.org/pub/linux/libs/security/libcap/cap"

	"wpptrace/compress/spill"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/store"
	"wpptrace/loader/attach"
	"wpptrace/loader/privilege"
	"wpptrace/loader/target"
	"wpptrace/query/report"
)

// A job is a recording with all that goes with it: where the snapshot goes and where messages go.
type job struct {
	*recordFlags
	*recording
	path   string
	report io.Writer // hot subpaths or figures
	errs   *statusLine
	log    *slog.Logger
	exe    *os.File // read until the last snapshot is written: source lines come last

	shared    *shared // with other jobs; nil: there are none
	born      bool    // the process is a fork of one that such a job has recorded
	out       func()  // says that no probe stands any more
	isOut     chan struct{}
	libraries libraries

	paceTold bool
}

// newJob prepares to record: plans, checks and attaches. When it fails nothing stays attached.
func newJob(o *recordFlags, with *shared, p *target.Process, used func() (target.Times, error), report, stderr io.Writer) (*job, error) {
	j := &job{}
	if err := j.init(o, with, p, used, report, stderr); err != nil {
		return nil, err
	}
	return j, nil
}

func (j *job) init(o *recordFlags, with *shared, p *target.Process, used func() (target.Times, error), report, stderr io.Writer) error {
	j.recordFlags, j.shared, j.report, j.errs, j.path = o, with, report, newStatusLine(stderr, o.quiet), cmp.Or(o.output, usualPath(p))
	j.log = newLog(j.errs, o.verbose)
	j.isOut = make(chan struct{})
	j.out = sync.OnceFunc(func() { close(j.isOut) })
	return j.open(p, used)
}

// usualPath is where the snapshot of a process goes if it is not said.
func usualPath(p *target.Process) string {
	name := p.Comm
	if strings.ContainsAny(name, " /:") { // a process may call itself "tmux: server"
		name = p.File
	}
	return fmt.Sprintf("%s-%d.wpp", name, p.PID)
}

func (j *job) open(p *target.Process, used func() (target.Times, error)) error {
	if err := privilege.AsUser(func() error { return checkOutput(j.path) }); err != nil {
		return err
	}
	if raw := j.rawFile; raw != "" && (isAt(raw, j.path) || isAt(raw, store.Old(j.path)) || isAt(store.Old(raw), j.path)) {
		return usagef("--raw %s is where the snapshot goes, %s, or the trace or snapshot before: name another file", raw, j.path)
	}
	if _, err := findNamespace(); err != nil {
		return fmt.Errorf("attach to process %d (%s): pid namespace: %w: %s", p.PID, p.Name, err, namespaceFix)
	}
	run, err := p.Run()
	if err != nil {
		return gone(p, err)
	}
	defer run.Close()
	exe, err := p.Executable()
	if err != nil {
		return gone(p, err)
	}
	j.exe = exe
	if !p.Alive() { // its number may be another's by now, and what was opened the other's too
		exe.Close()
		return gone(p, target.ErrGone)
	}
	if err := j.prepare(p); err != nil {
		exe.Close()
		return replaced(p, run, err)
	}
	j.used = used
	if err := j.attach(exe); err != nil {
		j.close()
		return replaced(p, run, err)
	}
	return nil
}

// prepare plans, and has the kernel take the program.
func (j *job) prepare(p *target.Process) error {
	program, err := j.shared.load(j.exe, p.File, j.selection)
	if err != nil {
		return err
	}
	shared := len(j.selection.libs) > 0
	if shared {
		if err := p.CheckLibraries(); err != nil {
			return gone(p, err)
		}
	}
	if err := program.recordable(p.File); err != nil && !shared {
		return err
	}
	session, err := attach.Load(p, program.image, program.plan, attach.Options{
		Ring: int(j.ring), Hold: j.onOverflow == overflowStop, Shared: shared, Guard: j.shared.guardOfAll(), Born: j.born,
	})
	if err != nil {
		return gone(p, err)
	}
	if err := session.Way().Windows(); err != nil && j.overhead > 0 {
		session.Close()
		return fmt.Errorf("trace process %d (%s) with --overhead: %w: leave --overhead out, or see --max-slowdown", p.PID, p.Name, err)
	}
	if j.recording, err = newRecording(program, p, session, spill.New(newDraft(j.path), j.memory.limits()), j.tids, j.log); err != nil {
		session.Close()
		return err
	}
	if j.rawFile != "" {
		j.raw, err = createRawTrace(j.rawFile, j.recording)
	}
	if err == nil {
		err = j.addLibraries()
	}
	if err != nil {
		session.Close()
		err = errors.Join(err, j.raw.abandon())
	}
	return err
}

// attach puts the probes in. A process that is at work already is told what to expect before.
func (j *job) attach(exe *os.File) error {
	j.meter = j.shared.newMeter(j.session, j.log)
	j.tellPlan()
	var now load
	if len(j.pids) > 0 {
		var before target.Times
		var err error
		if before, now, err = measureLoad(j.process); err != nil {
			return err
		}
		f := overhead.NewForecast(j.program.plan, j.meter.Cost(), j.program.selects != nil)
		if j.meter.KernelShare = overhead.KernelShareOf(before); !f.Some {
			j.meter.Forecast = f.SlowDown(overhead.UsualTime)
		}
		if !j.quiet {
			tellForecast(j.errs, f, now.wants, j.overhead)
			j.tellChange(now.wants)
		}
	}
	if j.overhead > 0 {
		used, err := j.used()
		if err != nil {
			return gone(j.process, err)
		}
		var rare *overhead.RareSites
		if j.only == nil { // of a thread among others it is not known what is its own
			rare = overhead.NewRareSites(j.program.plan)
		}
		j.windows = &windows{Scheduler: overhead.NewScheduler(j.overhead/100, j.window, used, now.uses, rare)}
	}
	if err := j.accountChange(now.uses, func() error { return j.session.Attach(exe) }); err != nil {
		return err
	}
	return j.addLibraries() // also those that were mapped before we would have been told
}

// tellPlan sums up the plan, and warns of one that is slower than it might be, or that much is
// missing in.
func (j *job) tellPlan() {
	p := j.program.plan
	j.say("%s", summary(p))
	j.tellRefusal(j.program)
	if j.program.image.IsGo() {
		j.say("it is %s", goProgram)
	}
	const much, usual = 0.05, 1 << 12 // usual are the bytes of start-up code and linkage stubs
	if bytes, share := unlisted(p); share > much && bytes > usual {
		j.say("%d bytes of its code, %.0f%%, are in no routine, as start-up code and what has no unwind information: they are not observed", bytes, 100*share)
	}
	if j.selection.weights != "" { // estimates are too rough for that
		if share, most := tooDear(p); share > much {
			j.say("%.0f%% of the instructions that ran in %s, of what is to be observed, are in routines left out, most in %s: they need single-stepped probes, which --complete admits", 100*share, j.selection.weights, report.Fit(most.Name, 60))
		}
	}
	if took := j.session.Way().Removal(len(p.Sites)); took > time.Second {
		j.say("on this kernel, before Linux 6.6, taking the probes out takes %.0f s, which nothing can hurry; until then others that run the program are slowed down too", took.Seconds())
	}
	if share, most := stepped(p); share > noticeable {
		j.say("%s%% of the expected hits are single-stepped, and slow, most in %s: -N leaves it out", factor(100*share), report.Fit(most.Name, 60))
	}
}

// tellRefusal says why nothing of a program, or of a library, is observed that was to be.
func (j *job) tellRefusal(p *program) {
	if refusal := p.refusal(); refusal != "" {
		j.say("%s", refusal)
	}
}

// tellChange warns where putting the probes in is felt by a process that uses so many CPUs.
func (j *job) tellChange(load float64) {
	const usualWait, felt = 30 * time.Microsecond, 500 * time.Millisecond // usualWait is for each probe
	probes := len(j.program.plan.Sites)
	if takes := time.Duration(min(load, 1) * float64(probes) * float64(usualWait)); takes > felt {
		j.say("putting in %d probes may hold it up for some %.1f s, and taking them out again, too: -F narrows what is observed", probes, takes.Seconds())
	}
}

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
	return fmt.Errorf("attach to process %d (%s): it has called exec meanwhile: try again", p.PID, p.Name)
}

// loadTime is how long the load of a process is measured, loadGlances how often it is looked meanwhile
// whether it runs.
const (
	loadTime    = 100 * time.Millisecond
	loadGlances = 20
)

// A load is what a process makes of the machine now, 1 for one CPU: what it uses, and what it would use
// if no other one kept it from that, up to one CPU.
type load struct{ uses, wants float64 }

// measureLoad returns what a process has used in its life, and its load.
func measureLoad(p *target.Process) (used target.Times, now load, err error) {
	began := time.Now()
	before, err := p.Times()
	if err != nil {
		return used, now, gone(p, err)
	}
	ready := 0
	for range loadGlances {
		if p.Wait(loadTime / loadGlances); p.Runnable() {
			ready++
		}
	}
	if used, err = p.Times(); err != nil {
		return used, now, gone(p, err)
	}
	now.uses = float64(used.CPU-before.CPU) / float64(time.Since(began))
	now.wants = max(now.uses, float64(ready)/loadGlances)
	return used, now, nil
}

func newLog(w io.Writer, verbose bool) *slog.Logger {
	if !verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// newDraft returns the draft of a recording's snapshot, which is written as the user.
func newDraft(path string) *store.Draft { return store.NewDraftBy(privilege.AsUser, path) }

// statAsUser is os.Stat as the user.
func statAsUser(path string) (info fs.FileInfo, err error) {
	err = privilege.AsUser(func() error {
		info, err = os.Stat(path)
		return err
	})
	return info, err
}

// checkOutput fails when a snapshot could not be written to path: better now than after the
// recording.
func checkOutput(path string) error {
	st, err := os.Stat(path)
	if err == nil && !st.Mode().IsRegular() {
		return fmt.Errorf("write snapshot %s: it is not a regular file: name another with -o", path)
	}
	if st, err := os.Lstat(path); err == nil && st.Mode().Type() == fs.ModeSymlink { // /dev/stdout of a shell that has redirected it, for one
		return fmt.Errorf("write snapshot %s: it is a link, which is not written through: name what it leads to with -o", path)
	}
	if st, err := os.Lstat(store.Old(path)); err == nil && !st.Mode().IsRegular() && st.Mode().Type() != fs.ModeSymlink {
		return fmt.Errorf("write snapshot %s: one that is there becomes %s, which is not a regular file: name another with -o", path, store.Old(path))
	}
	dir, base := filepath.Split(path)
	f, err := os.CreateTemp(filepath.Clean(dir), "."+base+".*")
	if err != nil {
		return writeError(path, err)
	}
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		return err
	}
	if _, err := os.Lstat(path); err != nil { // there is nothing to be replaced
		return nil
	}
	for _, name := range []string{path, store.Old(path)} {
		if err := privilege.CheckReplace(name); err != nil {
			return fmt.Errorf("write snapshot %s: %w: name another file with -o", name, err)
		}
	}
	return nil
}

// run records until there is a reason to end, writes the snapshot and reports.
func (j *job) run(s *signals) error {
	if err := j.confine(); err != nil {
		return err
	}
	j.say("recording process %d (%s) to %s", j.process.PID, j.process.Name, j.path)
	if attached := len(j.pids) > 0; attached {
		for _, glob := range j.libraries.unmatched(j.selection.libs) {
			j.say("%s", tellUnmatched(glob, j.process.PID))
		}
	}
	snapshot, err := j.record(s)
	if snapshot == nil {
		return err
	}
	defer s.quitReport(j.errs, j.path)()
	return cmp.Or(err, j.tell(snapshot))
}

// record records until there is a reason to end, and writes the snapshot. An error beside a
// snapshot is of something else.
func (j *job) record(s *signals) (*wpp.Snapshot, error) {
	b := j.background(s.abort)
	defer b.wait() // no file is left half-written
	on, told, err := j.watch(s, b)
	if err != nil {
		return nil, err
	}
	if told != "" && (on.isEarly() || !j.quiet) {
		fmt.Fprintf(j.errs, "wpptrace: %s\n", told)
	}
	j.endedOn = on
	disturbance := j.finish(s.abort)
	j.out()
	if err := s.abort.Err(); err != nil {
		return nil, cmp.Or(disturbance, err)
	}
	if _, err := j.settle(); err != nil {
		return nil, err
	}
	rawErr := j.raw.end()
	if err := b.wait(); err != nil {
		j.warn(s, err)
	}
	snapshot, err := j.snapshot()()
	if err != nil {
		return nil, err
	}
	if err := j.streams.Finish(s.abort, snapshot); err != nil {
		if kept := (*store.KeptError)(nil); s.abort.Err() == nil && !errors.As(err, &kept) {
			j.tellUnwritten(snapshot)
		}
		return nil, writeError(j.path, err)
	}
	return snapshot, cmp.Or(rawErr, disturbance)
}

// confine is a variable for tests, which record in their own process and go on.
var confine = privilege.Confine

// confine gives up what a recording does not take once it has begun, of this process and of the one
// that puts probes in: with windows it does so again, with libraries it opens those that come.
func (j *job) confine() error {
	have, shared := cap.GetProc(), len(j.selection.libs) > 0
	var own, guards []cap.Value
	if j.windows != nil {
		own = append(own, cap.SYS_NICE)
	}
	if j.windows != nil || shared {
		own = append(own, cap.SYS_PTRACE)
		guards = append(guards, cap.BPF, cap.PERFMON, cap.SYS_NICE)
		if !effective(have, cap.BPF) {
			guards = append(guards, cap.SYS_ADMIN)
		}
	}
	if shared {
		own = append(own, cap.CHECKPOINT_RESTORE, cap.DAC_READ_SEARCH)
		if !effective(have, cap.CHECKPOINT_RESTORE) {
			own = append(own, cap.SYS_ADMIN)
		}
	}
	if j.onOverflow == overflowStop || shared {
		own, guards = append(own, cap.KILL), append(guards, cap.KILL)
	}
	if err := j.session.Confine(guards...); err != nil {
		return err
	}
	return confine([]string{j.path, store.Old(j.path)}, own...)
}

// close frees everything; what is attached is detached.
func (j *job) close() {
	if j.meter != nil {
		j.meter.Close()
	}
	j.session.Close()
	j.out()
	if err := errors.Join(j.streams.Abandon(), j.raw.abandon()); err != nil {
		j.log.Warn("a temporary file stays", "why", err)
	}
	j.libraries.close()
	j.exe.Close()
}

// say prints a message, unless -q is given.
func (j *job) say(format string, args ...any) {
	if !j.quiet {
		fmt.Fprintf(j.errs, "wpptrace: "+format+"\n", args...)
	}
}
