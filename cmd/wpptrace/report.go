package main

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"wpptrace/compress/wpp"
	"wpptrace/internal/record"
	"wpptrace/internal/record/follow"
	"wpptrace/internal/text"
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/figures"
	"wpptrace/loader/target"
	"wpptrace/query"
	"wpptrace/query/names"
	"wpptrace/query/report"
)

// hottest is how many subpaths are printed at the end of a recording.
const hottest = 10

// result prints the report of a recording that is over.
func (p *printer) result(r *record.Result, process *target.Process) error {
	if !r.Written {
		p.unwritten(r)
		return nil
	}
	if r.Losses.Err == nil {
		p.log.Info("counted in the kernel", "failures", r.Losses.Metrics)
	}
	unprinted := p.printReport(r.Snapshot, r.Path, r.FileSize)
	if errors.Is(unprinted, unix.EPIPE) { // who read it has had enough
		unprinted = nil
	}
	p.say("snapshot: %s (%d bytes)", r.Path, r.FileSize)
	if n := r.Snapshot.Figures.Anomalies; n > 0 {
		p.say("%d events did not fit the program: its paths may be wrong near #cut and #unwind "+
			"(-v prints more)", n)
	}
	p.windows(r)
	p.unmatched(r)
	elsewhere := p.elsewhere(r)
	line, lost := lossText(r.Losses, p.flags)
	if !lost && !elsewhere && !slices.ContainsFunc(r.Snapshot.Symbols,
		func(x wpp.Symbol) bool { return !x.IsMark }) {
		p.say("nothing of %s's traced code ran while it was recorded: %s", p.name,
			p.whyNothing(r.Program.Plan, process))
	}
	return cmp.Or(unprinted, p.losses(line, lost))
}

// losses prints what was lost, and returns the exit status that follows.
func (p *printer) losses(line string, lost bool) error {
	if lost || !p.flags.quiet {
		fmt.Fprintln(p.errs, line)
	}
	if lost && p.flags.strict {
		return exitStatus(exitLost)
	}
	return nil
}

// unmatched prints which of the user's expressions have matched nothing.
func (p *printer) unmatched(r *record.Result) {
	for _, glob := range r.Unmatched {
		p.insist("--lib %q has named no library: grep '\\.so' /proc/%d/maps lists those that a "+
			"process has, while it runs", glob, p.pid)
	}
	if len(p.flags.selection.libs) == 0 {
		return
	}
	s := p.flags.selection.compiled
	print := func(flag string, list []*regexp.Regexp) {
		for _, re := range s.Unmatched(list, r.Program.Plan) {
			p.insist("%s %q has matched no routine: wpptrace plan -v lists those of a program, "+
				"wpptrace plan -v LIBRARY those of a library", flag, re)
		}
	}
	print("-F", s.Only)
	print("-N", s.Not)
}

// unwritten prints what there is to say of a recording that is in no file, and will be lost.
func (p *printer) unwritten(r *record.Result) {
	if err := p.printReport(r.Snapshot, "", 0); err != nil {
		p.say("%v", err)
	}
	if line, lost := lossText(r.Losses, p.flags); lost || !p.flags.quiet {
		fmt.Fprintln(p.errs, line)
	}
}

// whyNothing says why nothing may have run.
func (p *printer) whyNothing(pl *plan.Plan, process *target.Process) string {
	s := &p.flags.selection
	switch {
	case process.Alive() && process.Stopped():
		return fmt.Sprintf("it is stopped: kill -CONT %d lets it go on, or the debugger that has "+
			"it", p.pid)
	case len(s.only)+len(s.not) > 0:
		return "it may sleep, or run what -F and -N leave out"
	case slices.ContainsFunc(pl.Routines,
		func(r *plan.Routine) bool { return r.LoopsCounted() > 0 }):
		return "it may sleep, be in one loop all the time that needs no probe, or run in shared " +
			"libraries, which --lib traces"
	}
	return "it may sleep, or run in shared libraries, which --lib traces"
}

// elsewhere says that the process has spent most of its CPU time on external code, where that is
// beyond doubt. It reports whether it is.
func (p *printer) elsewhere(r *record.Result) bool {
	s, needed, leftOut := &p.flags.selection, r.Program.Image.Needed,
		figures.LeftOutOfProgram(r.Program.Plan)
	if p.flags.quiet || r.Windows > 0 || len(s.only)+len(s.not) > 0 ||
		len(needed) == 0 && leftOut == 0 {
		return false
	}
	ran, elsewhere := r.WentElsewhere()
	if !elsewhere {
		return false
	}
	p.say("of %v of CPU time, next to none went to the %d traced instructions that ran: the rest "+
		"went to %s",
		r.CPUTime.Round(time.Millisecond), ran, elsewhereText(leftOut, needed, len(s.libs) > 0))
	return true
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

// windows sums up the windows, if there were any.
func (p *printer) windows(r *record.Result) {
	f := &r.Snapshot.Figures
	if f.Windows == 0 {
		return
	}
	const few = 5
	p.say("traced in %s, %s of its own CPU time; tracing took %s more%s",
		text.Count(f.Windows, "window"), report.SampledText(f), text.Share(r.Overhead),
		ofLittle(r))
	if 4*r.Asleep > f.Windows {
		p.say("%d of them begin where it wakes up, or may: what it does later is in them less "+
			"often than it is done, unless a longer --window covers it", r.Asleep)
	}
	if f.Windows < few {
		p.say("so few show little of what it does: record longer, fewer routines (-F), or all " +
			"that it does (--overhead 0 --max-slowdown 0)")
	}
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

// printReport prints where the CPU time went, what ran by routine and the hot subpaths, or with
// --json the figures.
func (p *printer) printReport(s *wpp.Snapshot, path string, fileSize uint64) error {
	switch {
	case p.flags.json:
		stat, err := query.NewStat(s, fileSize)
		if err != nil {
			return err
		}
		return report.WriteStatJSON(p.report, stat)
	case p.flags.quiet:
		return nil
	}
	q := query.DefaultHotQuery()
	q.Top = hottest
	hot, err := query.Hot(s, q)
	if err != nil {
		return err
	}
	flat, err := query.Flat(s)
	switch {
	case err != nil:
		return err
	case flat.Samples == 0:
		return report.WriteHot(p.report, s, hot)
	}
	next := nextOf(s, flat, path, len(p.flags.selection.only) > 0)
	return report.WriteRecording(p.report, s, flat, hottest, hot, next)
}

// nextOf says what to ask next, by name: which library would show more of the CPU time, and what
// there is to know of the hottest routine. selected says that routines were selected by name.
func nextOf(s *wpp.Snapshot, flat *query.FlatReport, path string, selected bool) (next []string) {
	const least = 0.02 // of the CPU time
	time, err := query.CPUTime(s)
	if err != nil || time == nil {
		return nil
	}
	percent := func(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }
	isLibrary := func(t query.TimePart) bool {
		return t.Kind == query.FileTime && !strings.HasPrefix(t.Name, "[") &&
			t.Share.Value() >= least
	}
	if i := slices.IndexFunc(time.Parts, isLibrary); i >= 0 {
		t := &time.Parts[i]
		next = append(next, fmt.Sprintf("--lib %s traces that library too: %s of the CPU time",
			quoted(t.Name), percent(t.Share.Value())))
	}
	isTraced := func(x query.RoutineFigures) bool {
		return x.Routine != query.NoRoutine && s.Routines[x.Routine].LeftOut == "" &&
			flat.Time(&x).Value() >= least
	}
	i := slices.IndexFunc(flat.Routines, isTraced)
	if i < 0 {
		return next
	}
	x := &flat.Routines[i]
	r := &s.Routines[x.Routine]
	const (
		widest = 40  // of a name
		most   = 0.8 // of the CPU time: to leave out the rest gains little
	)
	share := flat.Time(x).Value()
	switch name := names.Of(s).Routine(x.Routine); {
	case !selected && share < most && r.Image == 0 && r.Name != "" && len(r.Name) <= widest:
		next = append(next, fmt.Sprintf("-F %s traces that routine alone: %s of the CPU time",
			quoted("^"+regexp.QuoteMeta(r.Name)+"$"), percent(share)))
	case x.Calls > 0 && path != "":
		next = append(next, fmt.Sprintf("wpptrace hot --callers %s %s prints who calls it",
			quoted(names.Shorten(name, widest)), quoted(path)))
	case x.Paths > 0 && path != "":
		next = append(next, fmt.Sprintf("wpptrace hot --disasm %s %s prints how often each of "+
			"its instructions ran", quoted(names.Shorten(name, widest)), quoted(path)))
	}
	return next
}

// quoted is a word as a shell has to be given it.
func quoted(word string) string {
	word = names.Printable(word)
	if !strings.ContainsFunc(word, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./+,:@%", r)
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// recorded prints that the recording of one of several processes is over.
func (p *printer) recorded(e follow.Recorded) error {
	r := e.Result
	if !r.Written {
		if line, lost := lossText(r.Losses, p.flags); lost {
			fmt.Fprintln(p.errs, line)
		}
		return nil
	}
	stat, err := query.NewStat(r.Snapshot, r.FileSize)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%d paths, %d bytes", stat.Paths, r.FileSize)
	if n := r.Losses.Events; n > 0 {
		text += fmt.Sprintf(", %d events lost", n)
	}
	if stat.Anomalies > 0 {
		text += fmt.Sprintf(", %d events did not fit the program: its paths may be wrong near "+
			"#cut and #unwind", stat.Anomalies)
	}
	p.say("process %d (%s): %s: %s", e.PID, e.Name, r.Path, text)
	if p.flags.json {
		return report.WriteStatJSON(p.report, stat)
	}
	return nil
}

// unrecordedText says why a process is not recorded.
func (p *printer) unrecordedText(why error) string {
	if many := (*follow.TooManyError)(nil); errors.As(why, &many) {
		return fmt.Sprintf("%d are recorded at the same time, as many as --memory %v is for",
			many.Most, p.flags.memory.all)
	}
	return oneLine(why)
}

// followed prints what is left to say of several recordings that are over.
func (p *printer) followed(r *follow.Result) error {
	for _, reason := range r.Unrecorded {
		if n := reason.Processes; n > 1 {
			p.insist("nor are %d more: %s", n-1, p.unrecordedText(reason.Err))
		}
	}
	if n := r.Missed; n > 0 {
		p.insist("%d processes were not followed: there were too many at the same time", n)
	}
	return p.losses(lossText(r.Losses, p.flags))
}

// notInMemory says where the events were lost that attach.Metrics.Dropped counts, and what to do.
const notInMemory = "where the kernel could not read what a jump of the program was about to " +
	"read, " +
	"in a page that was not in memory (swapped out, or never touched before): record again, or " +
	"leave the routine out with -N"

// lossText says what was lost, where, and what to do.
func lossText(l record.Losses, o *recordFlags) (line string, lost bool) {
	if l.Err != nil {
		return fmt.Sprintf("lost: unknown (%v)", l.Err), true
	}
	m, events := &l.Metrics, l.Events
	switch {
	case events > 0:
		unknown := ""
		if m.LostByWhom > 0 {
			unknown = " or more, too many threads to know of each what it lost"
		}
		why, or := "", ", or --on-overflow stop"
		if o.onOverflow == overflowStop {
			why, or = ", and the process was not to be stopped, somebody let it go on (a "+
				"debugger, strace, SIGCONT), or thousands of threads ended at once", ""
		}
		places := fmt.Sprintf("lost: %d events in %d places%s", events, l.Places, unknown)
		full := fmt.Sprintf("where the ring buffer was full%s: use a larger --ring-size than %v%s",
			why, o.ring, or)
		switch {
		case m.Dropped >= events:
			return fmt.Sprintf("%s, %s", places, notInMemory), true
		case m.Dropped > 0:
			return fmt.Sprintf("%s: %d %s; the others %s", places, m.Dropped, notInMemory,
				full), true
		}
		return fmt.Sprintf("%s, %s", places, full), true
	case m.NoStorage > 0:
		return fmt.Sprintf("lost: %d events for which the kernel had no memory", m.NoStorage), true
	}
	return "lost: 0 events", false
}
