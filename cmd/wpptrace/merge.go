package main

import (
	"context"
	"fmt"
	"os/signal"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"wpptrace/compress/wpp/overlapped"
	"wpptrace/compress/wpp/store"
	"wpptrace/internal/text"
	"wpptrace/loader/privilege"
	"wpptrace/query/merge"
	"wpptrace/query/names"
)

func mergeCommand() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "merge -o FILE SNAPSHOT...",
		Short: "Add up how often each path ran in several runs, processes or hosts",
		Example: `  wpptrace merge -o week.wpp mon.wpp tue.wpp   one path profile of both
  wpptrace merge -o week.wpp week.wpp wed.wpp  and of one more
  wpptrace merge -o counts.wpp x.wpp           the counts of a recording, without the order`,
		Long: `Snapshots are path profiles, as wpptrace profile makes them, or recordings, of which
the order of paths is left out, as is how the paths of a profile go on (--overlap). The result is a
path profile: see wpptrace profile --help for what it answers. Paths are the same if they run the
same blocks of a file with the same build id. Other builds of a program stand beside each other, as
IMAGE:ROUTINE. A routine that some leave out is counted in the others alone. Where some were traced
in windows, counts are what ran in these; the share of the CPU time that was traced lies between
that of the least and that of the most.

A file may be read and written: it becomes FILE.old. If anything fails, no file is changed.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usagef("nothing to merge: give snapshots")
			case output == "":
				return usagef("no snapshot to write: give -o FILE")
			case output == "-":
				return usagef("-o -: a snapshot is a file: name one")
			}
			if err := store.CheckOutput(output, privilege.CheckReplace); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM,
				unix.SIGHUP)
			defer stop()
			merger := merge.New()
			for _, path := range args {
				if ctx.Err() != nil {
					return fmt.Errorf("merge %s: interrupted: nothing was written",
						names.Printable(path))
				}
				s, _, err := readPart(path)
				if err != nil { // of what is cut off, the result would look whole
					return err
				}
				if err := merger.Add(s); err != nil {
					return fmt.Errorf("merge %s: %w", names.Printable(path), err)
				}
				for range s.SectionsOf(overlapped.SectionKind) {
					fmt.Fprintf(c.ErrOrStderr(), "wpptrace: %s: how paths go on, which --overlap "+
						"counts, is left out: wpptrace bounds takes the file\n", names.Printable(path))
				}
			}
			if err := store.WriteFileContext(ctx, output, merger.Snapshot()); err != nil {
				return store.WriteError(output, err)
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "%s: %s of %s\n", output,
				text.Count(merger.Paths(), "path"), text.Count(merger.Runs(), "run"))
			return err
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "",
		"`FILE` for the path profile; what was there becomes FILE.old")
	return c
}
