package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wpptrace/compress/wpp"
	"wpptrace/internal/valuing"
)

// A question is asked of a snapshot.
type question interface {
	Add(f *pflag.FlagSet)
	// Check takes the arguments before the snapshot. What it does not understand is an error.
	Check(args []string) error
	Write(w io.Writer, s *wpp.Snapshot) error
}

// asking makes the command that asks.
func asking(c *cobra.Command, q question, args int, what string) *cobra.Command {
	q.Add(c.Flags())
	c.Args = exactly(args+1, what)
	c.RunE = func(c *cobra.Command, given []string) error {
		if err := q.Check(given[:args]); err != nil {
			return usageError{err}
		}
		s, _, err := readSnapshot(c, given[args])
		if err != nil {
			return err
		}
		return valuing.InFile(given[args], q.Write(c.OutOrStdout(), s))
	}
	return c
}

func sliceCommand() *cobra.Command {
	return asking(&cobra.Command{
		Use:     "slice --at PLACE [FLAG...] SNAPSHOT",
		Short:   "Print which source lines made a value, or what came of it",
		Example: valuing.SliceExample, Long: valuing.SliceHelp,
	}, &valuing.Slice{}, 0, "a snapshot")
}

func watchCommand() *cobra.Command {
	return asking(&cobra.Command{
		Use:     "watch [FLAG...] ADDRESS[:SIZE]|VARIABLE SNAPSHOT",
		Short:   "Print who read and who wrote some bytes of memory, or a variable",
		Example: valuing.WatchExample, Long: valuing.WatchHelp,
	}, &valuing.Watch{}, 1, "an address or a variable with a snapshot")
}

func stepCommand() *cobra.Command {
	q := &valuing.Step{Input: os.Stdin}
	c := asking(&cobra.Command{
		Use:     "step [FLAG...] SNAPSHOT",
		Short:   "Move through what a thread executed, forwards and backwards",
		Example: valuing.StepExample, Long: valuing.StepHelp,
	}, q, 0, "a snapshot")
	takesOne, ask := c.Args, c.RunE
	c.Args = func(c *cobra.Command, given []string) error {
		if len(given) == 0 && !q.NeedsSnapshot() {
			return nil
		}
		return takesOne(c, given)
	}
	c.RunE = func(c *cobra.Command, given []string) error {
		q.Open = func(path string) (*wpp.Snapshot, error) {
			s, _, err := readSnapshot(c, path)
			return s, err
		}
		if len(given) == 0 {
			return q.Write(c.OutOrStdout(), nil)
		}
		return ask(c, given)
	}
	return c
}
