package messages

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"wpptrace/compress/wpp"
	"wpptrace/internal/memory"
	"wpptrace/internal/planreport"
	"wpptrace/internal/record"
	"wpptrace/internal/record/follow"
	"wpptrace/internal/recordreport"
	"wpptrace/internal/statusline"
	"wpptrace/internal/text"
	"wpptrace/internal/traced"
	"wpptrace/query/names"
	"wpptrace/query/profile"
	"wpptrace/query/report"
)

// Flags are what the user wants of a recording, as far as messages depend on it.
type Flags struct {
	Quiet, JSON, Strict bool
	Counted             bool    // a path profile is wanted
	Overhead            float64 // per cent; 0: no limit
	Limit               time.Duration
	MaxSlowDown         float64
	Ring                memory.Size // of the ring buffer
	Stops               bool        // the process is stopped while that is full
	Memory              memory.Size // of all recordings together
	Selection           traced.Selection
}

// byName reports whether routines are selected by name.
func (f *Flags) byName() bool { return len(f.Selection.Only)+len(f.Selection.Not) > 0 }

// A Printer prints what happens during a recording, and what is asked for at its end.
type Printer struct {
	Flags    Flags
	PID      int
	Name     string
	Attached bool             // to a process that was at work already
	Out      io.Writer        // takes the report
	Err      *statusline.Line // takes messages
	Log      *slog.Logger
	Prepared func() bool        // is called when probes stand
	Explain  func(error) string // says what to do about an error, too; it may be of several lines

	live recordreport.Live
	err  error // the first of printing
}

// Say prints a message, unless -q is given.
func (p *Printer) Say(format string, args ...any) {
	if !p.Flags.Quiet {
		p.Insist(format, args...)
	}
}

// sayEach prints messages, unless -q is given.
func (p *Printer) sayEach(messages []string) {
	for _, m := range messages {
		p.Say("%s", m)
	}
}

// Insist prints a message.
func (p *Printer) Insist(format string, args ...any) {
	fmt.Fprintf(p.Err, "wpptrace: "+format+"\n", args...)
}

// Process is what messages call the process.
func (p *Printer) Process() string { return fmt.Sprintf("process %d (%s)", p.PID, p.Name) }

// line is an error as it is printed: names that it holds, of files and of what is in them, may hold
// anything.
func (p *Printer) line(err error) string { return names.Printable(p.Explain(err)) }

// Handle prints an event of a recording.
func (p *Printer) Handle(event record.Event) {
	switch e := event.(type) {
	case record.Refused:
		p.Say("CPU time: %s", report.TimeText(profile.CPUTimeOf(e.CPUTime, &wpp.Snapshot{})))
	case record.HotSelected:
		of := ""
		if !e.Part {
			of = fmt.Sprintf("of %d ", e.All)
		}
		p.Say("%d %sroutines of %s are traced: the %d that most of %s of its CPU time were in, and "+
			"routines that these may call; -F . traces all", e.Traced, of, e.Image, e.Sampled,
			text.Count(e.Samples, "sample"))
	case record.NotSampled:
		p.Say("where the CPU time of %s goes will not be known: %s", p.Process(), p.line(e.Err))
	case record.Planned:
		p.sayEach(planreport.Lines(e, p.Flags.Selection))
	case record.Forecast:
		p.sayEach(planreport.Forecast(e, p.Flags.Overhead))
	case record.Attached:
		p.Prepared()
		for _, glob := range e.Unmatched {
			p.Say("%s", p.unmatchedText(glob))
		}
	case record.Began:
		p.Say("recording %s to %s", p.Process(), e.Path)
	case record.Forked:
		p.Say("%s has started another, which is not recorded: --follow-fork records it, too",
			p.Process())
	case record.CopiesStay:
		p.Insist("what %s forks is slowed down, too, until probes go out, for it has copies of "+
			"them: %s", p.Process(), p.Explain(e.Err))
	case record.ForksCounted:
		p.Say("%s", recordreport.Forks(p.Process(), e))
	case record.LibraryAdded:
		p.Say("%s: %s", names.Printable(e.Path), planreport.Summary(e.Program.Plan))
		if refused := planreport.Refused(e.Program); refused != "" {
			p.Say("%s", refused)
		}
	case record.LibraryLeftOut:
		p.Insist("%s", recordreport.LeftOut(e, p.line))
	case record.LetGoOn:
		p.Insist("%s, which was held because it had loaded code, was let go on by a SIGCONT too "+
			"early: what it did meanwhile is not recorded", p.Process())
	case record.SnapshotWritten:
		p.Say("snapshot: %s, recording goes on", e.Path)
	case record.DebugInfoMissing:
		p.Say("%s: %s: %s", names.Fit(e.Image, 60), e.Consequence, p.line(e.Err))
	case record.SnapshotFailed:
		p.Insist("%s", p.Explain(e.Err))
	case record.Progress:
		p.live.Budget = p.Flags.Overhead / 100
		p.Err.Show(func(since time.Duration) string { return p.live.Line(e.Status(), since) })
	case record.Ended:
		p.ended(e)
	default:
		p.window(event)
	}
}

// window prints an event of windows.
func (p *Printer) window(event record.Event) {
	switch e := event.(type) {
	case record.WindowsBegin:
		p.Say("to trace all of it costs more than --overhead %v%% of its CPU time: it is traced "+
			"in windows of %v from here on%s",
			p.Flags.Overhead, e.Window, recordreport.NextWindow(e.Wait, e.Left))
	case record.WindowClosed:
		p.Log.Debug("a window has ended", "windows", e.Windows, "overhead", text.Share(e.Overhead))
	case record.SitesCounted:
		p.Log.Debug("sites were counted between windows", "sites", e.Sites, "hits", e.Hits,
			"used", e.Used, "for hits", e.Cost)
	}
}

// ended prints why the recording ends. Of one that ends early -q prints that, too.
func (p *Printer) ended(e record.Ended) {
	p.Err.Clear()
	text := p.endText(e)
	switch {
	case text == "":
	case e.Reason.IsEarly():
		p.Insist("%s", text)
	default:
		p.Say("%s", text)
	}
}

// endText says why a recording ends; "": its command has ended by itself.
func (p *Printer) endText(e record.Ended) string {
	switch e.Reason {
	case record.Interrupted:
		return fmt.Sprintf("interrupted: tracing of %s ended", p.Process())
	case record.Exec:
		return p.Process() + " was replaced by exec: tracing ended; --follow-fork goes on"
	case record.GuardLost:
		return fmt.Sprintf("%s: %s: tracing ended", p.Process(), p.Explain(e.Err))
	case record.DurationOver:
		return fmt.Sprintf("%v are over: tracing of %s ended", p.Flags.Limit, p.Process())
	case record.SlowDown:
		return fmt.Sprintf("%s is slowed down %s, more than --max-slowdown %v: detached; -F "+
			"selects fewer routines, --max-slowdown 0 goes on whatever it costs",
			p.Process(), e.SlowDown.Likely(), p.Flags.MaxSlowDown)
	case record.Failed:
		return p.Explain(e.Err) + ": tracing ended"
	}
	if p.Attached || e.StatusKnown && recordreport.IsNews(e.Status) {
		return recordreport.Exit(p.Process(), e)
	}
	return ""
}

// HandleFollowed prints an event of the recording of several processes.
func (p *Printer) HandleFollowed(event follow.Event) {
	switch e := event.(type) {
	case follow.Attached:
		p.Prepared()
	case follow.Of:
		one := *p
		one.PID, one.Name = e.PID, e.Name
		one.Handle(e.Event)
	case follow.Began:
		p.Say("recording process %d (%s) to %s", e.PID, e.Name, e.Path)
	case follow.NotFollowed:
		p.Say("%s", recordreport.NotFollowed(p.Process(), e.PIDs))
	case follow.Unrecorded:
		p.Insist("process %d (%s) is not recorded: %s", e.PID, e.Name, p.unrecordedText(e.Err))
	case follow.Recorded:
		if err := p.recorded(e); p.err == nil {
			p.err = err
		}
	case follow.Failed:
		p.Insist("%s", p.line(e.Err))
	case follow.Progress:
		p.Err.Show(func(time.Duration) string {
			return fmt.Sprintf("%.0fs  %d recorded, %d over  lost %d", e.Duration.Seconds(),
				e.Processes, e.Recordings, e.Lost)
		})
	case follow.Ended:
		p.Err.Clear()
		if text := p.followEndText(e.Reason); text != "" {
			p.Say("%s", text)
		}
	}
}

// followEndText says why all recordings end; "": all processes have ended.
func (p *Printer) followEndText(r record.Reason) string {
	switch r {
	case record.Interrupted:
		return "interrupted: tracing ended"
	case record.GuardLost:
		return "the guard has been killed: tracing ended"
	case record.DurationOver:
		return fmt.Sprintf("%v are over: tracing ended", p.Flags.Limit)
	}
	return ""
}

// unmatchedText says of a glob that it names no library so far, before the recording.
func (p *Printer) unmatchedText(glob string) string {
	if p.Attached {
		return recordreport.Unmatched(glob, p.PID)
	}
	return fmt.Sprintf("--lib %q names no library that %s is linked with: it is traced if the "+
		"program loads it later", glob, p.Name)
}
