package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kernel.org/pub/linux/libs/security/libcap/cap"

	"wpptrace/compress/wpp/store"
	"wpptrace/loader/family"
	"wpptrace/loader/guard"
	"wpptrace/loader/target"
	"wpptrace/loader/uprobe"
)

// A following is the recording of a process, of those that it starts, and of what any of them
// becomes by exec: each program in each process has a job of its own. It belongs to one goroutine;
// each job that records has another.
type following struct {
	*recordFlags
	shared *shared
	family *family.Family
	report io.Writer
	errs   *statusLine
	began  time.Time

	first     *target.Process
	firstUsed func() (target.Times, error)
	firstJob  *job          // prepared; nil: its program cannot be recorded
	jobs      map[*job]bool // those that have not ended: they record, or write
	recording map[int]*job  // by process
	waiting   []family.News // of processes that stand
	ended     chan ending   // of jobs
	end       chan struct{} // closed: all jobs are to end
	endedOn   occasion      // why, set before
	snapshot  map[*job]chan os.Signal
	paths     map[string]bool // of snapshots
	tally     tally
}

// alone names a flag that does not go with --follow-fork; "": none is given.
func (o *recordFlags) alone() string {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"--lib", len(o.selection.libs) > 0}, {"--tid", len(o.tids) > 0}, {"--raw", o.rawFile != ""},
		{"--overhead", o.overhead > 0}, {"--on-overflow stop", o.onOverflow == overflowStop},
	} {
		if f.given {
			return f.name
		}
	}
	return ""
}

// mayFollow fails where processes could be stopped, but not let go on: they may become another
// user's; and where probes in one are in others too.
func (o *recordFlags) mayFollow() error {
	if !o.followFork {
		return nil
	}
	if err := uprobe.Here().Families(); err != nil {
		return fmt.Errorf("follow processes: %w: leave out --follow-fork", err)
	}
	if !effective(cap.GetProc(), cap.KILL) {
		return errors.New("follow processes: no CAP_KILL: run wpptrace as root, or leave out --follow-fork")
	}
	return nil
}

// newFollowing prepares to record a process and those that it will start. When it fails nothing
// stays attached.
func newFollowing(o *recordFlags, p *target.Process, used func() (target.Times, error), report, stderr io.Writer) (*following, error) {
	o.selection.others = true
	f := &following{
		recordFlags: o, report: report, errs: newStatusLine(stderr, o.quiet), first: p, firstUsed: used,
		jobs: map[*job]bool{}, recording: map[int]*job{}, ended: make(chan ending, atOnce(o.memory.all)+1), end: make(chan struct{}),
		snapshot: map[*job]chan os.Signal{}, paths: map[string]bool{},
	}
	g, err := guard.Start(p)
	if err != nil {
		return nil, err
	}
	f.shared = &shared{guard: g}
	if f.family, err = family.Load(g); err == nil {
		err = f.prepareFirst()
	}
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// prepareFirst puts the probes into the first process. Where that cannot be recorded, those that it
// starts are all the same.
func (f *following) prepareFirst() (err error) {
	flags := f.flagsOf(f.first)
	flags.pids, flags.ring, flags.quiet = f.pids, f.ring, f.quiet
	f.firstJob, err = newJob(flags, f.shared, f.first, f.firstUsed, io.Discard, f.errs)
	flags.quiet = true // what there is to say is said here
	if cannot := (errUnrecordable{}); errors.As(err, &cannot) {
		f.tellUnrecorded(f.first.PID, f.first.Name, cannot)
		err = nil
	}
	return err
}

// Shares of one job in what was given for all.
const (
	ringShare   = 16
	leastRing   = 64 << 10
	usualAtOnce = 16
)

// atOnce is how many jobs there may be at the same time, given the memory for all.
func atOnce(memory size) int {
	if memory == 0 {
		return usualAtOnce
	}
	return max(1, int(memory/leastMemory))
}

// flagsOf are those of the job of a process.
func (f *following) flagsOf(p *target.Process) *recordFlags {
	o := *f.recordFlags
	o.pids, o.limit, o.quiet = nil, 0, true
	o.output = f.pathOf(p)
	o.ring = max(o.ring/ringShare, min(o.ring, leastRing))
	if o.memory.all > 0 {
		o.memory.all /= size(atOnce(o.memory.all))
	}
	return &o
}

// pathOf is where the next snapshot of a process goes: where nobody else's has.
func (f *following) pathOf(p *target.Process) string {
	path := cmp.Or(f.output, usualPath(p))
	if f.output != "" && p != f.first {
		path = numbered(f.output, p.PID)
	}
	unique := path
	for n := 2; f.paths[unique]; n++ {
		unique = numbered(path, n)
	}
	return unique
}

// numbered puts a number before the extension.
func numbered(path string, n int) string {
	ext := filepath.Ext(path)
	return fmt.Sprintf("%s.%d%s", strings.TrimSuffix(path, ext), n, ext)
}

// begin starts to record, and to follow.
func (f *following) begin(fromStart bool) error {
	f.began = time.Now()
	if err := f.family.Follow(f.first); err != nil || f.firstJob == nil {
		return err
	}
	return f.firstJob.begin(fromStart)
}

// run records until all processes have ended, or there is another reason to.
func (f *following) run(s *signals) error {
	if err := f.confine(); err != nil {
		return err
	}
	if f.firstJob != nil {
		f.start(f.firstJob, s)
	}
	on, told, err := f.watch(s)
	f.errs.clear()
	if told != "" {
		f.say("%s", told)
	}
	f.endedOn = on
	err = errors.Join(err, f.disband())
	for len(f.jobs) > 0 {
		f.account(<-f.ended)
	}
	if err := cmp.Or(err, f.tally.err, s.abort.Err()); err != nil {
		return err
	}
	return cmp.Or(f.tell(), f.unguarded())
}

// unguarded is the error of a recording whose guard has been killed: all of its jobs may have come to
// their ends without one.
func (f *following) unguarded() error {
	select {
	case <-f.shared.guard.Gone():
		return errors.New("record processes: their guard has been killed: what was recorded then may lack its end")
	default:
		return nil
	}
}

// confine gives up what following does not take, of this process and of its guard.
func (f *following) confine() error {
	have := cap.GetProc()
	tracing := []cap.Value{cap.BPF, cap.PERFMON, cap.KILL}
	if !effective(have, cap.BPF) {
		tracing = append(tracing, cap.SYS_ADMIN)
	}
	if err := f.shared.guard.Confine(append(tracing, cap.SYS_NICE)...); err != nil {
		return err
	}
	path := cmp.Or(f.output, usualPath(f.first))
	return confine([]string{path, store.Old(path)}, append(tracing, cap.SYS_PTRACE, cap.DAC_READ_SEARCH)...)
}

// watch takes what comes until there is an occasion to end, which it returns with what there is to
// say of it.
func (f *following) watch(s *signals) (on occasion, told string, err error) {
	for {
		quiet, err := f.hear()
		if err != nil {
			return onFailure, "", err
		}
		if len(f.waiting) > 0 {
			n := f.waiting[0]
			f.waiting = f.waiting[1:]
			f.take(n, s)
		}
		select {
		case <-s.end:
			return s.occasion(), "interrupted: tracing ended", nil
		case <-s.abort.Done():
			return onWish, "", context.Canceled
		case <-f.shared.guard.Gone():
			return onGuardLost, "the guard has been killed: tracing ended", nil
		case <-s.snapshot:
			f.requestSnapshots()
		case e := <-f.ended:
			f.account(e)
		default:
		}
		switch {
		case f.limit > 0 && time.Since(f.began) >= f.limit:
			return onTime, fmt.Sprintf("%v are over: tracing ended", f.limit), nil
		case quiet && len(f.jobs) == 0 && !f.family.Alive():
			return onExit, "", nil
		}
		f.errs.showText(f.status)
	}
}

// hear takes notice of all that there is news of, and waits for some if nothing is to be done. It
// reports whether there is none. Each probe that goes into a program is tried on all processes that
// run it: those that there is no room for do not wait for it.
func (f *following) hear() (quiet bool, err error) {
	deadline := time.Now()
	if len(f.waiting) == 0 {
		deadline = deadline.Add(tick)
	}
	const most = 64 // of a storm, so that signals are heard
	for range most {
		n, err := f.family.Next(deadline)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return len(f.waiting) == 0, nil
		}
		if err != nil {
			return false, err
		}
		if busy := f.busy(); f.recording[n.PID] == nil && busy+len(f.waiting) >= atOnce(f.memory.all) {
			f.refuse(n, f.tooMany())
		} else {
			f.waiting = append(f.waiting, n)
		}
		deadline = time.Now()
	}
	return false, nil
}

// tooMany says why a process is not recorded that there is no room for.
func (f *following) tooMany() error {
	return fmt.Errorf("%d are recorded at the same time, as many as --memory %v is for", atOnce(f.memory.all), f.memory.all)
}

// busy counts the jobs that record: the others write.
func (f *following) busy() (n int) {
	for j := range f.jobs {
		select {
		case <-j.isOut:
		default:
			n++
		}
	}
	return n
}

// refuse lets a process go that is not to be recorded.
func (f *following) refuse(n family.News, why error) {
	f.tellUnrecorded(n.PID, n.Name, why)
	f.letGo(n.PID)
}

// take deals with a process that has begun, or with what it has become. It stands meanwhile.
func (f *following) take(n family.News, s *signals) {
	if before := f.recording[n.PID]; before != nil && n.Exec { // its probes would stand in what comes
		if !f.awaitOut(before, s) {
			return
		}
		delete(f.recording, n.PID)
	}
	why := n.Obstacle
	if why == nil {
		why = f.makeRoom()
	}
	if why != nil {
		f.refuse(n, why)
		return
	}
	p, err := target.Open(n.PID)
	if errors.Is(err, target.ErrGone) || errors.Is(err, target.ErrNoProcess) { // nothing of it ran
		f.letGo(n.PID)
		return
	}
	if err != nil {
		f.refuse(n, err)
		return
	}
	if err := f.adopt(n, p, s); err != nil {
		if p.Alive() && s.abort.Err() == nil {
			f.tellUnrecorded(p.PID, p.Name, err)
		}
		p.Close()
	}
	f.letGo(n.PID)
}

// awaitOut waits until the probes of a job are out, unless all is to end.
func (f *following) awaitOut(j *job, s *signals) bool {
	for {
		select {
		case <-j.isOut:
			return true
		case e := <-f.ended:
			if f.account(e); e.job == j { // which fails before it has begun to take them out, should it fail early
				return true
			}
		case <-s.end:
			return false
		case <-s.abort.Done():
			return false
		}
	}
}

func (f *following) letGo(pid int) {
	if err := f.family.LetGo(pid); err != nil {
		f.tally.err = cmp.Or(f.tally.err, err)
	}
}

// adopt has a process recorded.
func (f *following) adopt(n family.News, p *target.Process, s *signals) error {
	j, err := newChild(f.flagsOf(p), f.shared, p, !n.Exec, f.errs)
	if err != nil {
		return err
	}
	if err := f.beginJob(j, n); err != nil {
		j.close()
		return err
	}
	f.start(j, s)
	return nil
}

// newChild is newJob for a process that stands. born: it is a copy of its parent.
func newChild(o *recordFlags, with *shared, p *target.Process, born bool, stderr io.Writer) (*job, error) {
	j := &job{born: born}
	if err := j.init(o, with, p, p.Times, io.Discard, stderr); err != nil {
		return nil, err
	}
	return j, nil
}

// errEscaped says that it is not known what a process did.
var errEscaped = errors.New("somebody has let it go on, by a SIGCONT, before probes stood")

// beginJob starts the reports. Of a program that stands before its first instruction nothing is
// missing.
func (f *following) beginJob(j *job, n family.News) error {
	held, err := f.family.Holds(n.PID)
	if err != nil {
		return err
	}
	fromStart := n.Exec && held
	if err := j.begin(fromStart); err != nil {
		return err
	}
	if !fromStart {
		return nil
	}
	if held, err = f.family.Holds(n.PID); err == nil && !held {
		err = errEscaped
	}
	return err
}

// makeRoom waits for jobs that only write, where there are as many as may be. It fails when all
// record.
func (f *following) makeRoom() error {
	for len(f.jobs) >= atOnce(f.memory.all) {
		if f.busy() == len(f.jobs) {
			return f.tooMany()
		}
		f.account(<-f.ended)
	}
	return nil
}

// start has a job record.
func (f *following) start(j *job, s *signals) {
	f.paths[j.path], f.jobs[j], f.recording[j.process.PID] = true, true, j
	f.snapshot[j] = make(chan os.Signal, 1)
	f.say("recording process %d (%s) to %s", j.process.PID, j.process.Name, j.path)
	own := &signals{end: f.end, occasion: func() occasion { return f.endedOn }, snapshot: f.snapshot[j], abort: s.abort}
	go func() {
		snapshot, err := j.record(own)
		f.ended <- ending{j, snapshot, err}
	}()
}

func (f *following) requestSnapshots() {
	for _, c := range f.snapshot {
		select {
		case c <- nil:
		default: // one is asked for already
		}
	}
}

// disband has no process stopped any more, lets all go, and has the jobs end.
func (f *following) disband() error {
	select {
	case <-f.end:
		return nil
	default:
	}
	close(f.end)
	return f.family.Disband()
}

// close frees everything; what is attached is detached, and who stands is let go.
func (f *following) close() {
	if f.firstJob != nil && !f.paths[f.firstJob.path] { // it was not started
		f.firstJob.close()
	}
	if f.family != nil {
		f.family.Close()
	}
	f.shared.close()
}

// say prints a message, unless -q is given.
func (f *following) say(format string, args ...any) {
	if !f.quiet {
		fmt.Fprintf(f.errs, "wpptrace: "+format+"\n", args...)
	}
}
