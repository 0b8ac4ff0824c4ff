package record

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"wpptrace/compress/spill"
	"wpptrace/internal/testenv"
	"wpptrace/loader/attach"
	"wpptrace/loader/target"
)

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
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	pipe *os.File // what out reads
}

// startServer runs the server and waits for its first answer.
func startServer(t *testing.T) *subject {
	return startSubject(t, exec.Command("bash", "-c", server))
}

// startSubject runs a program that does as the server does.
func startSubject(t *testing.T, cmd *exec.Cmd) *subject {
	t.Helper()
	if testing.Short() {
		t.Skip("it traces a process")
	}
	s := &subject{t: t, cmd: cmd}
	in, errIn := cmd.StdinPipe()
	out, err := cmd.StdoutPipe()
	must(t, errIn)
	must(t, err)
	s.in, s.pipe = in, out.(*os.File)
	s.out = bufio.NewReader(s.pipe)
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	s.ask(1)
	return s
}

// ask has the program work for n rounds and returns its answer.
func (s *subject) ask(n int) string {
	s.t.Helper()
	_, err := fmt.Fprintln(s.in, n)
	must(s.t, err)
	must(s.t, s.pipe.SetReadDeadline(time.Now().Add(testenv.Patience)))
	line, err := s.out.ReadString('\n')
	must(s.t, err)
	return line
}

// end lets the program come to its end, which must be its own.
func (s *subject) end() {
	s.t.Helper()
	s.in.Close()
	s.cmd.Wait()
	if got := s.cmd.ProcessState.ExitCode(); got != 7 {
		s.t.Errorf("it ended with %v, not with status 7", s.cmd.ProcessState)
	}
}

// isClean fails the test unless the program's text is as in its file: no probe is left.
func (s *subject) isClean() {
	s.t.Helper()
	p := s.open()
	exe, err := p.Executable()
	must(s.t, err)
	defer exe.Close()
	program, err := Load(exe, p.Name, Selection{})
	must(s.t, err)
	if err := attach.CheckText(p, program.Image); err != nil {
		s.t.Errorf("something is left in the program: %v", err)
	}
}

func (s *subject) open() *target.Process {
	s.t.Helper()
	p, err := target.Open(s.cmd.Process.Pid)
	must(s.t, err)
	s.t.Cleanup(p.Close)
	return p
}

// newRecorder begins to decode and compress what a session reports, nil: nothing is attached. It
// writes nothing.
func newRecorder(t testing.TB, o Options, program *Program, session *attach.Session) *Recorder {
	t.Helper()
	completed := o.withDefaults()
	r := &Recorder{
		options: completed, handle: func(Event) {}, program: program, session: session,
		out: func() {}, isOut: make(chan struct{}),
	}
	must(t, r.begin(spill.New(nil, spill.Limits{})))
	return r
}

// record begins to record the program with a ring buffer of a page.
func (s *subject) record(tids ...int) *Recorder {
	s.t.Helper()
	p := s.open()
	exe, err := p.Executable()
	must(s.t, err)
	s.t.Cleanup(func() { exe.Close() })
	program, err := Load(exe, p.Name, Selection{})
	must(s.t, err)
	session, err := attach.Load(p, program.Image, program.Plan,
		attach.Options{Ring: os.Getpagesize()})
	must(s.t, err)
	s.t.Cleanup(func() { session.Close() })
	r := newRecorder(s.t, Options{Process: p, Threads: tids}, program, session)
	must(s.t, session.Attach(exe))
	must(s.t, r.Begin(false))
	return r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
