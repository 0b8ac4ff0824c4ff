package planreport

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"wpptrace/internal/parallel"
	"wpptrace/internal/record"
	"wpptrace/internal/record/overhead"
	"wpptrace/internal/text"
	"wpptrace/internal/traced"
	"wpptrace/loader/attach"
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/figures"
	"wpptrace/loader/plan/planner"
	"wpptrace/loader/plan/verify"
	"wpptrace/query/names"
	"wpptrace/query/report"
)

// goProgram is what there is to say of a program of Go.
const goProgram = "a Go program: what is written in Go cannot be traced, only its C functions are"

// A Report sums up a plan. Its JSON form grows, within a version, by new members only.
type Report struct {
	SchemaVersion int    `json:"schema_version"`
	Program       string `json:"program"` // the file that was planned

	RoutinesTotal  int `json:"routines_total"`    // that were found
	RoutinesTraced int `json:"routines_observed"` // that are traced
	// traced without a probe: their callers imply what they do
	RoutinesImplied int `json:"routines_implied"`
	// that can run without a hit, where their callers imply it
	RoutinesProbeFree int     `json:"routines_silent"`
	AcyclicPaths      float64 `json:"acyclic_paths"` // of the routines that are traced
	// that run without a hit: registers count their rounds
	LoopsCounted int `json:"loops_counted"`

	Probes int `json:"probes"` // that go into the process
	// of these, on instructions that are single-stepped
	ProbesSingleStep  int `json:"probes_single_stepped"`
	ProbesConditional int `json:"probes_on_conditional_jumps"` // of these, on conditional jumps

	// by the weights of the plan
	HitsPerPath float64 `json:"expected_hits_per_path"`
	// by the weights of the plan
	HitsPerThousand float64 `json:"expected_hits_per_1000_instructions"`
	// by the weights of the plan
	HitsSingleStepPerThousand float64 `json:"expected_hits_single_stepped_per_1000_instructions"`
	// at most, while it runs these routines alone
	SlowDown float64 `json:"predicted_slow_down"`
	// while it runs these routines alone
	UsualSlowDown float64 `json:"usual_slow_down"`

	LeftOut  []LeftOut `json:"left_out"`           // why routines are not traced
	Routines []Routine `json:"routines,omitempty"` // with -v alone
	// linkage stubs, start-up code: what has no unwind information nor a symbol
	Unlisted int `json:"bytes_in_no_routine"`

	// with -F: routines that it does not select, into which some that it selects are inlined: what
	// runs there is not traced
	Inlined []string `json:"inlined_elsewhere,omitempty"`

	// those that the program's file asks for, without what --lib names
	Libraries []string `json:"unobserved_libraries,omitempty"`
	// what is written in Go cannot be traced
	Go bool `json:"go_program,omitempty"`

	Canary *Canary `json:"canary,omitempty"` // with --canary alone

	Verified *bool    `json:"verified,omitempty"` // with --verify alone
	Faults   []string `json:"faults,omitempty"`   // what --verify found

	trouble     error         // of its debug information
	trial       *record.Trial // nil: there was none
	forecast    overhead.Forecast
	routines    []*plan.Routine
	figures     *figures.Figures
	stepped     float64 // share of the expected hits
	mostStepped *plan.Routine
}

// A LeftOut is a reason why routines are not traced.
type LeftOut struct {
	Reason   string `json:"reason"`   // why
	Routines int    `json:"routines"` // how many
	Example  string `json:"example"`  // the name of one
}

// New reports the plan of a program whose file is called name and that was planned with this
// selection, with those libraries that were added to it; called are the names under which the
// program needs these. Cost: linear in the program, and in its debug information, which is read.
func New(p *traced.Program, name string, sel traced.Selection, called []string) *Report {
	var f *figures.Figures
	var c overhead.Forecast
	parallel.Both(func() { f = figures.Of(p.Plan) },
		func() { c = overhead.NewForecast(p.Plan, attach.TypicalCost(), p.IsPart()) })
	r := &Report{
		SchemaVersion: report.SchemaVersion, Program: name, Go: p.Image.IsGo(),
		LeftOut:       []LeftOut{},
		RoutinesTotal: f.Routines, RoutinesTraced: f.Traced, RoutinesImplied: f.Implied,
		RoutinesProbeFree: f.ProbeFree,
		AcyclicPaths:      f.AcyclicPaths, LoopsCounted: f.LoopsCounted,
		Probes: f.Probes, ProbesSingleStep: f.SingleStep, ProbesConditional: f.Conditional,
		HitsPerThousand:           1000 * (c.Emulated + c.Stepped),
		HitsSingleStepPerThousand: 1000 * c.Stepped,
		SlowDown:                  c.SlowDown(overhead.LeastTime),
		UsualSlowDown:             c.SlowDown(overhead.UsualTime),
		forecast:                  c, routines: p.Plan.Routines, figures: f,
	}
	r.stepped, r.mostStepped = figures.SingleStepped(p.Plan)
	r.Unlisted, _ = figures.Unlisted(p.Plan)
	if f.ExpectedPaths > 0 {
		r.HitsPerPath = f.ExpectedHits / f.ExpectedPaths
	}
	for _, l := range f.LeftOut {
		r.LeftOut = append(r.LeftOut, LeftOut(l))
	}
	if lines, err := p.Image.Lines(); err == nil {
		r.trouble = lines.Trouble()
	}
	r.Inlined = p.InlinedElsewhere(sel.Only, math.MaxUint64)
	for _, needed := range p.Image.Needed {
		if !sel.Wants(needed) && !slices.Contains(called, needed) {
			r.Libraries = append(r.Libraries, needed)
		}
	}
	return r
}

// Faults lists what the verifier finds in plans that are not parts of each other's. Cost: seconds
// where a plan is large.
func Faults(plans ...*plan.Plan) (faults []string) {
	for _, p := range plans {
		for _, f := range verify.Plan(p) {
			faults = append(faults, f.String())
		}
	}
	return faults
}

// AddProof adds what the verifier found: no faults, or these.
func (r *Report) AddProof(faults []string) {
	proven := len(faults) == 0
	r.Verified, r.Faults = &proven, faults
}

// AddTrial adds what a process did while its probes stood for a moment.
func (r *Report) AddTrial(t *record.Trial) { r.trial, r.Canary = t, newCanary(t) }

// Trouble says why a snapshot will not have all inlined calls; "": it will.
func (r *Report) Trouble() string {
	if r.trouble == nil {
		return ""
	}
	why := r.trouble.Error()
	return fmt.Sprintf("%s: the snapshot will not have all inlined calls: %s",
		names.Fit(r.Program, 60), names.Printable(why))
}

// Unproven is the error that the plan has faults, or nil.
func (r *Report) Unproven() error {
	if len(r.Faults) == 0 {
		return nil
	}
	return fmt.Errorf("verify the plan of %s: %s: what is recorded there may be wrong: leave "+
		"these routines out with -N", r.Program, text.Count(len(r.Faults), "fault"))
}

// WriteText writes a row for each figure and, if it is to be verbose, a line for each routine that
// is selected.
func (r *Report) WriteText(w io.Writer, verbose bool) error {
	out := bufio.NewWriter(w)
	row := func(name string, format string, args ...any) {
		fmt.Fprintf(out, "%-15s "+format+"\n", append([]any{name}, args...)...)
	}
	row("program", "%s", names.Printable(r.Program))
	if r.Go {
		row("", "%s", goProgram)
	}
	const tenths = 1000
	// 100 are all
	share := math.Floor(tenths*float64(r.RoutinesTraced)/float64(max(r.RoutinesTotal, 1))) / 10
	row("routines", "%d of %d traced (%.1f%%)", r.RoutinesTraced, r.RoutinesTotal, share)
	row("", "%d of them without a probe, %d more at times without a hit: callers imply it",
		r.RoutinesImplied, r.RoutinesProbeFree)
	row("acyclic paths", "%.6g", r.AcyclicPaths)
	row("loops", "%d run without a hit: registers count their rounds", r.LoopsCounted)
	row("probes", "%d: %d emulated, %d single-stepped; %d on conditional jumps", r.Probes,
		r.Probes-r.ProbesSingleStep, r.ProbesSingleStep, r.ProbesConditional)
	row("expected hits", "%.2f a path; %.0f in 1000 instructions, %.1f of them single-stepped",
		r.HitsPerPath, r.HitsPerThousand, r.HitsSingleStepPerThousand)
	if share, most := r.stepped, r.mostStepped; share > noticeable {
		row("warning", "%s%% of the expected hits are single-stepped, and slow, most in",
			text.Factor(100*share))
		row("", "%s: -N leaves it out",
			names.Fit(most.Name, report.TableColumns-16-len(": -N leaves it out")))
	}
	row("slow-down", "%v", r.forecast)
	row("", "if a hit takes %v, %v single-stepped: -p and stat measure what it does here",
		r.forecast.Cost.Emulated, r.forecast.Cost.Stepped)
	if r.trial != nil {
		row("canary", "%s", trialText(r.trial))
	}
	if len(r.Inlined) > 0 {
		row("inlined", "%s", names.Fit("what -F selects is also inlined into "+
			names.List(r.Inlined), report.TableColumns-16))
		row("", "what runs there is not traced: -F with these, too")
	}
	row("left out", "%d of the routines", r.RoutinesTotal-r.RoutinesTraced)
	for _, l := range r.LeftOut {
		reason := l.Reason + admitting(l.Reason)
		fmt.Fprintf(out, "%15d %s (as %s)\n", l.Routines, reason,
			names.Fit(l.Example, report.TableColumns-16-len(reason)-6))
	}
	row("not listed", "%d bytes in no routine, as linkage stubs, start-up code and what has no "+
		"unwind", r.Unlisted)
	row("", "information: not traced")
	if len(r.Libraries) > 0 {
		for i, line := range lines("not traced without --lib: ", r.Libraries,
			report.TableColumns-16) {
			row([]string{"libraries", ""}[min(i, 1)], "%s", line)
		}
	}
	if r.Verified != nil {
		r.writeProof(out, row)
	}
	if verbose {
		r.writeRoutines(out)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	return nil
}

// lines names all of a list, in lines of so many columns at most unless a name is longer.
func lines(begin string, list []string, columns int) (lines []string) {
	line := begin
	for i, name := range list {
		name = names.Printable(name)
		if i < len(list)-1 {
			name += ","
		}
		if line != begin && len(line)+len(name) > columns {
			lines, line = append(lines, strings.TrimRight(line, " ")), ""
		}
		line += name + " "
	}
	return append(lines, strings.TrimRight(line, " "))
}

func (r *Report) writeProof(out *bufio.Writer, row func(name, format string, args ...any)) {
	if *r.Verified {
		row("verified", "the events of the probes determine every path of the %d routines",
			r.RoutinesTraced)
		return
	}
	row("not verified", "%s", text.Count(len(r.Faults), "fault"))
	for _, f := range r.Faults {
		fmt.Fprintf(out, "%15s %s\n", "", names.Printable(f))
	}
}

// writeRoutines writes a line for each routine that is selected. A reason that leaves too little of
// it for the name has a line of its own.
func (r *Report) writeRoutines(out *bufio.Writer) {
	const room, leastName = report.TableColumns - 41, 12
	fmt.Fprintf(out, "\n%12s %6s %12s %6s  ROUTINE\n", "ENTRY", "BLOCKS", "PATHS", "PROBES")
	for i, pr := range r.routines {
		if pr.Traced() {
			fmt.Fprintf(out, "%12x %6d %12.6g %6d  %s\n", pr.Addr, len(pr.Blocks),
				r.figures.PathsOf[i], r.figures.ProbesOf[i], names.Fit(pr.Name, room))
			continue
		}
		if pr.Cause == planner.NotSelected {
			continue
		}
		reason := pr.LeftOut + admitting(pr.Cause)
		name, separator := room-len(": ")-len(reason), ": "
		if name < leastName {
			name, separator = room, "\n"+strings.Repeat(" ", 20)
		}
		fmt.Fprintf(out, "%12x %6d %12s %6s  %s%s%s\n", pr.Addr, len(pr.Blocks), "-", "-",
			names.Fit(pr.Name, name), separator, reason)
	}
}

// admitting is what to print behind a reason of this cause: the flag that admits its routines.
func admitting(cause string) string {
	if cause == planner.TooDear {
		return " (--complete admits it)"
	}
	return ""
}

// A Routine is what -v prints of a routine.
type Routine struct {
	Name   string `json:"name"`   // demangled
	Entry  uint64 `json:"entry"`  // link-time address
	Blocks int    `json:"blocks"` // basic blocks
	// absent where it is not traced, or they cannot be numbered
	Paths   float64 `json:"acyclic_paths,omitempty"`
	Probes  int     `json:"probes"`             // in it
	LeftOut string  `json:"left_out,omitempty"` // why it is not traced
}

// WriteJSON writes one JSON object; if it is to be verbose, with the routines that are selected.
func (r *Report) WriteJSON(w io.Writer, verbose bool) error {
	r.Routines = nil
	for i, pr := range r.routines {
		if verbose && pr.Cause != planner.NotSelected {
			r.Routines = append(r.Routines,
				Routine{pr.Name, pr.Addr, len(pr.Blocks), r.figures.PathsOf[i],
					r.figures.ProbesOf[i], pr.LeftOut})
		}
	}
	return report.WriteJSON(w, r, "plan")
}
