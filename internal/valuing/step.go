package valuing

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"wpptrace/compress/wpp"
	"wpptrace/internal/dap"
)

// Step is what wpptrace step asks: it reads commands, or serves an editor.
type Step struct {
	Input io.Reader
	// Open reads the snapshot that an editor names.
	Open func(path string) (*wpp.Snapshot, error)
	tid  int
	dap  string
}

// stdio is --dap without an address.
const stdio = "stdio"

// Add adds the flags.
func (q *Step) Add(f *pflag.FlagSet) {
	f.IntVar(&q.tid, "tid", 0, "begin in thread `TID`")
	f.StringVar(&q.dap, "dap", "", "serve an editor by the Debug Adapter Protocol, on the standard "+
		"input and output, or once on a port of this machine: `PORT`, 0: any")
	f.Lookup("dap").NoOptDefVal = stdio
}

// Check takes nothing.
func (q *Step) Check([]string) error { return nil }

// NeedsSnapshot reports whether the command line has to name a snapshot: an editor may do that.
func (q *Step) NeedsSnapshot() bool { return q.dap == "" }

// Write reads commands to the end of the input, or to quit, and writes what they answer. An error
// of a command is an answer; it fails where the thread cannot be stepped through, or what it writes
// cannot be written. Or it serves an editor until that goes away: then s is what is debugged; nil:
// what the editor names.
func (q *Step) Write(w io.Writer, s *wpp.Snapshot) error {
	if q.dap != "" {
		if err := q.serve(w, s); err != nil {
			return fmt.Errorf("step --dap: %w", err)
		}
		return nil
	}
	prompt := ""
	c := newConsole(w, s)
	if f, is := q.Input.(*os.File); is && term.IsTerminal(int(f.Fd())) {
		prompt = "(wpptrace) "
		stop := c.heed(os.Interrupt)
		defer stop()
	}
	if err := c.thread(q.tid); err != nil {
		return fmt.Errorf("step: %w", err)
	}
	return c.read(q.Input, prompt)
}

// heed has a signal end a move, in place of the program.
func (c *console) heed(s os.Signal) (stop func()) {
	came := make(chan os.Signal, 1)
	signal.Notify(came, s)
	c.pause = func() bool {
		select {
		case <-came:
			return true
		default:
			return false
		}
	}
	return func() { signal.Stop(came) }
}

func (q *Step) serve(w io.Writer, s *wpp.Snapshot) error {
	server := &dap.Server{Snapshot: s, Open: q.Open, TID: q.tid}
	if q.dap == stdio {
		return server.Serve(q.Input, w)
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", q.dap))
	if err != nil {
		return err
	}
	defer l.Close()
	if _, err := fmt.Fprintf(w, "DAP server listening at: %s\n", l.Addr()); err != nil {
		return fmt.Errorf("write where it listens: %w", err)
	}
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	return server.Serve(conn, conn)
}
