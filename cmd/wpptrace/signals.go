package main

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

// signals are the wishes of the user during a recording.
type signals struct {
	end      context.Context // done: end the recording
	snapshot <-chan struct{} // write a snapshot meanwhile
	abort    context.Context // done: quit at once
	takeINT  func()          // take SIGINT even if wpptrace was started to ignore it
	stop     func()
}

// sameWish is how soon a second signal is the first once more: timeout and sudo send one to the
// process and to its group.
const sameWish = 200 * time.Millisecond

// watchSignals takes SIGUSR2 and the signals by which a process is ended until stop is called. A
// SIGINT that is ignored, as in the background of a script, stays so until takeINT: what is started
// before ignores it too. A SIGHUP that is ignored, as by nohup, stays so.
func watchSignals() *signals {
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
		end()
	})
	return &signals{end: ended, snapshot: wished, abort: abort, takeINT: takeINT, stop: stop}
}

// outlivePipes has wpptrace, from now on, not be killed where nobody reads what it prints, as head
// does when it has read enough: there is a recording to write. What it starts is killed as ever.
func outlivePipes() { signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE) }

// quitAtOnce ends wpptrace at the second signal until the function that it returns is called: there
// is nothing yet to be cleaned up that the kernel does not, and what is asked of a process, or of
// its file system, may never be answered.
func (s *signals) quitAtOnce(stderr io.Writer) (prepared func() bool) {
	return context.AfterFunc(s.abort, func() {
		fmt.Fprintf(stderr, "wpptrace: %v\n", record.ErrInterrupted)
		os.Exit(exitError)
	})
}

// further is closed at the next signal.
func (s *signals) further() <-chan struct{} {
	if s.end.Err() != nil {
		return s.abort.Done()
	}
	return s.end.Done()
}

// quitReport ends wpptrace at the next signal until the function that it returns is called: what is
// recorded is written, and nothing is to be cleaned up that the kernel does not.
func (s *signals) quitReport(stderr io.Writer, snapshot string) (reported func()) {
	further, done, over := s.further(), make(chan struct{}), make(chan struct{})
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
