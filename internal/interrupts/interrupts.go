// Package interrupts takes the signals by which a user says what is to become of a recording: that
// it ends, that wpptrace quits at once, that a snapshot is written meanwhile.
package interrupts

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/internal/record"
)

// Wishes are those of the user during a recording. Its methods are for any goroutine.
type Wishes struct {
	End      context.Context // done: end the recording
	Snapshot <-chan struct{} // write a snapshot meanwhile
	Abort    context.Context // done: quit at once
	TakeINT  func()          // take SIGINT even if wpptrace was started to ignore it
	Stop     func()          // take no more signals
}

// exitError is the exit status of wpptrace where it ends with an error.
const exitError = 1

// SameWish is how soon a second signal is the first once more: timeout and sudo send one to the
// process and to its group.
const SameWish = 200 * time.Millisecond

// Watch takes SIGUSR2 and the signals by which a process is ended until Stop is called. A SIGINT
// that is ignored, as in the background of a script, stays so until TakeINT: what is started before
// ignores it too. A SIGHUP that is ignored, as by nohup, stays so.
func Watch() *Wishes {
	ends, snapshots := make(chan os.Signal, 2), make(chan os.Signal, 1)
	takeINT := func() { signal.Notify(ends, unix.SIGINT) }
	if !signal.Ignored(unix.SIGINT) {
		takeINT()
	}
	signal.Notify(ends, unix.SIGTERM, unix.SIGQUIT)
	if !signal.Ignored(unix.SIGHUP) {
		signal.Notify(ends, unix.SIGHUP)
	}
	signal.Notify(snapshots, unix.SIGUSR2)
	abort, cancel := context.WithCancel(context.Background())
	ended, end := context.WithCancel(context.Background())
	wished, stopped := make(chan struct{}, 1), make(chan struct{})
	go func() {
		var first time.Time
		for {
			select {
			case <-stopped:
				return
			case <-snapshots:
				select {
				case wished <- struct{}{}:
				default: // one is wished for already
				}
				continue
			case <-ends:
			}
			switch {
			case first.IsZero():
				first = time.Now()
				end()
			case time.Since(first) > SameWish:
				cancel()
			}
		}
	}()
	stop := sync.OnceFunc(func() {
		signal.Stop(ends)
		signal.Stop(snapshots)
		close(stopped)
		cancel()
		end()
	})
	return &Wishes{End: ended, Snapshot: wished, Abort: abort, TakeINT: takeINT, Stop: stop}
}

// OutlivePipes has wpptrace, from now on, not be killed where nobody reads what it prints, as head
// does when it has read enough: there is a recording to write. What it starts is killed as ever.
func OutlivePipes() { signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE) }

// QuitAtOnce ends wpptrace at the second signal until the function that it returns is called: there
// is nothing yet to be cleaned up that the kernel does not, and what is asked of a process, or of
// its file system, may never be answered.
func (w *Wishes) QuitAtOnce(stderr io.Writer) (prepared func() bool) {
	return context.AfterFunc(w.Abort, func() {
		fmt.Fprintf(stderr, "wpptrace: %v\n", record.ErrInterrupted)
		os.Exit(exitError)
	})
}

// Further is closed at the next signal.
func (w *Wishes) Further() <-chan struct{} {
	if w.End.Err() != nil {
		return w.Abort.Done()
	}
	return w.End.Done()
}

// QuitReport ends wpptrace at the next signal until the function that it returns is called: what is
// recorded is written, and nothing is to be cleaned up that the kernel does not.
func (w *Wishes) QuitReport(stderr io.Writer, snapshot string) (reported func()) {
	further, done, over := w.Further(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-further:
			fmt.Fprintf(stderr, "wpptrace: interrupted while it reported: the snapshot is whole: "+
				"wpptrace hot %s\n", snapshot)
			os.Exit(exitError)
		case <-done:
		}
	}()
	return func() {
		close(done)
		<-over
	}
}
