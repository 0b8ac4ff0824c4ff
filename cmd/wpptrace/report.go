package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/store"
	"wpptrace/loader/attach"
	"wpptrace/loader/plan"
	"wpptrace/query"
	"wpptrace/query/report"
)

// hottest is how many subpaths are printed at the end of a recording.
const hottest = 10

// writeError says what to do about a snapshot that the system does not write. Its temporary file is
// none of the user's business, unless what was recorded is in it.
func writeError(path string, err error) error {
	var why unix.Errno
	if !errors.As(err, &why) {
		return err
	}
	told := fmt.Errorf("write snapshot %s: %w: %s", path, why, otherFile(why, "-o"))
	var kept *store.KeptError
	if errors.As(err, &kept) {
		return &store.KeptError{Err: told, File: kept.File}
	}
	return told
}

// otherFile is what to do about a file that the system does not write, named by a flag.
func otherFile(why error, flag string) string {
	remedy := "name another file with " + flag
	switch why {
	case unix.ENOSPC, unix.EDQUOT:
		return "free some space there, or " + remedy
	case unix.EFBIG:
		return "allow larger files with ulimit -f, or " + remedy // a file system may take no larger ones either
	}
	return remedy
}

// background returns what writes snapshots in the middle of the recording.
func (j *job) background(ctx context.Context) *background {
	return &background{begin: func() func() error {
		complete := j.snapshot()
		return func() error {
			s, err := complete()
			if err != nil {
				return err
			}
			if err := newDraft(j.path).Finish(ctx, s); err != nil {
				return writeError(j.path, err)
			}
			return nil
		}
	}}
}

// tell prints the report of a recording that has been written.
func (j *job) tell(s *wpp.Snapshot) error {
	st, err := statAsUser(j.path)
	if err != nil {
		return fmt.Errorf("look at snapshot: %w", err)
	}
	if m, err := j.session.Metrics(); err == nil {
		j.log.Info("counted in the kernel", "failures", m)
	}
	unprinted := j.printReport(s, uint64(st.Size()))
	if errors.Is(unprinted, unix.EPIPE) { // who read it has had enough
		unprinted = nil
	}
	j.say("snapshot: %s (%d bytes)", j.path, st.Size())
	if n := s.Figures.Anomalies; n > 0 {
		j.say("%d words did not fit the program: its paths may be wrong near #cut and #unwind (-v tells more)", n)
	}
	j.tellWindows(s.Figures)
	if j.session.Forked() {
		j.say("process %d (%s) has started others, which were not traced: --follow-fork traces them, too", j.process.PID, j.process.Name)
	}
	for _, glob := range j.libraries.unmatched(j.selection.libs) {
		fmt.Fprintf(j.errs, "wpptrace: --lib %q has named no library: grep '\\.so' /proc/%d/maps lists those that a process has, while it runs\n", glob, j.process.PID)
	}
	if len(j.selection.libs) > 0 {
		j.selection.tellUnselected(j.errs, j.program.plan)
	}
	elsewhere := j.tellElsewhere(s)
	line, lost := j.lossLine()
	if !lost && !elsewhere && !slices.ContainsFunc(s.Symbols, func(x wpp.Symbol) bool { return !x.IsMark }) {
		j.say("nothing of %s's observed code ran while it was traced: %s", j.process.Name, j.whyNothing())
	}
	if lost || !j.quiet {
		fmt.Fprintln(j.errs, line)
	}
	if unprinted == nil && lost && j.strict {
		return exitStatus(exitLost)
	}
	return unprinted
}

// tellUnwritten prints what there is to say of a recording that is in no file, and will be lost.
func (j *job) tellUnwritten(s *wpp.Snapshot) {
	if err := j.printReport(s, 0); err != nil {
		j.say("%v", err)
	}
	if line, lost := j.lossLine(); lost || !j.quiet {
		fmt.Fprintln(j.errs, line)
	}
}

// whyNothing says why nothing may have run.
func (j *job) whyNothing() string {
	switch {
	case j.process.Alive() && j.process.Stopped():
		return fmt.Sprintf("it is stopped: kill -CONT %d lets it go on, or the debugger that has it", j.process.PID)
	case len(j.selection.only)+len(j.selection.not) > 0:
		return "it may sleep, or run what -F and -N leave out"
	case slices.ContainsFunc(j.program.plan.Routines, func(r *plan.Routine) bool { return r.LoopsCounted() > 0 }):
		return "it may sleep, be in one loop all the time that needs no probe, or run in shared libraries, which --lib traces"
	}
	return "it may sleep, or run in shared libraries, which --lib traces"
}

// tellElsewhere says that the process has spent most of its CPU time on code that is not observed,
// where that is beyond doubt. It reports whether it is.
func (j *job) tellElsewhere(s *wpp.Snapshot) bool {
	cpu, hits := j.traced()
	needed := j.program.image.Needed
	if j.quiet || j.windows != nil && j.windows.Closed() > 0 || len(j.selection.only)+len(j.selection.not) > 0 || len(needed) == 0 {
		return false
	}
	own := cpu - hits
	if own < leastElsewhere || own < cpu/2 { // before the grammars are gone through
		return false
	}
	ran, err := query.CountInstructions(s)
	if err != nil || !isElsewhere(own, ran) {
		return false
	}
	hint := ""
	if len(j.selection.libs) == 0 {
		hint = ": --lib observes those, as " + strings.Join(needed, ", ")
	}
	j.say("of %v of CPU time, next to none went to the %d observed instructions that ran: the rest went to the kernel, or to shared libraries%s", cpu.Round(time.Millisecond), ran, hint)
	return true
}

// leastElsewhere is how much CPU time hits have to leave for it to tell where it went.
const leastElsewhere = 50 * time.Millisecond

// isElsewhere reports whether most of some CPU time, more than none, went to other code than so many
// instructions: they hardly ever take so long.
func isElsewhere(own time.Duration, instructions uint64) bool {
	const slow = 10 * time.Nanosecond
	return own >= 2*slow*time.Duration(min(instructions, uint64(own)))
}

// tellWindows sums up the windows, if there were any.
func (j *job) tellWindows(f wpp.Figures) {
	if f.Windows == 0 {
		return
	}
	const few = 5
	windows := fmt.Sprintf("%d windows", f.Windows)
	if f.Windows == 1 {
		windows = "1 window"
	}
	j.say("traced in %s, %s of its own CPU time; tracing took %s more", windows, report.Sampled(&f), percentage(j.windows.Overhead()))
	if 4*j.windows.Asleep() > f.Windows {
		j.say("%d of them begin where it wakes up, or may: what it does later is in them less often than it is done, unless a longer --window covers it", j.windows.Asleep())
	}
	if f.Windows < few {
		j.say("so few show little of what it does: record longer, fewer routines (-F), or all that it does (--overhead 0 --max-slowdown 0)")
	}
}

func (j *job) printReport(s *wpp.Snapshot, fileSize uint64) error {
	switch {
	case j.json:
		stat, err := query.NewStat(s, fileSize)
		if err != nil {
			return err
		}
		return report.WriteStatJSON(j.report, stat)
	case j.quiet:
		return nil
	}
	q := query.DefaultHotQuery()
	q.Top = hottest
	hot, err := query.Hot(s, q)
	if err != nil {
		return err
	}
	return report.WriteHot(j.report, s, hot)
}

// lost counts the events of the recorded threads that were lost. Where that is all threads, the
// kernel counts those too that nothing is known of.
func (r *recording) lost(m attach.Metrics) (n uint64) {
	for _, t := range r.all {
		n += t.lost
	}
	if r.only == nil {
		n = max(n, m.LostHits)
	}
	return n
}

// gaps counts the places where something was lost.
func (r *recording) gaps() (n uint64) {
	for _, t := range r.all {
		n += t.gaps
	}
	return n
}

// lossLine says what was lost, where, and what to do.
func (j *job) lossLine() (line string, lost bool) {
	m, err := j.session.Metrics()
	if err != nil {
		return fmt.Sprintf("lost: unknown (%v)", err), true
	}
	return tellLosses(m, j.lost(m), j.gaps(), j.recordFlags)
}

// notInMemory says where the events were lost that attach.Metrics.Forgone counts, and what to do.
const notInMemory = "where the kernel could not read what a jump of the program was about to read, " +
	"in a page that was not in memory (swapped out, or never touched before): record again, or leave the routine out with -N"

func tellLosses(m attach.Metrics, events, places uint64, o *recordFlags) (line string, lost bool) {
	switch {
	case events > 0:
		unknown := ""
		if m.LostByWhom > 0 {
			unknown = " or more, too many threads to know of each what it lost"
		}
		why, or := "", ", or --on-overflow stop"
		if o.onOverflow == overflowStop {
			why, or = ", and the process was not to be stopped, somebody let it go on (a debugger, strace, SIGCONT), or thousands of threads ended at once", ""
		}
		places := fmt.Sprintf("lost: %d events in %d places%s", events, places, unknown)
		full := fmt.Sprintf("where the ring buffer was full%s: use a larger --ring-size than %v%s", why, o.ring, or)
		switch {
		case m.Forgone >= events:
			return fmt.Sprintf("%s, %s", places, notInMemory), true
		case m.Forgone > 0:
			return fmt.Sprintf("%s: %d %s; the others %s", places, m.Forgone, notInMemory, full), true
		}
		return fmt.Sprintf("%s, %s", places, full), true
	case m.NoStorage > 0:
		return fmt.Sprintf("lost: %d events for which the kernel had no memory", m.NoStorage), true
	}
	return "lost: 0 events", false
}
