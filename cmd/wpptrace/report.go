package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"wpptrace/compress/wpp"
	"wpptrace/internal/record"
	"wpptrace/internal/record/follow"
	"wpptrace/internal/recordreport"
	"wpptrace/loader/target"
	"wpptrace/query"
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
	p.sayEach(recordreport.Windows(r))
	p.unmatched(r)
	elsewhere := p.elsewhere(r)
	line, lost := p.lossText(r.Losses)
	if !lost && !elsewhere && !slices.ContainsFunc(r.Snapshot.Symbols,
		func(x wpp.Symbol) bool { return !x.IsMark }) {
		p.say("%s", recordreport.Nothing(r, process, p.flags.selection.byName()))
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

// lossText says what was lost.
func (p *printer) lossText(l record.Losses) (line string, lost bool) {
	return recordreport.Losses(l, p.flags.ring, p.flags.onOverflow == overflowStop)
}

// elsewhere prints that the CPU time went to external code, and reports whether it did. Where
// routines were selected by name, nobody expects anything else.
func (p *printer) elsewhere(r *record.Result) bool {
	if p.flags.quiet || p.flags.selection.byName() {
		return false
	}
	text := recordreport.Elsewhere(r, len(p.flags.selection.libs) > 0)
	if text != "" {
		p.say("%s", text)
	}
	return text != ""
}

// unmatched prints which of the user's expressions have matched nothing.
func (p *printer) unmatched(r *record.Result) {
	for _, m := range recordreport.UnmatchedAll(r, p.flags.selection.compiled, p.pid) {
		p.insist("%s", m)
	}
}

// unwritten prints what there is to say of a recording that is in no file, and will be lost.
func (p *printer) unwritten(r *record.Result) {
	if err := p.printReport(r.Snapshot, "", 0); err != nil {
		p.say("%v", err)
	}
	if line, lost := p.lossText(r.Losses); lost || !p.flags.quiet {
		fmt.Fprintln(p.errs, line)
	}
}

// printReport prints where the CPU time went, what ran by routine and the hot subpaths, or with
// --json the figures.
func (p *printer) printReport(s *wpp.Snapshot, path string, fileSize uint64) error {
	switch {
	case p.flags.json && p.flags.counted:
		return report.WriteProfileJSON(p.report, s)
	case p.flags.json:
		stat, err := query.NewStat(s, fileSize)
		if err != nil {
			return err
		}
		return report.WriteStatJSON(p.report, stat)
	case p.flags.quiet:
		return nil
	}
	return recordreport.WriteTables(p.report, s, path, hottest, len(p.flags.selection.only) > 0)
}

// recorded prints that the recording of one of several processes is over.
func (p *printer) recorded(e follow.Recorded) error {
	r := e.Result
	if !r.Written {
		if line, lost := p.lossText(r.Losses); lost {
			fmt.Fprintln(p.errs, line)
		}
		return nil
	}
	stat, err := query.NewStat(r.Snapshot, r.FileSize)
	if err != nil {
		return err
	}
	p.say("process %d (%s): %s: %s", e.PID, e.Name, r.Path, recordreport.Recorded(r, stat))
	if p.flags.json && p.flags.counted {
		return report.WriteProfileJSON(p.report, r.Snapshot)
	}
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
	return p.losses(p.lossText(r.Losses))
}
