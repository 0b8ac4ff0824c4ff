package valuing

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"wpptrace/compress/wpp"
)

// Step is what wpptrace step asks: it reads commands.
type Step struct {
	Input io.Reader
	tid   int
}

// Add adds the flags.
func (q *Step) Add(f *pflag.FlagSet) {
	f.IntVar(&q.tid, "tid", 0, "begin in thread `TID`")
}

// Check takes nothing.
func (q *Step) Check([]string) error { return nil }

// Write reads commands to the end of the input, or to quit, and writes what they answer. An error
// of a command is an answer; it fails where the thread cannot be stepped through, or what it writes
// cannot be written.
func (q *Step) Write(w io.Writer, s *wpp.Snapshot) error {
	prompt := ""
	if f, is := q.Input.(*os.File); is && term.IsTerminal(int(f.Fd())) {
		prompt = "(wpptrace) "
	}
	c := newConsole(w, s)
	if err := c.thread(q.tid); err != nil {
		return fmt.Errorf("step: %w", err)
	}
	return c.read(q.Input, prompt)
}
