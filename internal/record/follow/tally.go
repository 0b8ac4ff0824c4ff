package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"wpptrace/compress/wpp"
	"wpptrace/loader/attach"
	"wpptrace/query"
	"wpptrace/query/report"
)

// A tally sums up the jobs of a following.
type tally struct {
	jobs         int
	lost, places uint64
	metrics      attach.Metrics // those that tell of losses
	unrecorded   map[string]int // processes, by the reason
	reasons      []string       // in the order in which they came up
	err          error          // the first
}

// An ending is what has become of a job. An error beside a snapshot is of something else.
type ending struct {
	job      *job
	snapshot *wpp.Snapshot
	err      error
}

// account takes a job out that has ended, and tells of it.
func (f *following) account(e ending) {
	j := e.job
	delete(f.jobs, j)
	delete(f.snapshot, j)
	if f.recording[j.process.PID] == j {
		delete(f.recording, j.process.PID)
	}
	err := e.err
	if e.snapshot != nil {
		err = errors.Join(err, f.tellJob(j, e.snapshot))
	}
	j.close()
	if j.process != f.first {
		j.process.Close()
	}
	f.shared.tidy(f.jobs)
	switch {
	case f.tally.err == nil:
		f.tally.err = err
	case err != nil && !errors.Is(err, context.Canceled):
		fmt.Fprintf(f.errs, "wpptrace: %s\n", oneLine(err)) // the first one comes last
	}
}

// tellJob tells of a recording that has been written.
func (f *following) tellJob(j *job, s *wpp.Snapshot) error {
	st, err := statAsUser(j.path)
	if err != nil {
		return fmt.Errorf("look at snapshot: %w", err)
	}
	m, err := j.session.Metrics()
	if err != nil {
		return err
	}
	lost := j.lost(m)
	f.tally.jobs++
	f.tally.lost += lost
	f.tally.places += j.gaps()
	f.tally.metrics.LostByWhom += m.LostByWhom
	f.tally.metrics.Forgone += m.Forgone
	f.tally.metrics.NoStorage += m.NoStorage
	stat, err := query.NewStat(s, uint64(st.Size()))
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%d paths, %d bytes", stat.Paths, st.Size())
	if lost > 0 {
		text += fmt.Sprintf(", %d events lost", lost)
	}
	if stat.Anomalies > 0 {
		text += fmt.Sprintf(", %d words did not fit the program: its paths may be wrong near #cut and #unwind", stat.Anomalies)
	}
	f.say("process %d (%s): %s: %s", j.process.PID, j.process.Name, j.path, text)
	if f.json {
		return report.WriteStatJSON(f.report, stat)
	}
	return nil
}

// tellUnrecorded says why a process runs untraced, once for each reason.
func (f *following) tellUnrecorded(pid int, name string, why error) {
	if f.tally.unrecorded == nil {
		f.tally.unrecorded = map[string]int{}
	}
	reason := oneLine(why)
	if f.tally.unrecorded[reason]++; f.tally.unrecorded[reason] > 1 {
		return
	}
	f.tally.reasons = append(f.tally.reasons, reason)
	fmt.Fprintf(f.errs, "wpptrace: process %d (%s) is not recorded: %s\n", pid, name, reason)
}

// tell says what is left to say.
func (f *following) tell() error {
	for _, reason := range f.tally.reasons {
		if n := f.tally.unrecorded[reason]; n > 1 {
			fmt.Fprintf(f.errs, "wpptrace: nor are %d more: %s\n", n-1, reason)
		}
	}
	if n := f.family.Missed(); n > 0 {
		fmt.Fprintf(f.errs, "wpptrace: %d processes were not followed: there were too many at the same time\n", n)
	}
	line, lost := tellLosses(f.tally.metrics, f.tally.lost, f.tally.places, f.recordFlags)
	if lost || !f.quiet {
		fmt.Fprintln(f.errs, line)
	}
	if lost && f.strict {
		return exitStatus(exitLost)
	}
	return nil
}

// status is what the live line shows.
func (f *following) status() string {
	return fmt.Sprintf("%.0fs  %d recorded, %d over  lost %d", time.Since(f.began).Seconds(), len(f.jobs), f.tally.jobs, f.tally.lost)
}
