package main

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"wpptrace/compress/wpp"
	"wpptrace/internal/planreport"
	"wpptrace/internal/record"
	"wpptrace/internal/record/follow"
	"wpptrace/internal/recordreport"
	"wpptrace/internal/statusline"
	"wpptrace/internal/text"
	"wpptrace/query/names"
	"wpptrace/query/profile"
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
	live     recordreport.Live
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

// sayEach prints messages, unless -q is given.
func (p *printer) sayEach(messages []string) {
	for _, m := range messages {
		p.say("%s", m)
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
	case record.Refused:
		p.say("CPU time: %s", report.TimeText(profile.CPUTimeOf(e.CPUTime, &wpp.Snapshot{})))
	case record.HotSelected:
		p.say("%d of %d routines of %s are traced: %d that were seen in %s of its CPU time, and "+
			"routines that these may call; -F . traces all", e.Traced, e.All, e.Image, e.Sampled,
			text.Count(e.Samples, "sample"))
	case record.NotSampled:
		p.say("where the CPU time of %s goes will not be known: %s", p.process(), oneLine(e.Err))
	case record.Planned:
		p.sayEach(planreport.Lines(e, p.flags.selection.compiled))
	case record.Forecast:
		p.sayEach(planreport.Forecast(e, p.flags.overhead))
	case record.Attached:
		p.prepared()
		for _, glob := range e.Unmatched {
			p.say("%s", p.unmatchedText(glob))
		}
	case record.Began:
		p.say("recording %s to %s", p.process(), e.Path)
	case record.Forked:
		p.say("%s has started another, which is not recorded: --follow-fork records it, too",
			p.process())
	case record.CopiesStay:
		p.insist("what %s forks is slowed down, too, until probes go out, for it has copies of "+
			"them: %s", p.process(), errorText(e.Err))
	case record.ForksCounted:
		p.say("%s", recordreport.Forks(p.process(), e))
	case record.LibraryAdded:
		p.say("%s: %s", names.Printable(e.Path), planreport.Summary(e.Program.Plan))
		if refused := planreport.Refused(e.Program); refused != "" {
			p.say("%s", refused)
		}
	case record.LibraryLeftOut:
		p.insist("%s", recordreport.LeftOut(e, oneLine))
	case record.LetGoOn:
		p.insist("%s, which was held because it had loaded code, was let go on by a SIGCONT too "+
			"early: what it did meanwhile is not recorded", p.process())
	case record.SnapshotWritten:
		p.say("snapshot: %s, recording goes on", e.Path)
	case record.DebugInfoMissing:
		p.say("%s: %s: %s", names.Fit(e.Image, 60), e.Consequence, oneLine(e.Err))
	case record.SnapshotFailed:
		p.insist("%s", errorText(e.Err))
	case record.Progress:
		p.errs.Show(func(since time.Duration) string { return p.live.Line(e.Status(), since) })
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
			"in windows of %v from here on%s",
			p.flags.overhead, e.Window, recordreport.NextWindow(e.Wait, e.Left))
	case record.WindowClosed:
		p.log.Debug("a window has ended", "windows", e.Windows, "overhead", text.Share(e.Overhead))
	case record.SitesCounted:
		p.log.Debug("sites were counted between windows", "sites", e.Sites, "hits", e.Hits,
			"used", e.Used, "for hits", e.Cost)
	}
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
		return fmt.Sprintf("%s: %s: tracing ended", p.process(), errorText(e.Err))
	case record.DurationOver:
		return fmt.Sprintf("%v are over: tracing of %s ended", p.flags.limit, p.process())
	case record.SlowDown:
		return fmt.Sprintf("%s is slowed down %s, more than --max-slowdown %v: detached; -F "+
			"selects fewer routines, --max-slowdown 0 goes on whatever it costs",
			p.process(), e.SlowDown.Likely(), p.flags.maxSlowDown)
	case record.Failed:
		return errorText(e.Err) + ": tracing ended"
	}
	if p.attached || e.StatusKnown && recordreport.IsNews(e.Status) {
		return recordreport.Exit(p.process(), e)
	}
	return ""
}

// handleFollowed prints an event of the recording of several processes.
func (p *printer) handleFollowed(event follow.Event) {
	switch e := event.(type) {
	case follow.Attached:
		p.prepared()
	case follow.Of:
		one := *p
		one.pid, one.name = e.PID, e.Name
		one.handle(e.Event)
	case follow.Began:
		p.say("recording process %d (%s) to %s", e.PID, e.Name, e.Path)
	case follow.NotFollowed:
		p.say("%s", recordreport.NotFollowed(p.process(), e.PIDs))
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
	}
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

// unmatchedText says of a glob that it names no library so far, before the recording.
func (p *printer) unmatchedText(glob string) string {
	if p.attached {
		return recordreport.Unmatched(glob, p.pid)
	}
	return fmt.Sprintf("--lib %q names no library that %s is linked with: it is traced if the "+
		"program loads it later", glob, p.name)
}
