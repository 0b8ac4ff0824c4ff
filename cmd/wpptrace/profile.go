package main

import (
	"cmp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wpptrace/internal/pathcount"
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
		Use:     "profile {-p PID | [FLAG...] -- COMMAND [ARG...]}",
		Short:   "Count how often each path of a live process runs, for as long as you like",
		Example: pathcount.Example,
		Long:    pathcount.Help,
		Args:    cobra.ArbitraryArgs,
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
