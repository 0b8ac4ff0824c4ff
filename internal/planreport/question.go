package planreport

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"wpptrace/internal/interesting"
	"wpptrace/internal/memory"
	"wpptrace/internal/overlapping"
	"wpptrace/internal/record"
	"wpptrace/internal/recordreport"
	"wpptrace/internal/traced"
	"wpptrace/loader/attach"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
	"wpptrace/loader/requirement"
	"wpptrace/loader/target"
	"wpptrace/loader/uprobe"
)

// CanaryTime is how long the probes of a canary stand.
const CanaryTime = 50 * time.Millisecond

// A Question says of which program a plan is asked for, and what of it.
type Question struct {
	PID       int    // a process; 0: File is asked about
	File      string // a program's file
	Selection traced.Selection
	Prove     bool // prove the plan
	Try       bool // put the probes into the process for CanaryTime

	// Warn takes messages, a line each, of what an answer lacks.
	Warn func(message string)
	// Line says in one line what an error is, and what to do about it.
	Line func(error) string
}

// Report answers for the whole program. Only with Try is anything attached.
func (q *Question) Report() (*Report, error) {
	exe, name, err := q.open()
	if err != nil {
		return nil, err
	}
	defer exe.Close()
	p, err := q.plan(exe, name)
	if err != nil {
		return nil, err
	}
	libraries, called, err := q.planLibraries(p.Image.Needed)
	if err != nil {
		return nil, err
	}
	plans := []*plan.Plan{p.Plan}
	for _, library := range libraries {
		plans = append(plans, library.Plan)
	}
	var faults []string
	if q.Prove {
		faults = Faults(plans...)
	}
	for _, library := range plans[1:] {
		if err := p.Plan.Append(library); err != nil {
			return nil, err
		}
	}
	r := New(p, name, q.Selection, called)
	if q.Prove {
		r.AddProof(faults)
	}
	if q.Try {
		trial, err := q.try(exe, p)
		if err != nil {
			return nil, err
		}
		r.AddTrial(trial)
	}
	return r, nil
}

// Chart answers for the routine that has a name, as ChartOf does.
func (q *Question) Chart(routine string) (c *Chart, err error) {
	err = q.planned(func(p *traced.Program, _ string) (err error) {
		c, err = ChartOf(p, routine)
		return err
	})
	return c, err
}

// Interesting answers for some paths: see interesting.New.
func (q *Question) Interesting(c interesting.Choice) (r *interesting.Report, err error) {
	err = q.planned(func(p *traced.Program, name string) (err error) {
		r, err = interesting.New(p.Plan, name, c)
		return err
	})
	return r, err
}

// Overlap answers for the overlapping paths of a degree.
func (q *Question) Overlap(degree int) (r *overlapping.Report, err error) {
	err = q.planned(func(p *traced.Program, name string) (err error) {
		r, err = overlapping.New(p.Plan, name, degree)
		return err
	})
	return r, err
}

// planned has a part of the plan answered.
func (q *Question) planned(answer func(p *traced.Program, name string) error) error {
	exe, name, err := q.open()
	if err != nil {
		return err
	}
	defer exe.Close()
	p, err := q.plan(exe, name)
	if err != nil {
		return err
	}
	if err := answer(p, name); err != nil {
		return fmt.Errorf("plan %s: %w", name, err)
	}
	return nil
}

// plan plans the executable as a recording would.
func (q *Question) plan(exe *os.File, name string) (*traced.Program, error) {
	q.Selection.Windows = q.PID != 0 && uprobe.Detect().SupportsWindows() == nil
	if q.PID == 0 {
		return traced.Load(exe, name, q.Selection)
	}
	in, err := target.Open(q.PID)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	p, err := traced.LoadOf(in, exe, q.Selection)
	if err != nil {
		return nil, err
	}
	if _, err := attach.Obstacles(in, p.Image, exe); err != nil && !errors.Is(err,
		fs.ErrPermission) {
		return nil, fmt.Errorf("plan probes of process %d (%s): %w", in.PID, in.Name, err)
	}
	return p, nil
}

// planLibraries plans those selected libraries that the process has mapped by now, and lists what
// they are called. needed are the names under which its executable needs some.
func (q *Question) planLibraries(needed []string) (list []*traced.Program, called []string,
	err error) {
	if len(q.Selection.Libraries) == 0 {
		return nil, nil, nil
	}
	p, err := target.Open(q.PID)
	if err != nil {
		return nil, nil, err
	}
	defer p.Close()
	l, err := record.PlanLibraries(p, q.Selection, needed)
	if err != nil {
		return nil, nil, err
	}
	for _, glob := range l.Unmatched {
		q.Warn(recordreport.Unmatched(glob, q.PID))
	}
	for _, library := range l.LeftOut {
		q.Warn(recordreport.LeftOut(library, q.Line))
	}
	return l.Programs, l.Called, nil
}

// try attaches to the process for a moment. What comes is dropped.
func (q *Question) try(exe *os.File, program *traced.Program) (*record.Trial, error) {
	if _, err := requirement.Privileges(); err != nil {
		return nil, fmt.Errorf("try probes in process %d: %w: %s", q.PID, err,
			requirement.PrivilegesFix)
	}
	p, err := target.Open(q.PID)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	ring := memory.FitBuffer(attach.DefaultRing, memory.Allowed())
	return record.Try(p, exe, program, int(ring), CanaryTime)
}

// open opens the program.
func (q *Question) open() (exe *os.File, name string, err error) {
	if q.PID == 0 {
		exe, _, err = image.OpenRegular(q.File)
		switch {
		case errors.Is(err, fs.ErrPermission):
			err = fmt.Errorf("plan probes: %w", err)
		case err != nil:
			err = fmt.Errorf("plan probes: %w: name a program's file by its path, or a running "+
				"process with -p", err)
		}
		return exe, filepath.Base(q.File), err
	}
	p, err := target.Open(q.PID)
	if err != nil {
		return nil, "", err
	}
	defer p.Close()
	exe, err = p.Executable()
	return exe, p.File, err
}
