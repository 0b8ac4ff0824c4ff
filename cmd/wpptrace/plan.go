package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"wpptrace/internal/parallel"
	"wpptrace/loader/attach"
	"wpptrace/loader/image"
	"wpptrace/loader/paths"
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/verify"
	"wpptrace/loader/target"
	"wpptrace/loader/uprobe"
	"wpptrace/query"
)

func planCommand() *cobra.Command {
	var pid int
	var sel selection
	var verbose, asJSON, prove, try bool
	c := &cobra.Command{
		Use:   "plan [FLAG...] {-p PID | FILE}",
		Short: "Tell what would be probed in a process or a file and what not, why, and at what cost",
		Example: `  wpptrace plan -p 4711            of a process
  wpptrace plan -v /usr/bin/bash   of a file, routine by routine; needs no privileges
  wpptrace plan --complete -F '^parse' /usr/bin/bash
  wpptrace plan --lib 'libssl*' -p 4711   and of a library that it has loaded
  wpptrace plan --canary -p 4711   and how much slower it really gets: probes stand for a moment
  wpptrace plan --verify FILE      prove that the words of the probes determine every path`,
		Long: `Nothing is attached, except with --canary. Expected hits rest on a static estimate of how often
each block runs, or on how often it ran in the recording that --weights names. The slow-down is
that of the program's own code, if that computes and never waits, and at most, running as fast as
any processor can; the time spent in libraries, in the kernel and asleep stays as it is. With -F or
-N it is that of the routines selected, while they run: the others run as ever. What a hit takes is
assumed; a virtual machine may take ten times that. --canary measures the slow-down: the probes
stand in the process for 50ms, nothing is kept, and they go again. Where nearly all the time then
was that of hits, it tells what the slow-down is at least, and by the instructions that ran, at
most.

With -p the plan is that of a recording in windows, as -p makes it unless --overhead 0 is given:
every loop has a probe then, for windows begin and end amid loops.

--verify proves the plan, apart from what made it: between two words there is one way at most, no
circle of jumps or calls runs without a word, and no silence is left that code which is not
observed could break by calling back, throwing or jumping. Each fault names its routine and the
blocks of both ways that nothing tells apart; then the exit status is 1.`,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return usagef("a FILE expected, not %s", arguments(len(args)))
			case c.Flags().Changed("pid") == (len(args) == 1):
				return usagef("give either -p PID or a FILE to plan")
			case len(sel.libs) > 0 && len(args) == 1:
				return usagef("--lib needs -p: which libraries %s will run with is not known", args[0])
			case try && len(args) == 1:
				return usagef("--canary needs -p: %s does not run", args[0])
			case try && len(sel.libs) > 0:
				return usagef("--canary cannot try --lib: give one of them")
			}
			if err := sel.checkGlobs(); err != nil {
				return err
			}
			exe, name, err := openProgram(pid, args)
			if err != nil {
				return err
			}
			defer exe.Close()
			sel.windows = len(args) == 0 && uprobe.Here().Windows() == nil
			p, err := loadProgram(exe, name, sel)
			if err != nil {
				return err
			}
			programs, err := planLibraries(pid, sel, c.ErrOrStderr())
			if err != nil {
				return err
			}
			var faults []string
			for _, p := range append([]*program{p}, programs...) {
				if prove {
					faults = append(faults, faultsOf(p.plan)...)
				}
			}
			for _, library := range programs {
				if err := p.plan.Append(library.plan); err != nil {
					return err
				}
			}
			r := newPlanReport(p, name)
			if len(sel.libs) == 0 {
				r.Libraries = p.image.Needed
			}
			if try {
				if r.Canary, err = sendCanary(pid, exe, p); err != nil {
					return err
				}
			}
			if prove {
				proven := len(faults) == 0
				r.Verified, r.Faults = &proven, faults
			}
			if asJSON {
				err = r.writeJSON(c.OutOrStdout())
			} else {
				err = r.write(c.OutOrStdout(), verbose)
			}
			return cmp.Or(err, r.unproven())
		},
	}
	c.Flags().IntVarP(&pid, "pid", "p", 0, "plan for process `PID`")
	addSelection(c.Flags(), &sel)
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "list the routines")
	c.Flags().BoolVar(&try, "canary", false, "put the probes in for a moment, and tell the slow-down as measured")
	c.Flags().BoolVar(&prove, "verify", false, "prove that the probes' words determine every path")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// openProgram opens the executable of a process, or a file.
func openProgram(pid int, args []string) (exe *os.File, name string, err error) {
	if len(args) == 1 {
		exe, _, err = image.OpenRegular(args[0])
		if err != nil {
			err = fmt.Errorf("plan probes: %w: name a program's file by its path, or a running process with -p", err)
		}
		return exe, filepath.Base(args[0]), err
	}
	p, err := target.Open(pid)
	if err != nil {
		return nil, "", err
	}
	defer p.Close()
	exe, err = p.Executable()
	return exe, p.Name, err
}

// A planReport sums up a plan. Its JSON form grows, within a version, by new members only.
type planReport struct {
	SchemaVersion int    `json:"schema_version"`
	Program       string `json:"program"`

	RoutinesTotal    int     `json:"routines_total"`
	RoutinesObserved int     `json:"routines_observed"`
	RoutinesImplied  int     `json:"routines_implied"` // observed without a probe: their callers imply what they do
	RoutinesSilent   int     `json:"routines_silent"`  // that can run without a hit, where their callers imply it
	AcyclicPaths     float64 `json:"acyclic_paths"`
	LoopsCounted     int     `json:"loops_counted"` // that run without a hit: registers count their rounds

	Probes            int `json:"probes"`
	ProbesSingleStep  int `json:"probes_single_stepped"`
	ProbesConditional int `json:"probes_on_conditional_jumps"`

	HitsPerPath               float64 `json:"expected_hits_per_path"`
	HitsPerThousand           float64 `json:"expected_hits_per_1000_instructions"`
	HitsSingleStepPerThousand float64 `json:"expected_hits_single_stepped_per_1000_instructions"`
	SlowDown                  float64 `json:"predicted_slow_down"` // at most
	UsualSlowDown             float64 `json:"usual_slow_down"`

	LeftOut  []leftOut `json:"left_out"`
	Unlisted int       `json:"bytes_in_no_routine"` // linkage stubs, start-up code: what has no unwind information nor a symbol

	Libraries []string `json:"unobserved_libraries,omitempty"` // without --lib: those that the program's file asks for
	Go        bool     `json:"go_program,omitempty"`

	Canary *canary `json:"canary,omitempty"` // with --canary alone

	Verified *bool    `json:"verified,omitempty"` // with --verify alone
	Faults   []string `json:"faults,omitempty"`

	forecast                    forecast
	routines                    []*plan.Routine
	probes                      []int     // by routine
	paths                       []float64 // by routine: acyclic paths; 0 if they cannot be numbered
	expectedHits, expectedPaths float64
	stepped                     float64 // share of the expected hits
	mostStepped                 *plan.Routine
}

// leftOut counts the routines that are not observed for a reason.
type leftOut struct {
	Reason   string `json:"reason"`
	Routines int    `json:"routines"`
	Example  string `json:"example"`
}

func newPlanReport(p *program, name string) *planReport {
	r := &planReport{SchemaVersion: query.SchemaVersion, Program: name, RoutinesTotal: len(p.plan.Routines), Probes: len(p.plan.Sites),
		Go: p.isGo(), LeftOut: []leftOut{}, routines: p.plan.Routines, probes: make([]int, len(p.plan.Routines))}
	parallel.Both(r.numberPaths, func() { r.forecast = newForecast(p, attach.TypicalCost()) })
	f := r.forecast
	r.HitsPerThousand, r.HitsSingleStepPerThousand, r.SlowDown, r.UsualSlowDown = 1000*(f.emulated+f.stepped), 1000*f.stepped, f.slowDown(leastTime), f.slowDown(usualTime)
	r.stepped, r.mostStepped = stepped(p.plan)
	r.Unlisted, _ = unlisted(p.plan)
	for i := range p.plan.Sites {
		s := &p.plan.Sites[i]
		r.probes[s.Routine]++
		if s.Stepped {
			r.ProbesSingleStep++
		}
		if s.Condition < plan.NoCondition {
			r.ProbesConditional++
		}
	}
	for i, pr := range p.plan.Routines {
		r.count(pr, r.probes[i])
	}
	if r.expectedPaths > 0 {
		r.HitsPerPath = r.expectedHits / r.expectedPaths
	}
	slices.SortStableFunc(r.LeftOut, func(a, b leftOut) int { return cmp.Compare(b.Routines, a.Routines) })
	return r
}

// unlisted counts the bytes of code that are in no routine, and tells their share.
func unlisted(p *plan.Plan) (bytes int, share float64) {
	listed := uint64(0)
	for _, part := range p.Parts {
		bytes += part.Program.Unlisted()
	}
	for _, r := range p.Routines {
		for _, x := range r.Ranges {
			listed += x[1] - x[0]
		}
	}
	return bytes, float64(bytes) / max(float64(bytes)+float64(listed), 1)
}

// faultsOf lists what the verifier finds.
func faultsOf(p *plan.Plan) (faults []string) {
	for _, f := range verify.Plan(p) {
		faults = append(faults, f.String())
	}
	return faults
}

// unproven is the error that the plan has faults, or nil.
func (r *planReport) unproven() error {
	if len(r.Faults) == 0 {
		return nil
	}
	return fmt.Errorf("verify the plan of %s: %s: what is recorded there may be wrong: leave these routines out with -N", r.Program, r.faults())
}

// faults says how many there are.
func (r *planReport) faults() string {
	if len(r.Faults) == 1 {
		return "1 fault"
	}
	return fmt.Sprintf("%d faults", len(r.Faults))
}

func (r *planReport) count(pr *plan.Routine, probes int) {
	if !pr.Observed() {
		i := slices.IndexFunc(r.LeftOut, func(l leftOut) bool { return l.Reason == pr.Cause })
		if i < 0 {
			i = len(r.LeftOut)
			r.LeftOut = append(r.LeftOut, leftOut{Reason: pr.Cause, Example: pr.Name})
		}
		r.LeftOut[i].Routines++
		return
	}
	r.RoutinesObserved++
	r.AcyclicPaths += r.paths[pr.ID]
	r.expectedHits += expectedHits(pr)
	r.LoopsCounted += pr.LoopsCounted()
	switch {
	case probes == 0:
		r.RoutinesImplied++
	case pr.Silent:
		r.RoutinesSilent++
	}
}

// numberPaths finds how many acyclic paths each observed routine has, and how many are expected to
// run of all.
func (r *planReport) numberPaths() {
	expected := make([]float64, len(r.routines))
	r.paths = make([]float64, len(r.routines))
	parallel.Each(len(r.routines), func(i int) {
		if !r.routines[i].Observed() {
			return
		}
		if n, err := paths.Number(r.routines[i].Routine); err == nil {
			r.paths[i], expected[i] = float64(n.Total), expectedPaths(r.routines[i], n)
		}
	})
	for _, count := range expected {
		r.expectedPaths += count
	}
}

func (r *planReport) write(w io.Writer, verbose bool) error {
	out := bufio.NewWriter(w)
	row := func(name string, format string, args ...any) {
		fmt.Fprintf(out, "%-15s "+format+"\n", append([]any{name}, args...)...)
	}
	row("program", "%s", r.Program)
	if r.Go {
		row("", "%s", goProgram)
	}
	row("routines", "%d of %d observed (%.1f%%)", r.RoutinesObserved, r.RoutinesTotal, 100*float64(r.RoutinesObserved)/float64(max(r.RoutinesTotal, 1)))
	row("", "%d of them without a probe, %d more at times without a hit: their callers tell", r.RoutinesImplied, r.RoutinesSilent)
	row("acyclic paths", "%.6g", r.AcyclicPaths)
	row("loops", "%d run without a hit: registers count their rounds", r.LoopsCounted)
	row("probes", "%d: %d emulated, %d single-stepped; %d on conditional jumps", r.Probes, r.Probes-r.ProbesSingleStep, r.ProbesSingleStep, r.ProbesConditional)
	row("expected hits", "%.2f a path; %.0f in 1000 instructions, %.1f of them single-stepped", r.HitsPerPath, r.HitsPerThousand, r.HitsSingleStepPerThousand)
	if share, most := r.stepped, r.mostStepped; share > noticeable {
		row("warning", "%s%% of the expected hits are single-stepped, and slow, most in", factor(100*share))
		row("", "%s: -N leaves it out", query.Fit(most.Name, query.TableColumns-16-len(": -N leaves it out")))
	}
	row("slow-down", "%v", r.forecast)
	row("", "if a hit takes %v, %v single-stepped: -p and stat tell what it does here", r.forecast.cost.Emulated, r.forecast.cost.Stepped)
	if r.Canary != nil {
		row("canary", "%s", r.Canary)
	}
	row("left out", "%d routines", r.RoutinesTotal-r.RoutinesObserved)
	for _, l := range r.LeftOut {
		fmt.Fprintf(out, "%15d %s (as %s)\n", l.Routines, l.Reason, query.Fit(l.Example, query.TableColumns-16-len(l.Reason)-6))
	}
	row("not listed", "%d bytes in no routine, as linkage stubs, start-up code and what has no unwind", r.Unlisted)
	row("", "information: not observed")
	if len(r.Libraries) > 0 {
		row("libraries", "%s", query.Fit("not observed without --lib: "+strings.Join(r.Libraries, ", "), query.TableColumns-16))
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

func (r *planReport) writeProof(out *bufio.Writer, row func(name, format string, args ...any)) {
	if *r.Verified {
		row("verified", "the words of the probes determine every path of the %d routines", r.RoutinesObserved)
		return
	}
	row("not verified", "%s", r.faults())
	for _, f := range r.Faults {
		fmt.Fprintf(out, "%15s %s\n", "", query.Fit(f, len(f)))
	}
}

// writeRoutines writes a line for each routine that is selected. A reason that leaves too little of
// it for the name has a line of its own.
func (r *planReport) writeRoutines(out *bufio.Writer) {
	const room, leastName = query.TableColumns - 41, 12
	fmt.Fprintf(out, "\n%12s %6s %12s %6s  ROUTINE\n", "ENTRY", "BLOCKS", "PATHS", "PROBES")
	for i, pr := range r.routines {
		if pr.Observed() {
			fmt.Fprintf(out, "%12x %6d %12.6g %6d  %s\n", pr.Addr, len(pr.Blocks), r.paths[i], r.probes[i], query.Fit(pr.Name, room))
			continue
		}
		if pr.Cause == plan.NotSelected {
			continue
		}
		name, separator := room-len(": ")-len(pr.LeftOut), ": "
		if name < leastName {
			name, separator = room, "\n"+strings.Repeat(" ", 20)
		}
		fmt.Fprintf(out, "%12x %6d %12s %6s  %s%s%s\n", pr.Addr, len(pr.Blocks), "-", "-", query.Fit(pr.Name, name), separator, pr.LeftOut)
	}
}

func (r *planReport) writeJSON(w io.Writer) error {
	if err := json.NewEncoder(w).Encode(r); err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	return nil
}
