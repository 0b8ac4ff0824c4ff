package main

import (
	"cmp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ofProfile are the flags of a recording that a path profile has.
var ofProfile = []string{"pid", "duration", "snapshot-every", "output", "func", "no-func",
	"weights", "lib", "complete", "follow-fork", "tid", "max-slowdown", "overhead", "window",
	"max-stall", "ring-size", "on-overflow", "json", "strict", "quiet", "verbose"}

func profileCommand() *cobra.Command {
	o := newRecordFlags()
	o.counted = true
	count := countFlags{record: &o}
	c := &cobra.Command{
		Use:   "profile {-p PID | [FLAG...] -- COMMAND [ARG...]}",
		Short: "Count how often each path of a live process runs, for as long as you like",
		Example: `  wpptrace profile -p 4711 -d 1h           an hour of process 4711
  wpptrace profile -- gzip -c file > f.gz  a command from its first instruction to its exit
  wpptrace hot --top 20 gzip-4711.wpp      the paths in which most instructions ran
  wpptrace hot --lines match.c x.wpp       a source file, with how often each line ran
  wpptrace diff before.wpp after.wpp       which paths are new, gone, hotter or colder
  wpptrace profile --interesting x.wpp --hot 20 -p 4711   the 20 hottest of x.wpp alone`,
		Long: `A path profile says how often each path ran, and not in which order: memory and file
are those of the different paths, however long it lasts. All threads count
together. Everything else is as in a recording: what is traced, what it costs, and that with -p it
is traced in windows where more would take over 5% of its CPU time. Then counts are those of the
windows; with --overhead 0 all is counted.

hot, path, diff, stat, merge, compact, plan --weights and plan --interesting take the profile as
they take a recording, as far as the order of paths does not matter. What needs it refuses: find,
rules, order, context, dump, hot --callers, and hot for subpaths of more than one path.

--json prints each path that ran with its count. A count is not exact where events were lost, or
where it has reached 2^64-1: then the path ran so often, or more often.

--interesting SNAPSHOT counts the paths of the executable alone that SNAPSHOT has recorded, by
probes that tell these from each other and from all others, and do nothing else; --hot N has the N
of them in which most instructions ran, -F those of some routines, --pattern those of a sequence,
and -F with --all-paths those as well that never ran. plan --interesting --others prints what they
cost. The kernel counts. Nothing is recorded: how often each path ran is printed at the end.
--others count prints as well how often other paths of the same routines ran. Counts are exact, but
that a path counts that a thread is in the midst of at the end, if it has been seen to be that path.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if err := cmp.Or(o.check(c, args), count.check(c)); err != nil {
				return err
			}
			if count.paths.Snapshot != "" {
				return count.run(args, c.OutOrStdout(), c.ErrOrStderr())
			}
			return recordCommandLine(&o, args, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.add(all)
	for _, name := range ofProfile {
		c.Flags().AddFlag(all.Lookup(name))
	}
	count.add(c)
	c.Flags().Lookup("json").Usage = "print each path that ran, with its count, as one JSON object"
	return c
}
