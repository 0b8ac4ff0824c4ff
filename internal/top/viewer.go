package top

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/format"
	"wpptrace/internal/record"
)

// A Viewer is our side of the process that shows a recording. Progress and End are called by the
// goroutine of the recording; Write may be by any.
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

	mu       sync.Mutex // of what follows
	messages []string   // that were not sent
	later    bytes.Buffer
}

// A sent is that an update was sent, and what that took.
type sent struct {
	took time.Duration
	err  error
}

// Start starts the process that shows a recording on out: as a screen where in and out are
// terminals, else as lines. Nothing is shown before the first update. The caller ends the viewer.
// Cost: some 20 ms, and a process of some 20 MB.
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
		term.IsTerminal(int(in.Fd())) {
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

// IsScreen reports whether a terminal is taken by the viewer.
func (v *Viewer) IsScreen() bool { return v.cmd.Stdin != nil }

// restorer returns what puts a terminal back that a viewer has left which was killed.
func restorer(in, out *os.File) func() {
	state, err := term.GetState(int(in.Fd()))
	if err != nil {
		return func() {}
	}
	return func() {
		const leave = "\x1b[?1049l\x1b[?25h\x1b[0m" // the other screen; the cursor; colors
		_, _ = io.WriteString(out, leave)
		_ = term.Restore(int(in.Fd()), state)
	}
}

// Gone is closed when the viewer has come to its end: its user has had enough.
func (v *Viewer) Gone() <-chan struct{} { return v.gone }

// Write has the viewer's screen show a message, and prints it on the terminal when that is free
// again. It is for what else would be printed meanwhile.
func (v *Viewer) Write(message []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for line := range strings.Lines(string(message)) {
		v.messages = append(v.messages, strings.TrimSpace(line))
	}
	v.later.Write(message)
	return len(message), nil
}

// Progress sends an update if one is due.
func (v *Viewer) Progress(e record.Progress) {
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
	u := &update{Status: v.last}
	var complete func() (*wpp.Snapshot, error)
	if v.pacing.isSnapshotDue(now) {
		complete = e.Snapshot()
		v.pacing.copied = time.Since(now)
	}
	v.sending = make(chan sent, 1)
	go func() { v.sending <- v.send(u, complete) }()
}

// Prepared sends what was printed while the recording is prepared, and later, if no update is being
// sent.
func (v *Viewer) Prepared() {
	if v.IsScreen() && v.isIdle() {
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
	v.mu.Lock()
	u.Messages, v.messages = v.messages, nil
	v.mu.Unlock()
	if complete != nil {
		if u.Snapshot, s.err = encode(complete); s.err != nil {
			u.Trouble = s.err.Error()
		}
		s.took = time.Since(began)
	}
	_ = v.code.Encode(u) // where it is gone, Gone says so
	return s
}

// mostSnapshot bounds a snapshot that is shown, in bytes: two processes have it in memory.
const mostSnapshot = 32 << 20

var errTooLarge = fmt.Errorf("the recording has more than %d MB: what is shown is of before",
	mostSnapshot>>20)

// encode makes the file of a snapshot.
func encode(complete func() (*wpp.Snapshot, error)) ([]byte, error) {
	s, err := complete()
	if err != nil {
		return nil, err
	}
	var to bounded
	if err := format.Write(&to, s); err != nil {
		return nil, err
	}
	return to.Bytes(), nil
}

// bounded is a buffer for a snapshot that is not too large.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > mostSnapshot {
		return 0, errTooLarge
	}
	return b.Buffer.Write(p)
}

// End sends the last update, of a recording that is over or that has not begun, waits for the
// viewer's end, and prints on errs what could not be printed meanwhile.
func (v *Viewer) End(last *wpp.Snapshot, errs io.Writer) error {
	if v.sending != nil {
		<-v.sending
	}
	if last != nil && !v.IsScreen() {
		v.last.end(last)
		v.send(&update{Status: v.last}, func() (*wpp.Snapshot, error) { return last, nil })
	}
	err := v.pipe.Close()
	<-v.gone
	if exit := (*exec.ExitError)(nil); errors.As(v.ended, &exit) {
		v.restore()
		if !exit.Sys().(unix.WaitStatus).Signaled() { // else somebody has meant it
			err = errors.Join(err, fmt.Errorf("show the recording: %w", v.ended))
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	_, writeErr := v.later.WriteTo(errs)
	return errors.Join(err, writeErr)
}
