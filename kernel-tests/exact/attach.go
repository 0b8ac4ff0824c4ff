package exact

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// A Recording is wpptrace attached to a running process.
type Recording struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
	ended  chan error
}

// Attach attaches to a process and returns when all probes stand and count, which the tracer says.
// The snapshot is in file after Detach. When ctx ends the tracer is killed.
func (w *Tracer) Attach(ctx context.Context, pid int, file string,
	flags ...string) (*Recording, error) {
	args := append([]string{"-o", file, "-p", strconv.Itoa(pid), "--overhead", "0"}, flags...)
	r := &Recording{cmd: exec.CommandContext(ctx, w.path, args...), ended: make(chan error, 1)}
	messages, err := r.cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("start wpptrace: %w", err)
	}
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start wpptrace: %w", err)
	}
	recording := make(chan bool, 1)
	go func() {
		for scan := bufio.NewScanner(messages); scan.Scan(); {
			fmt.Fprintln(&r.stderr, scan.Text())
			if strings.Contains(scan.Text(), "recording process") {
				recording <- true
			}
		}
		r.ended <- r.cmd.Wait()
	}()
	select {
	case <-recording:
		return r, nil
	case err := <-r.ended:
		return nil, fmt.Errorf("attach to process %d: wpptrace ended: %v: %s", pid, err,
			r.stderr.Bytes())
	}
}

// Detach ends the recording and waits until the snapshot is written.
func (r *Recording) Detach() error {
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		return fmt.Errorf("interrupt wpptrace: %w", err)
	}
	return r.Wait()
}

// Wait waits until the recording has ended, as it does with the process, and the snapshot is
// written.
func (r *Recording) Wait() error {
	if err := <-r.ended; err != nil {
		return fmt.Errorf("record: wpptrace: %w: %s", err, r.stderr.Bytes())
	}
	return nil
}
