package pathcount

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"kernel.org/pub/linux/libs/security/libcap/cap"

	"wpptrace/internal/interesting"
	"wpptrace/internal/record"
	"wpptrace/internal/remedy"
	"wpptrace/internal/traced"
	"wpptrace/loader/guard"
	"wpptrace/loader/privilege"
	"wpptrace/loader/tally"
	"wpptrace/loader/target"
)

// Options say which paths are counted. One of Process and Child is needed.
type Options struct {
	// Process is counted from now on. It stays the caller's.
	Process *target.Process
	// Child is a command that stands before its first instruction. It stays the caller's, who waits
	// for its end; it is killed when nothing can be counted.
	Child     *target.Child
	Selection traced.Selection
	// Paths are those that are counted; with CountOthers, others of their routines are, too, those
	// of a routine together.
	Paths    interesting.Choice
	Duration time.Duration // 0: until the process exits
	// Confine gives up all capabilities but those that are needed once the probes stand; nil: none
	// is given up.
	Confine func(files []string, keep ...cap.Value) error
	// Began is called when all probes stand, of which some are single-stepped; nil: nothing is.
	Began func(pid, probes, stepped int)
}

func (o *Options) others() bool { return o.Paths.Others == interesting.CountOthers }

// A tracing is a process with probes in it.
type tracing struct {
	options Options
	process *target.Process
	run     *target.Run
	exe     *os.File
	program *traced.Program
	set     *interesting.Set
	chosen  *interesting.Counting
	counted []*interesting.CountedRoutine // those that are
	tables  *tally.Tables
	session *tally.Session
}

// Run counts until the context is done, the time is over, or the process has ended. It takes the
// privileges to trace, and guard.Main to be called first in main. The probes go whatever becomes of
// this process. Where the guard was killed, there is an error and what was counted until then.
func Run(ctx context.Context, o Options) (*Result, error) {
	x := &tracing{options: o, process: o.Process}
	defer x.close()
	err := x.prepare()
	if err == nil && ctx.Err() != nil {
		err = record.ErrInterrupted
	}
	if err == nil {
		err = x.session.Attach()
	}
	if err == nil {
		err = x.session.Enable(o.Child != nil)
	}
	if err != nil {
		return nil, record.KillUnstarted(o.Child, err)
	}
	if o.Child != nil {
		o.Child.Release()
	}
	if err := x.confine(); err != nil {
		return nil, err
	}
	if o.Began != nil {
		o.Began(x.process.PID, len(x.tables.Sites), x.chosen.Stepped)
	}
	ended := x.wait(ctx)
	r, err := x.result()
	return r, cmp.Or(err, ended)
}

// prepare chooses the probes, and has the kernel take the tables. Nothing has touched the process
// then.
func (x *tracing) prepare() (err error) {
	if x.options.Child != nil {
		x.process = x.options.Child.Process
	}
	if x.run, err = x.process.Run(); err != nil {
		return err
	}
	if x.exe, err = x.process.Executable(); err != nil {
		return err
	}
	if x.program, err = traced.LoadOf(x.process, x.exe, x.options.Selection); err != nil {
		return err
	}
	x.set, err = interesting.Read(x.program.Plan, x.options.Paths)
	if err != nil {
		return err
	}
	x.chosen = x.set.Count(x.options.others())
	var routines []tally.Routine
	for i := range x.chosen.Routines {
		if r := &x.chosen.Routines[i]; r.Answer != nil {
			x.counted = append(x.counted, r)
			routines = append(routines, tally.Routine{Routine: r.Routine.Routine,
				Machine: r.Answer.Machine})
		}
	}
	if len(routines) == 0 {
		return remedy.Errorf(remedy.Select, "count paths of process %d (%s): %s has no path of "+
			"this program that probes can tell from others", x.process.PID, x.process.Name,
			x.options.Paths.Snapshot)
	}
	if x.tables, err = tally.Pack(routines); err != nil {
		return err
	}
	x.session, err = tally.Load(x.process, x.program.Image, x.exe, x.tables)
	return err
}

func (x *tracing) confine() error {
	err := x.session.Confine(append(privilege.Probing(), cap.SYS_NICE)...)
	if err != nil || x.options.Confine == nil {
		return err
	}
	return x.options.Confine(nil, cap.BPF)
}

// wait waits for the end.
func (x *tracing) wait(ctx context.Context) error {
	const look = 20 * time.Millisecond // whether it is over
	var end time.Time
	if x.options.Duration > 0 {
		end = time.Now().Add(x.options.Duration)
	}
	for {
		switch {
		case ctx.Err() != nil, !end.IsZero() && !time.Now().Before(end), !x.process.Alive(),
			x.run.Over(), x.session.Replaced():
			return nil
		case x.session.GuardDead():
			return fmt.Errorf("count paths of process %d: %w", x.process.PID, guard.ErrGone)
		}
		x.process.Wait(look)
	}
}

func (x *tracing) close() {
	if x.session != nil {
		_ = x.session.Close()
	}
	if x.exe != nil {
		x.exe.Close()
	}
	if x.run != nil {
		x.run.Close()
	}
}
