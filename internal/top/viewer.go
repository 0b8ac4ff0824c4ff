package top

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/term"

	"wpptrace/compress/wpp"
	"wpptrace/internal/record"
)

// A Viewer is our side of the process that shows a recording. It belongs to one goroutine.
type Viewer struct {
	cmd      *exec.Cmd
	pipe     *os.File
	code     *gob.Encoder
	interval time.Duration
	pacing   pacing
	last     status
	sending  chan sent // nil: no update is being sent
	gone     chan struct{}
	ended    error // then
	restore  func()
	messages messages
}

// A sent is that an update was sent, and what that took.
type sent struct {
	took time.Duration
	err  error
}

// Start starts the process that shows a recording on out: as a screen where in and out are
// terminals that can have one, else as lines. Nothing is shown before the first update. The caller
// ends the viewer. Cost: some 20 ms, and a process of some 20 MB.
func Start(o Opening, in *os.File, out io.Writer) (*Viewer, error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the viewer: %w", err)
	}
	v := &Viewer{pipe: ours, code: gob.NewEncoder(ours), interval: o.Interval,
		gone: make(chan struct{}), restore: func() {}}
	v.cmd = &exec.Cmd{Path: "/proc/self/exe", Args: arguments[asLines], Stdout: out,
		Stderr: os.Stderr, ExtraFiles: []*os.File{theirs}}
	if f, is := out.(*os.File); is && term.IsTerminal(int(f.Fd())) &&
		term.IsTerminal(int(in.Fd())) && os.Getenv("TERM") != "dumb" {
		v.cmd.Args, v.cmd.Stdin, v.restore = arguments[asScreen], in, restorer(in, f)
	}
	err = errors.Join(v.cmd.Start(), theirs.Close())
	if err == nil {
		err = v.code.Encode(&update{Opening: &o})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the viewer: %w", err), ours.Close())
	}
	go func() {
		v.ended = v.cmd.Wait()
		close(v.gone)
	}()
	return v, nil
}

// isScreen reports whether a terminal is taken by the viewer.
func (v *Viewer) isScreen() bool { return v.cmd.Stdin != nil }

// Record records, as record.Run does, and has it shown, until the viewer ends, too. handle gets
// what is left to print: Progress is not among it, nor Began where nothing is written.
func (v *Viewer) Record(ctx context.Context, o record.Options,
	handle func(record.Event)) (*record.Result, error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() {
		<-v.gone
		end()
	}()
	return record.Run(ctx, o, func(e record.Event) {
		switch e := e.(type) {
		case record.Progress:
			v.progress(e)
			return
		case record.Began:
			if o.Unwritten {
				return
			}
		}
		handle(e)
		v.prepared()
	})
}

// Messages is where to print while the viewer is there, any goroutine: on its screen, and when the
// terminal is free again on errs; without a screen on errs at once.
func (v *Viewer) Messages(errs io.Writer) io.Writer {
	if v.isScreen() {
		return &v.messages
	}
	return errs
}

// restorer returns what puts a terminal back that a viewer has left which was killed.
func restorer(in, out *os.File) func() {
	state, err := term.GetState(int(in.Fd()))
	if err != nil {
		return func() {}
	}
	return func() {
		const (
			keys  = "\x1b[<u\x1b[>4m\x1b[?2004l"  // how they are sent, and what is pasted
			leave = "\x1b[?1049l\x1b[?25h\x1b[0m" // the other screen; the cursor; colors
		)
		_, _ = io.WriteString(out, keys+leave)
		_ = term.Restore(int(in.Fd()), state)
	}
}

// progress sends an update if one is due.
func (v *Viewer) progress(e record.Progress) {
	now := time.Now()
	if !v.pacing.isDue(now) || !v.isIdle() {
		return
	}
	s := e.Status()
	if s.InWindow && !v.pacing.isLate(now, v.interval) {
		return
	}
	v.pacing.begin(now, v.interval)
	v.last = statusOf(s)
	u := &update{Status: v.last, Trouble: v.pacing.trouble}
	var complete func() (*wpp.Snapshot, error)
	if v.pacing.isSnapshotDue(now) {
		complete = e.Snapshot()
		v.pacing.copied = time.Since(now)
	}
	v.sending = make(chan sent, 1)
	go func() { v.sending <- v.send(u, complete) }()
}

// prepared sends what was printed while the recording is prepared, and later, if no update is being
// sent.
func (v *Viewer) prepared() {
	if v.isScreen() && v.isIdle() {
		v.sending = make(chan sent, 1)
		go func() { v.sending <- v.send(&update{}, nil) }()
	}
}

// isIdle reports whether no update is being sent.
func (v *Viewer) isIdle() bool {
	if v.sending == nil {
		return true
	}
	select {
	case s := <-v.sending:
		v.sending = nil
		v.pacing.end(s, v.interval)
		return true
	default:
		return false
	}
}

// send sends an update with a snapshot; complete may be nil: there is none.
func (v *Viewer) send(u *update, complete func() (*wpp.Snapshot, error)) (s sent) {
	began := time.Now()
	u.Messages = v.messages.take()
	if complete != nil {
		var snapshot *wpp.Snapshot
		if snapshot, s.err = complete(); s.err == nil {
			u.Snapshot, s.err = pack(snapshot)
		}
		if u.Trouble = ""; s.err != nil {
			u.Trouble = s.err.Error()
		}
		s.took = time.Since(began)
	}
	_ = v.code.Encode(u) // where it is gone, Gone says so
	return s
}

// End shows how a recording came out, which is over or, with nil, has not begun, waits for the
// viewer's end, and prints on errs what could not be printed meanwhile. A viewer may not end as
// long as nobody reads what it prints: when further is closed, it is killed.
func (v *Viewer) End(last *record.Result, further <-chan struct{}, errs io.Writer) error {
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-further:
			_ = v.cmd.Process.Kill() // which ends what is being sent, too
		case <-stop:
		}
	}()
	if v.sending != nil {
		<-v.sending
	}
	if last != nil && !v.isScreen() {
		v.last.end(last.Snapshot)
		v.send(&update{Status: v.last, Last: true},
			func() (*wpp.Snapshot, error) { return last.Snapshot, nil })
	}
	err := v.pipe.Close()
	<-v.gone
	if exit := (*exec.ExitError)(nil); errors.As(v.ended, &exit) {
		v.restore()
		if !exit.Sys().(syscall.WaitStatus).Signaled() { // else somebody has meant it
			err = errors.Join(err, fmt.Errorf("show the recording: %w", v.ended))
		}
	}
	return errors.Join(err, v.messages.printOn(errs))
}
