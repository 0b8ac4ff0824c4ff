package main

import (
	"cmp"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"wpptrace/compress/wpp/compact"
	"wpptrace/compress/wpp/format"
	"wpptrace/compress/wpp/store"
	"wpptrace/loader/privilege"
)

// A counter counts what is written.
type counter uint64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

func compactCommand() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "compact [-o FILE] SNAPSHOT",
		Short: "Make a snapshot smaller, to keep or to send it",
		Example: `  wpptrace compact x.wpp               in its place; x.wpp.old is the one before
  wpptrace compact -o small.wpp x.wpp  in another file`,
		Long: `A recording finds repetitions of what has run so far; compact finds those in all that
ran. All commands answer as before, but for the figures of the grammars. A thread of a million paths
takes a second or two and 50 to 140 MB of memory; no thread takes more than 2.5 GB. A snapshot is
left as it is when it would not get smaller, or when it is so large that it stays in segments. A
snapshot that is cut off is refused, for the result would look whole.`,
		Args: exactly(1, "a snapshot"),
		RunE: func(c *cobra.Command, args []string) error {
			if output == "-" {
				return usagef("-o -: a snapshot is a file: name one")
			}
			s, before, err := readPart(args[0])
			if err != nil { // of what is cut off, the result would look whole
				return err
			}
			err = store.CheckOutput(cmp.Or(output, args[0]), privilege.CheckReplace)
			if err != nil {
				return err
			}
			leftOut, err := compact.Snapshot(s)
			if err != nil {
				return fmt.Errorf("compact %s: %w", args[0], err)
			}
			if output == "" {
				output = args[0]
				var after counter
				if err := format.Write(&after, s); err != nil {
					return fmt.Errorf("compact %s: %w", args[0], err)
				}
				if uint64(after) >= before {
					_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %d bytes: left as it is, for it "+
						"would not be smaller\n", output, before)
					return err
				}
			}
			if err := store.WriteFile(output, s); err != nil {
				return store.WriteError(output, err)
			}
			st, err := os.Stat(output)
			if err != nil {
				return fmt.Errorf("look at snapshot: %w", err)
			}
			if len(leftOut) > 0 {
				fmt.Fprintf(c.ErrOrStderr(), "wpptrace: %s: sections of kind %s are left out: "+
					"they refer to grammars that are others now\n",
					output, numbersOf(leftOut))
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %d bytes, %d before\n", output, st.Size(),
				before)
			return err
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "write to `FILE`, not in the snapshot's place")
	return c
}
