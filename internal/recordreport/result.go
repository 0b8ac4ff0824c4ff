package recordreport

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"wpptrace/compress/wpp"
	"wpptrace/internal/record"
	"wpptrace/internal/text"
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/figures"
	"wpptrace/loader/target"
	"wpptrace/query"
	"wpptrace/query/profile"
	"wpptrace/query/report"
)

// WriteTables writes where the CPU time went, what ran by routine, and the hot subpaths, of each so
// many at most. path is the snapshot's file, selected says that -F is given.
func WriteTables(w io.Writer, s *wpp.Snapshot, path string, most int, selected bool) error {
	q := query.DefaultHotQuery()
	q.Top = most
	q.FitTo(s, false, false)
	hot, err := query.Hot(s, q)
	if err != nil {
		return err
	}
	flat, err := profile.Flat(s)
	switch {
	case err != nil:
		return err
	case flat.Samples == 0:
		return report.WriteHot(w, s, hot)
	}
	next := report.Next(s, flat, path, selected)
	return report.WriteRecording(w, s, flat, most, hot, next)
}

// Nothing says that nothing of the plan of a recording ran in its process, or was recorded, and why
// that may be. selected says that routines were selected by name.
func Nothing(r *record.Result, process *target.Process, selected bool) string {
	if r.Snapshot.Figures.IsUntraced() {
		return fmt.Sprintf("nothing of %s's traced code was recorded: no window was opened, for "+
			"to find out which probes are hot has used up the budget: record for longer (-d), or "+
			"allow more (--overhead)", process.Name)
	}
	return fmt.Sprintf("nothing of %s's traced code ran while it was recorded: %s", process.Name,
		whyNothing(r, process, selected))
}

func whyNothing(r *record.Result, process *target.Process, selected bool) string {
	p := r.Program.Plan
	switch {
	case process.Alive() && process.Stopped():
		return fmt.Sprintf("it is stopped: kill -CONT %d lets it go on, or the debugger that has "+
			"it", process.PID)
	case isSampled(r.Snapshot):
		return "the report begins with where its CPU time went"
	case selected:
		return "it may sleep, or run what -F and -N leave out"
	case slices.ContainsFunc(p.Routines,
		func(r *plan.Routine) bool { return r.LoopsCounted() > 0 }):
		return "it may sleep, be in one loop all the time that needs no probe, or run in shared " +
			"libraries, which --lib traces"
	}
	return "it may sleep, or run in shared libraries, which --lib traces"
}

// isSampled reports whether a snapshot says where the CPU time went.
func isSampled(s *wpp.Snapshot) bool {
	const enough = 50 // samples
	time, err := profile.CPUTime(s)
	return err == nil && time != nil && time.Samples >= enough
}

// Elsewhere says that a process has spent most of its CPU time on external code, where that is
// beyond doubt; "": it is not. libraries says that some are traced.
func Elsewhere(r *record.Result, libraries bool) string {
	needed, leftOut := r.Program.Image.Needed, figures.LeftOutOfProgram(r.Program.Plan)
	if r.Windows > 0 || len(needed) == 0 && leftOut == 0 {
		return ""
	}
	if isSampled(r.Snapshot) {
		return "" // the report begins with where it went
	}
	ran, elsewhere := r.WentElsewhere()
	if !elsewhere {
		return ""
	}
	return fmt.Sprintf("of %v of CPU time, next to none went to the %d traced instructions that "+
		"ran: the rest went to %s", r.CPUTime.Round(time.Millisecond), ran,
		elsewhereText(leftOut, needed, libraries))
}

// elsewhereText lists what external code there is: routines left out, libraries that are needed,
// which are traced as far as the user has asked for it, and the kernel.
func elsewhereText(leftOut int, needed []string, libraries bool) string {
	places := []string{}
	if leftOut > 0 {
		places = append(places, fmt.Sprintf("the %d routines of the program that are left out "+
			"(wpptrace plan -v lists them)", leftOut))
	}
	places = append(places, "the kernel")
	if len(needed) > 0 {
		places = append(places, "shared libraries")
	}
	text := strings.Join(places, ", or to ")
	if len(needed) > 0 && !libraries {
		text += ": --lib traces those, as " + strings.Join(needed, ", ")
	}
	return text
}

// Windows sums up the windows, if there were any, a message a line.
func Windows(r *record.Result) (lines []string) {
	f := &r.Snapshot.Figures
	if f.Windows == 0 {
		return nil
	}
	const few = 5
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	say("traced in %s, %s of its own CPU time; tracing took %s more%s%s",
		text.Count(f.Windows, "window"), report.SampledText(f), text.Share(r.Overhead),
		ofLittle(r), heldUp(f))
	if 4*r.Asleep > f.Windows {
		say("%d of them begin where it wakes up, or may: what it does later is in them less "+
			"often than it is done, unless a longer --window covers it", r.Asleep)
	}
	if f.Windows < few {
		say("so few show little of what it does: record longer, fewer routines (-F), or all " +
			"that it does (--overhead 0 --max-slowdown 0)")
	}
	return lines
}

// heldUp says how long a window has held the process up, where one may have.
func heldUp(f *wpp.Figures) string {
	if f.HeldUp == 0 {
		return ""
	}
	return fmt.Sprintf(", and held it up for %.3g ms at a time at most",
		float64(f.HeldUp)/float64(time.Millisecond))
}

// ofLittle says of how much CPU time the overhead is a share, where that is so little that a large
// share is next to nothing.
func ofLittle(r *record.Result) string {
	own := time.Duration(float64(r.CPUTime) / (1 + r.Overhead))
	if own <= 0 || own >= time.Second {
		return ""
	}
	return fmt.Sprintf(", of %.3g ms of CPU time", float64(own)/float64(time.Millisecond))
}

// Recorded sums up the recording of one of several processes. stat has its figures.
func Recorded(r *record.Result, stat query.Stat) string {
	text := fmt.Sprintf("%d paths, %d bytes", stat.Paths, r.FileSize)
	if n := r.Losses.Events; n > 0 {
		text += fmt.Sprintf(", %d events lost", n)
	}
	if stat.Anomalies > 0 {
		text += fmt.Sprintf(", %d events did not fit the program: its paths may be wrong near "+
			"#cut and #unwind", stat.Anomalies)
	}
	return text
}
