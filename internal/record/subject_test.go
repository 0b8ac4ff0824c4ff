package record

import (
	"os"
	"testing"

	"wpptrace/compress/spill"
	"wpptrace/internal/testenv"
	"wpptrace/internal/traced"
	"wpptrace/loader/attach"
	"wpptrace/loader/target"
)

// startServer runs a program to be traced.
func startServer(t *testing.T) *testenv.Subject {
	t.Helper()
	if testing.Short() {
		t.Skip("it traces a process")
	}
	return testenv.StartServer(t)
}

func openSubject(t *testing.T, s *testenv.Subject) *target.Process {
	t.Helper()
	p, err := target.Open(s.PID())
	must(t, err)
	t.Cleanup(p.Close)
	return p
}

// newRecorder begins to decode and compress what a session reports, nil: nothing is attached. It
// writes nothing.
func newRecorder(t testing.TB, o Options, program *traced.Program,
	session *attach.Session) *Recorder {
	t.Helper()
	completed := o.withDefaults()
	r := &Recorder{
		options: completed, handle: func(Event) {}, program: program, session: session,
		out: func() {}, isOut: make(chan struct{}),
	}
	must(t, r.begin(spill.New(nil, spill.Limits{})))
	return r
}

// recordSubject begins to record the program with a ring buffer of a page.
func recordSubject(t *testing.T, s *testenv.Subject, tids ...int) *Recorder {
	t.Helper()
	p := openSubject(t, s)
	exe, err := p.Executable()
	must(t, err)
	t.Cleanup(func() { exe.Close() })
	program, err := traced.Load(exe, p.Name, traced.Selection{})
	must(t, err)
	session, err := attach.Load(p, program.Image, program.Plan,
		attach.Options{Ring: os.Getpagesize()})
	must(t, err)
	t.Cleanup(func() { session.Close() })
	r := newRecorder(t, Options{Process: p, Threads: tids}, program, session)
	must(t, session.Attach(exe))
	must(t, r.Begin(false))
	return r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
