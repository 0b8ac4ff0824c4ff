package exact

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A Recording is wpptrace attached to a running process.
type Recording struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
	ended  chan error
}

// askAgain is how often an attaching tracer is asked for a snapshot.
const askAgain = 20 * time.Millisecond

// Attach attaches to a process and returns when all probes stand and count. The snapshot is in file after Detach. When ctx
// ends the tracer is killed.
func (w *Tracer) Attach(ctx context.Context, pid int, file string, flags ...string) (*Recording, error) {
	args := append([]string{"-q", "-o", file, "-p", strconv.Itoa(pid)}, flags...)
	r := &Recording{cmd: exec.CommandContext(ctx, w.path, args...), ended: make(chan error, 1)}
	r.cmd.Stderr = &r.stderr
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start wpptrace: %w", err)
	}
	go func() { r.ended <- r.cmd.Wait() }()
	// It takes SIGUSR2 from when it records on; before, it does not mind.
	for tick := time.NewTicker(askAgain); ; {
		select {
		case err := <-r.ended:
			tick.Stop()
			return nil, fmt.Errorf("attach to process %d: wpptrace ended: %v: %s", pid, err, r.stderr.Bytes())
		case <-tick.C:
			_ = r.cmd.Process.Signal(unix.SIGUSR2)
		}
		if _, err := os.Stat(file); err == nil {
			tick.Stop()
			return r, nil
		}
	}
}

// Detach ends the recording and waits until the snapshot is written.
func (r *Recording) Detach() error {
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		return fmt.Errorf("interrupt wpptrace: %w", err)
	}
	if err := <-r.ended; err != nil {
		return fmt.Errorf("detach: wpptrace: %w: %s", err, r.stderr.Bytes())
	}
	return nil
}
