package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// A process is one that was started here, in a process group of its own.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when it has ended
	err  error         // how; after done
	also []func()      // at its end
}

// start starts a command whose messages go to a file of dir. user: see asUser.
func start(cmd *exec.Cmd, dir string, user *syscall.Credential) (*process, error) {
	p := &process{cmd: cmd, log: filepath.Join(dir, "log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if cmd.Stdout == nil {
		cmd.Stdout = log
	}
	cmd.Stderr = log
	if cmd.Dir == "" {
		cmd.Dir = dir
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: user}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a server: %w", err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// stop ends the process, by SIGTERM if that does, and then what is left of its group.
func (p *process) stop() error {
	pid := p.cmd.Process.Pid
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails where it has ended
	const patience = 10 * time.Second
	var err error
	select {
	case <-p.done:
	case <-time.After(patience):
		err = fmt.Errorf("stop process %d: it has not ended %v after SIGTERM: killed", pid, patience)
	}
	// the group keeps its number as long as there is anything in it
	if kill := syscall.Kill(-pid, syscall.SIGKILL); kill != nil &&
		!errors.Is(kill, syscall.ESRCH) {
		err = errors.Join(err, fmt.Errorf("kill process group %d: %w", pid, kill))
	}
	<-p.done
	for _, f := range p.also {
		f()
	}
	return err
}

// connected waits until what needs the process to be ready succeeds, for a minute at most.
func connected[T any](ctx context.Context, p *process, try func() (T, error)) (x T, err error) {
	timeout := time.After(time.Minute)
	for {
		if x, err = try(); err == nil {
			return x, nil
		}
		select {
		case <-p.done:
			return x, fmt.Errorf("%w, and it has ended: %v: %s", err, p.err, p.lastLines())
		case <-timeout:
			return x, fmt.Errorf("%w, a minute after it was started: %s", err, p.lastLines())
		case <-ctx.Done():
			return x, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// lastLines are those that it has printed.
func (p *process) lastLines() string {
	text, _ := os.ReadFile(p.log)
	text = bytes.TrimSpace(text)
	return string(text[max(0, len(text)-400):])
}

// running is a server with n clients, each made by connect. The process ends where that fails.
func running[C interface {
	Ask() error
	Close() error
}](ctx context.Context, p *process, n int, connect func() (C, error)) (*Running, error) {
	r := &Running{PID: p.cmd.Process.Pid, process: p}
	for range n {
		c, err := connected(ctx, p, connect)
		if err != nil {
			r.close()
			return nil, errors.Join(err, p.stop())
		}
		r.Clients = append(r.Clients, c)
	}
	return r, nil
}

func (r *Running) close() {
	for _, c := range append(r.Clients, r.Others...) {
		_ = c.Close()
	}
}
