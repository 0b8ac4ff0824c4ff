package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"wpptrace/internal/testenv"
)

// amount is how much is done: all of it with make soak, a sample otherwise.
func amount(sample, all int) int {
	if os.Getenv("WPPTRACE_SOAK") != "" {
		return all
	}
	return sample
}

// answers are what a server says that nobody traces.
func answers(t *testing.T, questions ...int) (list []string) {
	s := testenv.StartServer(t)
	for _, n := range questions {
		list = append(list, s.Ask(n))
	}
	s.End()
	return list
}

// A tracer is a wpptrace at work.
type tracer struct {
	t      *testing.T
	cmd    *exec.Cmd
	dir    string
	stdout strings.Builder
	lines  *bufio.Scanner // of stderr
	errs   strings.Builder
}

// startTracer runs wpptrace in a directory of its own.
func startTracer(t *testing.T, args ...string) *tracer {
	t.Helper()
	cmd := exec.Command("wpptrace", args...)
	cmd.Dir = t.TempDir()
	return runTracer(t, cmd)
}

// runTracer runs a command that is wpptrace.
func runTracer(t *testing.T, cmd *exec.Cmd) *tracer {
	t.Helper()
	w := &tracer{t: t, cmd: cmd, dir: cmd.Dir}
	w.cmd.Stdout = &w.stdout
	errs, err := w.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.lines = bufio.NewScanner(errs)
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(testenv.Patience, func() { w.cmd.Process.Kill() })
	t.Cleanup(func() { timer.Stop(); w.cmd.Process.Kill(); w.cmd.Wait() })
	return w
}

// expect reads what the tracer says up to a line with this text.
func (w *tracer) expect(text string) {
	w.t.Helper()
	for w.lines.Scan() {
		fmt.Fprintln(&w.errs, w.lines.Text())
		if strings.Contains(w.lines.Text(), text) {
			return
		}
	}
	w.t.Fatalf("wpptrace did not say %q, but:\n%s", text, w.errs.String())
}

// wait reads what is left and waits for the tracer's end.
func (w *tracer) wait(status int) {
	w.t.Helper()
	for w.lines.Scan() {
		fmt.Fprintln(&w.errs, w.lines.Text())
	}
	w.cmd.Wait()
	if got := w.cmd.ProcessState.ExitCode(); got != status {
		w.t.Errorf("wpptrace ended with %v, want status %d:\n%s", w.cmd.ProcessState, status,
			w.errs.String())
	}
}

// hasRecordedNothing fails the test unless the tracer ended, and says so, before it began, and left
// nothing.
func (w *tracer) hasRecordedNothing() {
	w.t.Helper()
	if got := w.errs.String(); !strings.HasSuffix(got,
		"wpptrace: interrupted before the recording began: nothing was recorded\n") {
		w.t.Errorf("it said %s", got)
	}
	if names := w.files(); len(names) > 0 {
		w.t.Errorf("files: %q", names)
	}
}

func (w *tracer) signal(s os.Signal) {
	w.t.Helper()
	if err := w.cmd.Process.Signal(s); err != nil {
		w.t.Fatal(err)
	}
}

// files lists what the tracer has left in its directory.
func (w *tracer) files() (names []string) {
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func (w *tracer) path(name string) string { return filepath.Join(w.dir, name) }
