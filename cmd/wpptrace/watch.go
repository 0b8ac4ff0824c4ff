package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// signals are the wishes of the user during a recording.
type signals struct {
	end      <-chan struct{}  // closed: end the recording
	snapshot <-chan os.Signal // write a snapshot and go on
	abort    context.Context  // done: quit at once
	stop     func()
}

// watchSignals takes SIGINT, SIGTERM and SIGUSR2 until stop is called.
func watchSignals() *signals {
	ends, snapshots := make(chan os.Signal, 2), make(chan os.Signal, 1)
	signal.Notify(ends, unix.SIGINT, unix.SIGTERM)
	signal.Notify(snapshots, unix.SIGUSR2)
	abort, cancel := context.WithCancel(context.Background())
	end, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case <-stopped:
				return
			case <-ends:
			}
			if n == 0 {
				close(end)
			} else {
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
	return &signals{end: end, snapshot: snapshots, abort: abort, stop: stop}
}

// tick is how often a recording looks up from its ring buffer.
const tick = 20 * time.Millisecond

// watch records until there is a reason to end, which it returns; "": the process ended.
func (j *job) watch(s *signals) (reason string, err error) {
	for {
		if err := j.listen(time.Now().Add(tick)); err != nil {
			return "", err
		}
		select {
		case <-s.end:
			return fmt.Sprintf("interrupted: tracing of process %d (%s) ended", j.process.PID, j.process.Name), nil
		case <-s.snapshot:
			if _, err := j.write(s.abort); err != nil {
				return "", err
			}
		default:
		}
		switch {
		case j.process.Wait(0):
			return "", nil
		case j.session.Replaced():
			return "the program was replaced by exec: tracing ended", nil
		case j.recordFlags.duration > 0 && time.Since(j.began) >= j.recordFlags.duration:
			return fmt.Sprintf("%v are over: tracing of process %d (%s) ended", j.recordFlags.duration, j.process.PID, j.process.Name), nil
		}
	}
}
