package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"wpptrace/internal/testenv"
	"wpptrace/loader/attach"
	"wpptrace/loader/image"
	"wpptrace/loader/target"
)

// patience is how long a test waits for what must come, on a machine that has much else to do.
var patience = time.Duration(amount(2, 60)) * time.Minute

// amount is how much is done: all of it with make soak, a sample otherwise.
func amount(sample, all int) int {
	if os.Getenv("WPPTRACE_SOAK") != "" {
		return all
	}
	return sample
}

// server is a program that was not built to be traced. It answers each number that it reads by
// another, and exits with status 7 at the end.
const server = `s=1
while read -r n; do
	for ((i = 0; i < n; i++)); do
		s=$(((s * 31 + i) % 1000003))
		case $s in *7) t=$t$s ;; *) t=${t%?} ;; esac
	done
	echo "$s ${#t}"
done
exit 7`

// A subject is a running program to be traced.
type subject struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader

	pipe *os.File // what out reads
}

// startServer runs the server and waits for its first answer.
func startServer(t *testing.T) *subject {
	return startSubject(t, exec.Command("bash", "-c", server))
}

// startSubject runs a program that does as the server does.
func startSubject(t *testing.T, cmd *exec.Cmd) *subject {
	t.Helper()
	s := &subject{t: t, cmd: cmd}
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.pipe = out.(*os.File)
	s.out = bufio.NewReader(s.pipe)
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cmd.Process.Kill(); s.cmd.Wait() })
	s.ask(1)
	return s
}

func (s *subject) pid() int { return s.cmd.Process.Pid }

// ask has the server work for n rounds and returns its answer.
func (s *subject) ask(n int) string {
	s.t.Helper()
	s.put(n)
	return s.answer()
}

// put has the server begin to work for n rounds.
func (s *subject) put(n int) {
	s.t.Helper()
	if _, err := fmt.Fprintln(s.in, n); err != nil {
		s.t.Fatal(err)
	}
}

// answer waits for what the server has found out.
func (s *subject) answer() string {
	s.t.Helper()
	if err := s.pipe.SetReadDeadline(time.Now().Add(patience)); err != nil {
		s.t.Fatal(err)
	}
	line, err := s.out.ReadString('\n')
	if err != nil {
		s.t.Fatalf("the server does not answer: %v", err)
	}
	return line
}

// end lets the server come to its end, which must be its own.
func (s *subject) end() {
	s.t.Helper()
	s.in.Close()
	s.cmd.Wait()
	if got := s.cmd.ProcessState.ExitCode(); got != 7 {
		s.t.Errorf("the server ended with %v, not with status 7", s.cmd.ProcessState)
	}
}

// isClean fails the test unless the server's text is as in its file: no probe is left.
func (s *subject) isClean() {
	s.t.Helper()
	if err := s.residue(); err != nil {
		s.t.Errorf("something is left in the server: %v", err)
	}
}

// becomesClean waits for that: of what was killed, the kernel takes the probes out by and by.
func (s *subject) becomesClean() {
	s.t.Helper()
	testenv.Eventually(s.t, func() bool { return s.residue() == nil },
		"its text is that of its file")
}

// residue is what differs between the server's text and its file.
func (s *subject) residue() error {
	s.t.Helper()
	p, err := target.Open(s.pid())
	if err != nil {
		s.t.Fatal(err)
	}
	defer p.Close()
	exe, err := p.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	defer exe.Close()
	st, err := exe.Stat()
	if err != nil {
		s.t.Fatal(err)
	}
	im, err := image.Open(exe, st.Size(), p.File)
	if err != nil {
		s.t.Fatal(err)
	}
	return attach.CheckText(p, im)
}

// answers are what a server says that nobody traces.
func answers(t *testing.T, questions ...int) (list []string) {
	s := startServer(t)
	for _, n := range questions {
		list = append(list, s.ask(n))
	}
	s.end()
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
	timer := time.AfterFunc(patience, func() { w.cmd.Process.Kill() })
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
