package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"time"
	"wpptrace/internal/record/overhead"

	"golang.org/x/sys/unix"

	"wpptrace/loader/guard"
	"wpptrace/loader/target"
)

// An occasion is what a recording ends on, as stat tells it.
type occasion string

const (
	onExit      occasion = "exited"
	onWish      occasion = "interrupted"
	onTime      occasion = "duration"  // -d
	onExec      occasion = "exec"      // the process runs another program
	onSlowDown  occasion = "slow-down" // --max-slowdown
	onGuardLost occasion = "guard"     // it has been killed
	onFailure   occasion = "failure"
)

// isEarly says that the recording ended before it was to, by neither the user nor the process: -q tells of that, too.
func (o occasion) isEarly() bool { return o == onSlowDown || o == onGuardLost || o == onFailure }

// signals are the wishes of the user during a recording.
type signals struct {
	end      <-chan struct{}  // closed: end the recording
	occasion func() occasion  // why, once it is closed
	snapshot <-chan os.Signal // write a snapshot meanwhile
	abort    context.Context  // done: quit at once
	hearINT  func()           // hear SIGINT even if wpptrace was started to ignore it
	stop     func()
}

// errInterrupted says that there is no recording.
var errInterrupted = errors.New("interrupted before the recording began: nothing was recorded")

// interrupted fails when the recording is to end.
func (s *signals) interrupted() error {
	select {
	case <-s.end:
		return errInterrupted
	default:
		return nil
	}
}

// sameWish is how soon a second signal is the first once more: timeout and sudo send one to the
// process and to its group.
const sameWish = 200 * time.Millisecond

// watchSignals takes SIGUSR2 and the signals by which a process is ended until stop is called. A
// SIGINT that is ignored, as in the background of a script, stays so until hearINT: what is started
// before ignores it too. A SIGHUP that is ignored, as by nohup, stays so.
func watchSignals() *signals {
	ends, snapshots := make(chan os.Signal, 2), make(chan os.Signal, 1)
	hearINT := func() { signal.Notify(ends, unix.SIGINT) }
	if !signal.Ignored(unix.SIGINT) {
		hearINT()
	}
	signal.Notify(ends, unix.SIGTERM, unix.SIGQUIT)
	if !signal.Ignored(unix.SIGHUP) {
		signal.Notify(ends, unix.SIGHUP)
	}
	signal.Notify(snapshots, unix.SIGUSR2)
	abort, cancel := context.WithCancel(context.Background())
	end, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		var first time.Time
		for {
			select {
			case <-stopped:
				return
			case <-ends:
			}
			switch {
			case first.IsZero():
				first = time.Now()
				close(end)
			case time.Since(first) > sameWish:
				cancel()
			}
		}
	}()
	stop := sync.OnceFunc(func() {
		signal.Stop(ends)
		signal.Stop(snapshots)
		close(stopped)
		cancel()
	})
	return &signals{end: end, occasion: func() occasion { return onWish }, snapshot: snapshots, abort: abort, hearINT: hearINT, stop: stop}
}

// outlivePipes has wpptrace, from now on, not be killed where nobody reads what it says, as head does
// when it has read enough: there is a recording to write. What it starts is killed as ever.
func outlivePipes() { signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE) }

// quitAtOnce ends wpptrace at the second signal until the function that it returns is called: there
// is nothing yet to be cleaned up that the kernel does not, and what is asked of a process, or of
// its file system, may never be answered.
func (s *signals) quitAtOnce(stderr io.Writer) (prepared func() bool) {
	return context.AfterFunc(s.abort, func() {
		fmt.Fprintf(stderr, "wpptrace: %v\n", errInterrupted)
		os.Exit(exitError)
	})
}

// further is closed at the next signal.
func (s *signals) further() <-chan struct{} {
	if s.interrupted() != nil {
		return s.abort.Done()
	}
	return s.end
}

// quitReport ends wpptrace at the next signal until the function that it returns is called: what is
// recorded is written, and nothing is to be cleaned up that the kernel does not.
func (s *signals) quitReport(stderr io.Writer, snapshot string) (reported func()) {
	further, done, over := s.further(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-further:
			fmt.Fprintf(stderr, "wpptrace: interrupted while it reported: the snapshot is whole: wpptrace hot %s\n", snapshot)
			os.Exit(exitError)
		case <-done:
		}
	}()
	return func() {
		close(done)
		<-over
	}
}

// tick is how often a recording looks up from its ring buffer.
const tick = 20 * time.Millisecond

// watch records until there is an occasion to end, which it returns with what there is to say of it;
// "": the command ended.
func (j *job) watch(s *signals, b *background) (on occasion, told string, err error) {
	defer j.errs.clear()
	lastSnapshot := j.began
	for next := time.Now(); ; {
		if err := j.listen(time.Now().Add(j.windows.pause())); err != nil {
			return "", "", err
		}
		if err := j.takeLibraries(s.abort); err != nil {
			return j.disturbed(err)
		}
		select {
		case <-s.end:
			return s.occasion(), fmt.Sprintf("interrupted: tracing of process %d (%s) ended", j.process.PID, j.process.Name), nil
		case <-s.snapshot:
			b.request()
		default:
		}
		if j.every > 0 && time.Since(lastSnapshot) >= j.every {
			lastSnapshot = time.Now()
			b.request()
		}
		switch done, err := b.poll(); {
		case err != nil:
			j.warn(s, err)
		case done:
			j.say("snapshot: %s, recording goes on", j.path)
		}
		ended := j.process.Wait(0)
		if on, told := j.over(); on != "" {
			return on, told, nil
		}
		if ended {
			if attached := len(j.pids) > 0; attached {
				told = j.exited()
			}
			return onExit, told, nil
		}
		if err := j.keepPace(s.abort); err != nil {
			return j.disturbed(err)
		}
		if err := j.endStrays(); err != nil {
			return j.disturbed(err)
		}
		j.tellPace()
		if now := time.Now(); now.After(next) {
			next = now.Add(overhead.SamplePause)
			j.takeSample()
		}
		j.errs.show(j.recording)
	}
}

// disturbed is what to make of a window that could not be opened or closed: what has been recorded
// is kept, unless all is to be dropped.
func (j *job) disturbed(err error) (on occasion, told string, fatal error) {
	switch {
	case errors.Is(err, context.Canceled):
		return "", "", err
	case errors.Is(err, target.ErrGone):
		return onExit, j.exited(), nil
	case errors.Is(err, guard.ErrGone):
		on, told = j.guardLost()
		return on, told, nil
	}
	return onFailure, fmt.Sprintf("%v: tracing ended", err), nil
}

func (j *job) guardLost() (on occasion, told string) {
	return onGuardLost, fmt.Sprintf("process %d (%s): %v: tracing ended", j.process.PID, j.process.Name, j.session.Bereft())
}

// exited says how the process has come to its end.
func (j *job) exited() string {
	name := fmt.Sprintf("process %d (%s)", j.process.PID, j.process.Name)
	switch status, known := j.session.Exit(); {
	case known && status.Signaled():
		return fmt.Sprintf("%s was killed by %s", name, cmp.Or(unix.SignalName(status.Signal()), fmt.Sprintf("signal %d", status.Signal())))
	case known && status.ExitStatus() > 0:
		return fmt.Sprintf("%s has exited with status %d", name, status.ExitStatus())
	}
	return name + " has exited"
}

// warn tells of a snapshot in the middle of the recording that could not be written. A full disk,
// say, may be empty again when it ends.
func (j *job) warn(s *signals, err error) {
	if s.abort.Err() == nil {
		fmt.Fprintf(j.errs, "wpptrace: %v\n", err)
	}
}

// over says on what occasion the recording of a process is to end before the process does; "": it
// is not.
func (j *job) over() (on occasion, told string) {
	name := fmt.Sprintf("process %d (%s)", j.process.PID, j.process.Name)
	switch {
	case j.session.Replaced():
		return onExec, name + " was replaced by exec: tracing ended; --follow-fork goes on"
	case j.session.Unguarded():
		return j.guardLost()
	case j.limit > 0 && time.Since(j.began) >= j.limit:
		return onTime, fmt.Sprintf("%v are over: tracing of %s ended", j.limit, name)
	}
	if e, over := j.meter.Exceeds(j.maxSlowDown); over && j.maxSlowDown > 0 {
		return onSlowDown, fmt.Sprintf("%s is slowed down %s, more than --max-slowdown %v: detached; -F selects fewer routines, --max-slowdown 0 goes on whatever it costs",
			name, likelySlowDownText(e), j.maxSlowDown)
	}
	return "", ""
}
