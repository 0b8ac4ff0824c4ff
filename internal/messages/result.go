package messages

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
	"wpptrace/internal/valuing"
	"wpptrace/loader/target"
	"wpptrace/query"
	"wpptrace/query/report"
)

// Hottest is how many subpaths are printed at the end of a recording.
const Hottest = 10

// Result prints the report of a recording that is over. Its error is of printing, or ErrLost.
func (p *Printer) Result(r *record.Result, process *target.Process) error {
	if !r.Written {
		p.unwritten(r)
		return nil
	}
	if r.Losses.Err == nil {
		p.Log.Info("counted in the kernel", "failures", r.Losses.Metrics)
	}
	unprinted := p.printReport(r.Snapshot, r.Path, r.FileSize)
	if errors.Is(unprinted, unix.EPIPE) { // who read it has had enough
		unprinted = nil
	}
	p.Say("snapshot: %s (%d bytes)", r.Path, r.FileSize)
	if n := r.Snapshot.Figures.Anomalies; n > 0 {
		p.Say("%d events did not fit the program: its paths may be wrong near #cut and #unwind "+
			"(-v prints more)", n)
	}
	p.sayEach(recordreport.Windows(r))
	overlaps, err := recordreport.Overlaps(r.Snapshot)
	p.sayEach(overlaps)
	recorded, unknown := valuing.Recorded(r.Snapshot, r.Path)
	p.sayEach(recorded)
	p.unmatched(r)
	elsewhere := p.elsewhere(r)
	line, lost := p.lossText(r.Losses)
	if !lost && !elsewhere && !slices.ContainsFunc(r.Snapshot.Symbols,
		func(x wpp.Symbol) bool { return !x.IsMark }) {
		p.Say("%s", recordreport.Nothing(r, process, p.Flags.byName()))
	}
	return cmp.Or(unprinted, err, unknown, p.losses(line, lost))
}

// ErrLost says that data were lost, where that is to be an error.
var ErrLost = errors.New("data were lost")

// Watched prints what is to be known of a recording whose report was on the screen all the time.
// Its error is of printing, or ErrLost.
func (p *Printer) Watched(r *record.Result) error {
	if r.Written {
		p.Say("snapshot: %s (%d bytes)", r.Path, r.FileSize)
	}
	p.sayEach(recordreport.Windows(r))
	p.unmatched(r)
	return p.losses(p.lossText(r.Losses))
}

// losses prints what was lost.
func (p *Printer) losses(line string, lost bool) error {
	if lost || !p.Flags.Quiet {
		fmt.Fprintln(p.Err, line)
	}
	if lost && p.Flags.Strict {
		return ErrLost
	}
	return nil
}

// lossText says what was lost.
func (p *Printer) lossText(l record.Losses) (line string, lost bool) {
	return recordreport.Losses(l, p.Flags.Ring, p.Flags.Stops)
}

// elsewhere prints that the CPU time went to external code, and reports whether it did. Where
// routines were selected by name, nobody expects anything else.
func (p *Printer) elsewhere(r *record.Result) bool {
	if p.Flags.Quiet || p.Flags.byName() {
		return false
	}
	text := recordreport.Elsewhere(r, len(p.Flags.Selection.Libraries) > 0)
	if text != "" {
		p.Say("%s", text)
	}
	return text != ""
}

// unmatched prints which of the user's expressions have matched nothing.
func (p *Printer) unmatched(r *record.Result) {
	for _, m := range recordreport.UnmatchedAll(r, p.Flags.Selection, p.PID) {
		p.Insist("%s", m)
	}
}

// unwritten prints what there is to say of a recording that is in no file, and will be lost.
func (p *Printer) unwritten(r *record.Result) {
	if err := p.printReport(r.Snapshot, "", 0); err != nil {
		p.Say("%v", err)
	}
	if line, lost := p.lossText(r.Losses); lost || !p.Flags.Quiet {
		fmt.Fprintln(p.Err, line)
	}
}

// printReport prints where the CPU time went, what ran by routine and the hot subpaths, or with
// --json the figures.
func (p *Printer) printReport(s *wpp.Snapshot, path string, fileSize uint64) error {
	switch {
	case p.Flags.JSON && p.Flags.Counted:
		return report.WriteProfileJSON(p.Out, s)
	case p.Flags.JSON:
		stat, err := query.NewStat(s, fileSize)
		if err != nil {
			return err
		}
		return report.WriteStatJSON(p.Out, stat)
	case p.Flags.Quiet:
		return nil
	}
	return recordreport.WriteTables(p.Out, s, path, Hottest, len(p.Flags.Selection.Only) > 0)
}

// recorded prints that the recording of one of several processes is over.
func (p *Printer) recorded(e follow.Recorded) error {
	r := e.Result
	if !r.Written {
		if line, lost := p.lossText(r.Losses); lost {
			fmt.Fprintln(p.Err, line)
		}
		return nil
	}
	stat, err := query.NewStat(r.Snapshot, r.FileSize)
	if err != nil {
		return err
	}
	p.Say("process %d (%s): %s: %s", e.PID, e.Name, r.Path, recordreport.Recorded(r, stat))
	if p.Flags.JSON && p.Flags.Counted {
		return report.WriteProfileJSON(p.Out, r.Snapshot)
	}
	if p.Flags.JSON {
		return report.WriteStatJSON(p.Out, stat)
	}
	return nil
}

// unrecordedText says why a process is not recorded.
func (p *Printer) unrecordedText(why error) string {
	if many := (*follow.TooManyError)(nil); errors.As(why, &many) {
		return fmt.Sprintf("%d are recorded at the same time, as many as --memory %v is for",
			many.Most, p.Flags.Memory)
	}
	return p.line(why)
}

// Followed prints what is left to say of several recordings that are over. Its error is of printing
// one of them, or ErrLost.
func (p *Printer) Followed(r *follow.Result) error {
	if p.err != nil {
		return p.err
	}
	for _, reason := range r.Unrecorded {
		if n := reason.Processes; n > 1 {
			p.Insist("nor are %d more: %s", n-1, p.unrecordedText(reason.Err))
		}
	}
	if n := r.Missed; n > 0 {
		p.Insist("%d processes were not followed: there were too many at the same time", n)
	}
	return p.losses(p.lossText(r.Losses))
}
