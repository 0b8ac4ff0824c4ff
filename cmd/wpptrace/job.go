package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"wpptrace/loader/attach"
	"wpptrace/loader/target"
)

// A job is a recording with all that goes with it: where the snapshot goes and where messages go.
type job struct {
	*recordFlags
	*recording
	path   string
	report io.Writer // hot subpaths or figures
	errs   io.Writer
	log    *slog.Logger
	exe    *os.File // read until the last snapshot is written: source lines come last
}

// newJob prepares to record: plans, checks and attaches. When it fails nothing stays attached.
func newJob(o *recordFlags, p *target.Process, cpu func() (time.Duration, error), report, errs io.Writer) (*job, error) {
	j := &job{recordFlags: o, report: report, errs: errs, path: o.output, log: newLog(errs, o.verbose)}
	if j.path == "" {
		j.path = fmt.Sprintf("%s-%d.wpp", p.Name, p.PID)
	}
	if err := checkOutput(j.path); err != nil {
		return nil, err
	}
	if _, err := findNamespace(); err != nil {
		return nil, fmt.Errorf("attach to process %d (%s): pid namespace: %w: %s", p.PID, p.Name, err, namespaceFix)
	}
	exe, err := p.Executable()
	if err != nil {
		return nil, err
	}
	j.exe = exe
	if err := j.prepare(p); err != nil {
		exe.Close()
		return nil, err
	}
	j.cpu = cpu
	if err := j.attach(exe); err != nil {
		j.close()
		return nil, err
	}
	return j, nil
}

// prepare plans, and has the kernel take the program.
func (j *job) prepare(p *target.Process) error {
	program, err := loadProgram(j.exe, p.Name, j.selection)
	if err != nil {
		return err
	}
	session, err := attach.Load(p, program.image, program.plan, int(j.ring))
	if err != nil {
		return gone(p, err)
	}
	if j.recording, err = newRecording(program, p, session, j.tids, j.log); err != nil {
		session.Close()
	}
	return err
}

// attach puts the probes in. A process that is at work already is told what to expect before.
func (j *job) attach(exe *os.File) error {
	j.gauge = newGauge(j.session, j.log)
	if j.pid != 0 && !j.quiet {
		load, err := measureLoad(j.process)
		if err != nil {
			return err
		}
		newForecast(j.program.plan, j.gauge.cost).tell(j.errs, j.program.plan, load)
	}
	return j.session.Attach(exe)
}

// gone replaces an error by a plainer one where the process has ended.
func gone(p *target.Process, err error) error {
	if !p.Alive() {
		return fmt.Errorf("attach to process %d (%s): %w", p.PID, p.Name, target.ErrGone)
	}
	return err
}

// loadTime is how long the load of a process is measured.
const loadTime = 50 * time.Millisecond

// measureLoad returns the CPU share that a process uses, 1 for one CPU.
func measureLoad(p *target.Process) (float64, error) {
	began := time.Now()
	before, err := p.CPU()
	if err != nil {
		return 0, gone(p, err)
	}
	p.Wait(loadTime)
	after, err := p.CPU()
	if err != nil {
		return 0, gone(p, err)
	}
	return float64(after-before) / float64(time.Since(began)), nil
}

func newLog(w io.Writer, verbose bool) *slog.Logger {
	if !verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// checkOutput fails when a snapshot could not be written to path: better now than after the recording.
func checkOutput(path string) error {
	st, err := os.Lstat(path)
	if err == nil && !st.Mode().IsRegular() && st.Mode().Type() != os.ModeSymlink {
		return fmt.Errorf("write snapshot %s: it is not a regular file: name another with -o", path)
	}
	dir, base := filepath.Split(path)
	f, err := os.CreateTemp(filepath.Clean(dir), "."+base+".*")
	if err != nil {
		return fmt.Errorf("write snapshot %s: %w: name another file with -o", path, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// run records until there is a reason to end, writes the snapshot and reports.
func (j *job) run() error {
	s := watchSignals()
	defer s.stop()
	b := j.background(s.abort)
	defer b.wait() // no file is left half-written
	j.say("recording process %d (%s) to %s", j.process.PID, j.process.Name, j.path)
	reason, err := j.watch(s, b)
	if err != nil {
		return err
	}
	if reason != "" {
		j.say("%s", reason)
	}
	if err := j.finish(s.abort); err != nil {
		return err
	}
	if err := b.wait(); err != nil {
		j.warn(s, err)
	}
	snapshot, err := j.write(s.abort, j.snapshot())
	if err != nil {
		return err
	}
	return j.tell(snapshot)
}

// close frees everything; what is attached is detached.
func (j *job) close() {
	if j.gauge != nil {
		j.gauge.close()
	}
	j.session.Close()
	j.exe.Close()
}

// say prints a message, unless -q is given.
func (j *job) say(format string, args ...any) {
	if !j.quiet {
		fmt.Fprintf(j.errs, "wpptrace: "+format+"\n", args...)
	}
}
