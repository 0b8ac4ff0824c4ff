package planreport

import (
	"fmt"
	"time"

	"wpptrace/internal/record"
	"wpptrace/internal/record/overhead"
	"wpptrace/internal/text"
	"wpptrace/internal/traced"
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/figures"
	"wpptrace/query/names"
)

// Summary is a plan in one line.
func Summary(p *plan.Plan) string {
	traced, stepped := figures.Count(p)
	return fmt.Sprintf("%d of %d routines, %s (%d single-stepped)", traced, len(p.Routines),
		text.Count(len(p.Sites), "probe"), stepped)
}

// Refused says why nothing of a program, or of a library, is traced that was to be, or why some of
// it is not; "": there is nothing to say.
func Refused(p *traced.Program) string {
	if refusal := p.Refusal(); refusal != "" {
		return refusal
	}
	if n, why := p.Obstructed(); n > 0 {
		return fmt.Sprintf("%s left out: %s", text.Count(n, "routine"), why)
	}
	return ""
}

// Lines sums up a plan for a recording that made this selection, and warns of one that is slower
// than it might be, or that much is missing in. Cost: debug information is read, for a second.
func Lines(e record.Planned, sel traced.Selection) (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	p := e.Program.Plan
	say("%s", Summary(p))
	if refused := Refused(e.Program); refused != "" {
		say("%s", refused)
	}
	if e.Program.Image.IsGo() {
		say("it is %s", goProgram)
	}
	const soon = 32 << 20 // bytes of debug information that are read in a second
	if into := e.Program.InlinedElsewhere(sel.Only, soon); len(into) > 0 {
		say("what -F selects is also inlined into %s: what runs there is not traced",
			names.Fit(names.List(into), 200))
	}
	const much, usual = 0.05, 1 << 12 // usual are the bytes of start-up code and linkage stubs
	if bytes, share := figures.Unlisted(p); share > much && bytes > usual {
		say("%d bytes of its code, %.0f%%, are in no routine, as start-up code and what has no "+
			"unwind information: they are not traced", bytes, 100*share)
	}
	if sel.Weights != "" { // estimates are too rough for that
		if share, most := figures.TooCostly(p); share > much {
			say("%.0f%% of the instructions that ran in %s, of what is to be traced, are in "+
				"routines left out, most in %s: they need single-stepped probes, which "+
				"--complete admits", 100*share, sel.Weights, names.Fit(most.Name, 60))
		}
	}
	if e.Removal > time.Second {
		say("on this kernel, before Linux 6.6, taking the probes out takes %.0f s, which "+
			"nothing can hurry; until then others that run the program are slowed down too",
			e.Removal.Seconds())
	}
	if share, most := figures.SingleStepped(p); share > noticeable {
		say("%s%% of the expected hits are single-stepped, and slow, most in %s: -N leaves it out",
			text.Factor(100*share), names.Fit(most.Name, 60))
	}
	return lines
}

// noticeable is the share of single-stepped hits from which they cost as much as a third of the
// others.
const noticeable = 0.01

// presently says how much slower a process will be at the load that it has, and where its CPU time
// goes; "": that is not known, or is nothing new.
func presently(e record.Forecast) string {
	const (
		busy = 0.9
		few  = 50 // samples
	)
	share, of := e.Load, ""
	switch {
	case e.Traced.Of >= few:
		share *= e.Traced.Value()
		of = fmt.Sprintf(", %.0f%% of it in traced routines", 100*e.Traced.Value())
	case e.Forecast.Some:
		return ""
	}
	if share >= busy {
		return ""
	}
	slower := 1 + share*(e.Forecast.SlowDown(overhead.UsualTime)-1)
	return fmt.Sprintf("at its present load, %.0f%% of a CPU%s: some %s times",
		100*e.Load, of, text.Factor(slower))
}

// Forecast says how much slower the process will be, and warns where putting the probes in is felt.
// percent is the budget of its CPU time, 0: there is none.
func Forecast(e record.Forecast, percent float64) []string {
	bound := "it is measured as it runs"
	if percent > 0 {
		bound = fmt.Sprintf("--overhead keeps it to %v%% in the long run", percent)
	}
	lines := []string{fmt.Sprintf("slow-down: %v; %s", e.Forecast, bound)}
	if line := presently(e); line != "" {
		lines = append(lines, line)
	}
	if percent > 0 { // hot probes go in apart from the others
		return lines
	}
	// usualWait is for each probe
	const usualWait, felt = 30 * time.Microsecond, 500 * time.Millisecond
	takes := time.Duration(min(e.Load, 1) * float64(e.Probes) * float64(usualWait))
	if takes > felt {
		lines = append(lines, fmt.Sprintf("putting in %d probes may hold it up for some %.1f s, "+
			"and taking them out again, too: -F narrows what is traced", e.Probes, takes.Seconds()))
	}
	return lines
}
