package main

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/internal/record"
	"wpptrace/internal/record/follow"
	"wpptrace/internal/record/overhead"
	"wpptrace/internal/statusline"
	"wpptrace/internal/text"
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/figures"
	routinenames "wpptrace/query/names"
	"wpptrace/query/report"
)

// A printer prints what happens during a recording, on stderr, and what is asked for at its end.
type printer struct {
	flags    *recordFlags
	pid      int
	name     string
	attached bool // to a process that was at work already
	report   io.Writer
	errs     *statusline.Line
	paths    uint64 // in the live line that was shown last
	log      *slog.Logger
	prepared func() bool // called when probes stand
	err      error       // the first of printing
}

// say prints a message, unless -q is given.
func (p *printer) say(format string, args ...any) {
	if !p.flags.quiet {
		p.insist(format, args...)
	}
}

// insist prints a message.
func (p *printer) insist(format string, args ...any) {
	fmt.Fprintf(p.errs, "wpptrace: "+format+"\n", args...)
}

// process is what messages call the process.
func (p *printer) process() string { return fmt.Sprintf("process %d (%s)", p.pid, p.name) }

// handle prints an event of a recording.
func (p *printer) handle(event record.Event) {
	switch e := event.(type) {
	case record.Planned:
		p.planned(e)
	case record.Forecast:
		p.forecast(e)
	case record.Attached:
		p.prepared()
		for _, glob := range e.Unmatched {
			p.say("%s", p.unmatchedText(glob))
		}
	case record.Began:
		p.say("recording %s to %s", p.process(), e.Path)
	case record.Forked:
		p.say("%s has started another, which is not recorded, but slowed down while probes "+
			"stand, for it has copies of them: "+
			"--follow-fork records it, too", p.process())
	case record.LibraryAdded:
		p.say("%s: %s", report.Fit(e.Path, len(e.Path)), summary(e.Program.Plan))
		p.refused(e.Program)
	case record.LibraryLeftOut:
		p.insist("%s", libraryLeftOutText(e))
	case record.LetGoOn:
		p.insist("%s, which was held because it had loaded code, was let go on by a SIGCONT too "+
			"early: what it did meanwhile is not recorded", p.process())
	case record.SnapshotWritten:
		p.say("snapshot: %s, recording goes on", e.Path)
	case record.DebugInfoMissing:
		p.say("%s: %s: %s", report.Fit(e.Image, 60), e.Consequence, oneLine(e.Err))
	case record.SnapshotFailed:
		p.insist("%v", e.Err)
	case record.Progress:
		p.errs.Show(func(since time.Duration) string { return p.statusText(e.Status(), since) })
	case record.Ended:
		p.ended(e)
	default:
		p.window(event)
	}
}

// window prints an event of windows.
func (p *printer) window(event record.Event) {
	switch e := event.(type) {
	case record.WindowsBegin:
		p.say("to trace all of it costs more than --overhead %v%% of its CPU time: it is traced "+
			"in windows of %v from here on%s; --overhead 0 --max-slowdown 0 traces all, however "+
			"slow",
			p.flags.overhead, e.Window, nextWindowText(e.Wait, e.Left))
	case record.WindowClosed:
		p.log.Debug("a window has ended", "windows", e.Windows, "overhead", text.Share(e.Overhead))
	case record.RareSitesCounted:
		p.log.Debug("rare sites were counted between windows", "sites", e.Sites, "hits", e.Hits,
			"used", e.Used, "for hits", e.Cost)
	}
}

// planned sums up a plan, and warns of one that is slower than it might be, or that much is missing
// in.
func (p *printer) planned(e record.Planned) {
	pl := e.Program.Plan
	p.say("%s", summary(pl))
	p.refused(e.Program)
	if e.Program.Image.IsGo() {
		p.say("it is %s", goProgram)
	}
	const soon = 32 << 20 // bytes of debug information that are read in a second
	if into := e.Program.InlinedElsewhere(p.flags.selection.compiled.Only, soon); len(into) > 0 {
		p.say("what -F selects is also inlined into %s: what runs there is not traced",
			report.Fit(routinenames.List(into), 200))
	}
	const much, usual = 0.05, 1 << 12 // usual are the bytes of start-up code and linkage stubs
	if bytes, share := figures.Unlisted(pl); share > much && bytes > usual {
		p.say("%d bytes of its code, %.0f%%, are in no routine, as start-up code and what has no "+
			"unwind information: they are not traced", bytes, 100*share)
	}
	if p.flags.selection.weights != "" { // estimates are too rough for that
		if share, most := figures.TooCostly(pl); share > much {
			p.say("%.0f%% of the instructions that ran in %s, of what is to be traced, are in "+
				"routines left out, most in %s: they need single-stepped probes, which "+
				"--complete admits",
				100*share, p.flags.selection.weights, report.Fit(most.Name, 60))
		}
	}
	if e.Removal > time.Second {
		p.say("on this kernel, before Linux 6.6, taking the probes out takes %.0f s, which "+
			"nothing can hurry; until then others that run the program are slowed down too",
			e.Removal.Seconds())
	}
	if share, most := figures.SingleStepped(pl); share > noticeable {
		p.say("%s%% of the expected hits are single-stepped, and slow, most in %s: -N leaves it "+
			"out", text.Factor(100*share), report.Fit(most.Name, 60))
	}
}

// refused prints why nothing of a program, or of a library, is traced that was to be, or why some
// of it is not.
func (p *printer) refused(program *record.Program) {
	if refusal := program.Refusal(); refusal != "" {
		p.say("%s", refusal)
	} else if n, why := program.Obstructed(); n > 0 {
		p.say("%s left out: %s", text.Count(n, "routine"), why)
	}
}

// forecast prints how much slower the process will be, and warns where putting the probes in is
// felt.
func (p *printer) forecast(e record.Forecast) {
	for _, line := range forecastLines(e.Forecast, e.Load, p.flags.overhead) {
		p.say("%s", line)
	}
	// usualWait is for each probe
	const usualWait, felt = 30 * time.Microsecond, 500 * time.Millisecond
	if takes := time.Duration(min(e.Load, 1) * float64(e.Probes) * float64(usualWait)); takes >
		felt {
		p.say("putting in %d probes may hold it up for some %.1f s, and taking them out again, "+
			"too: -F narrows what is traced", e.Probes, takes.Seconds())
	}
}

// forecastLines is a forecast for a process that would use load CPUs now; percent is the budget, 0:
// there is none.
func forecastLines(f overhead.Forecast, load, percent float64) []string {
	bound := "it is measured as it runs"
	if percent > 0 {
		bound = fmt.Sprintf("--overhead keeps it to %v%% in the long run", percent)
	}
	lines := []string{fmt.Sprintf("slow-down: %s; %s", forecastText(f), bound)}
	const busy = 0.9
	if load < busy && !f.Some {
		slower := 1 + load*(f.SlowDown(overhead.UsualTime)-1)
		lines = append(lines, fmt.Sprintf("at its present load, %.0f%% of a CPU: some %s times",
			100*load, text.Factor(slower)))
	}
	return lines
}

// ended prints why the recording ends. Of one that ends early -q prints that, too.
func (p *printer) ended(e record.Ended) {
	p.errs.Clear()
	text := p.endText(e)
	switch {
	case text == "":
	case e.Reason.IsEarly():
		p.insist("%s", text)
	default:
		p.say("%s", text)
	}
}

// endText says why a recording ends; "": its command has ended by itself.
func (p *printer) endText(e record.Ended) string {
	switch e.Reason {
	case record.Interrupted:
		return fmt.Sprintf("interrupted: tracing of %s ended", p.process())
	case record.Exec:
		return p.process() + " was replaced by exec: tracing ended; --follow-fork goes on"
	case record.GuardLost:
		return fmt.Sprintf("%s: %v: tracing ended", p.process(), e.Err)
	case record.DurationOver:
		return fmt.Sprintf("%v are over: tracing of %s ended", p.flags.limit, p.process())
	case record.SlowDown:
		return fmt.Sprintf("%s is slowed down %s, more than --max-slowdown %v: detached; -F "+
			"selects fewer routines, --max-slowdown 0 goes on whatever it costs",
			p.process(), likelySlowDownText(e.SlowDown), p.flags.maxSlowDown)
	case record.Failed:
		return fmt.Sprintf("%v: tracing ended", e.Err)
	}
	if p.attached || e.StatusKnown && isNews(e.Status) {
		return p.exitText(e)
	}
	return ""
}

// isNews reports whether a command has ended in a way that a shell says something about.
func isNews(s unix.WaitStatus) bool {
	return s.Signaled() && s.Signal() != unix.SIGINT && s.Signal() != unix.SIGPIPE
}

// exitText says how the process has come to its end.
func (p *printer) exitText(e record.Ended) string {
	switch status := e.Status; {
	case e.StatusKnown && status.Signaled():
		text := fmt.Sprintf("%s was killed by %s", p.process(),
			cmp.Or(unix.SignalName(status.Signal()), fmt.Sprintf("signal %d", status.Signal())))
		if status.Signal() == unix.SIGXFSZ {
			text += ": it wrote a larger file than ulimit -f allows"
		}
		return text
	case e.StatusKnown && status.ExitStatus() > 0:
		return fmt.Sprintf("%s has exited with status %d", p.process(), status.ExitStatus())
	}
	return p.process() + " has exited"
}

// handleFollowed prints an event of the recording of several processes.
func (p *printer) handleFollowed(event record.Event) {
	switch e := event.(type) {
	case follow.Of:
		one := *p
		one.pid, one.name = e.PID, e.Name
		one.handle(e.Event)
	case follow.Began:
		p.say("recording process %d (%s) to %s", e.PID, e.Name, e.Path)
	case follow.NotFollowed:
		p.say("%s", notFollowedText(p.process(), e.PIDs))
	case follow.Unrecorded:
		p.insist("process %d (%s) is not recorded: %s", e.PID, e.Name, p.unrecordedText(e.Err))
	case follow.Recorded:
		if err := p.recorded(e); p.err == nil {
			p.err = err
		}
	case follow.Failed:
		p.insist("%s", oneLine(e.Err))
	case follow.Progress:
		p.errs.Show(func(time.Duration) string {
			return fmt.Sprintf("%.0fs  %d recorded, %d over  lost %d", e.Duration.Seconds(),
				e.Processes, e.Recordings, e.Lost)
		})
	case follow.Ended:
		p.errs.Clear()
		if text := p.followEndText(e.Reason); text != "" {
			p.say("%s", text)
		}
	default:
		p.handle(event)
	}
}

// notFollowedText says that those processes are not followed that another had started before.
func notFollowedText(process string, pids []int) string {
	const most = 5 // that are listed
	var list []string
	for _, pid := range pids[:min(len(pids), most)] {
		list = append(list, strconv.Itoa(pid))
	}
	if len(pids) > most {
		list = append(list, "...")
	}
	return fmt.Sprintf("%s had started %d others before (%s), which are not followed: -p records "+
		"one of them",
		process, len(pids), strings.Join(list, ", "))
}

// followEndText says why all recordings end; "": all processes have ended.
func (p *printer) followEndText(r record.Reason) string {
	switch r {
	case record.Interrupted:
		return "interrupted: tracing ended"
	case record.GuardLost:
		return "the guard has been killed: tracing ended"
	case record.DurationOver:
		return fmt.Sprintf("%v are over: tracing ended", p.flags.limit)
	}
	return ""
}

// statusText is the live line of a recording. since is how long it is that the one before was
// shown.
func (p *printer) statusText(s record.Status, since time.Duration) string {
	line := fmt.Sprintf("%.0fs  %s paths/s  ring %.0f%%  %s rules  ratio %.0f  lost %d",
		s.Duration.Seconds(), text.Short(float64(s.Paths-p.paths)/since.Seconds()),
		100*s.Ring, text.Short(float64(s.Rules)), float64(s.Paths)/float64(max(s.Symbols, 1)),
		s.Lost)
	if s.Windows > 0 {
		line += fmt.Sprintf("  overhead %s  traced %s", text.Share(s.Overhead),
			text.Share(s.Sampled))
	} else if s.SlowDownKnown {
		line += "  slow-down " + slowDownText(s.SlowDown)
	}
	p.paths = s.Paths
	return line
}

// nextWindowText says when the next window may begin, of a recording that goes on for so long, 0 if
// nobody knows; nothing where that is soon.
func nextWindowText(wait, left time.Duration) string {
	const soon = time.Second
	switch {
	case wait <= soon:
		return ""
	case left > 0 && wait > left:
		return fmt.Sprintf(", the next in some %.0f s at its present load, when -d is over",
			wait.Seconds())
	default:
		return fmt.Sprintf(", the next in some %.0f s", wait.Seconds())
	}
}

// unmatchedText says of a glob that it names no library so far, before the recording.
func (p *printer) unmatchedText(glob string) string {
	if p.attached {
		return unmatchedText(glob, p.pid)
	}
	return fmt.Sprintf("--lib %q names no library that %s is linked with: it is traced if the "+
		"program loads it later", glob, p.name)
}

// unmatchedText says of a glob that it has named no library so far.
func unmatchedText(glob string, pid int) string {
	return fmt.Sprintf("--lib %q names no library that process %d has loaded so far", glob, pid)
}

// libraryLeftOutText says why a library that --lib names is not traced.
func libraryLeftOutText(e record.LibraryLeftOut) string {
	return fmt.Sprintf("%s is not traced: %s", report.Fit(e.Path, len(e.Path)), oneLine(e.Err))
}

// summary is a plan in one line.
func summary(p *plan.Plan) string {
	traced, stepped := figures.Count(p)
	return fmt.Sprintf("%d of %d routines, %s (%d single-stepped)", traced, len(p.Routines),
		text.Count(len(p.Sites), "probe"), stepped)
}
