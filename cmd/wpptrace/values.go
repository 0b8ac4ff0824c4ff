package main

import (
	"cmp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wpptrace/internal/memory"
	"wpptrace/internal/valuing"
)

// ofValues are the flags of a recording that one of values has.
var ofValues = []string{"pid", "duration", "snapshot-every", "output", "func", "no-func",
	"weights", "complete", "tid", "max-slowdown", "overhead", "window", "max-stall", "ring-size",
	"on-overflow", "strict", "quiet", "verbose"}

// ringOfValues holds, with what hits have seen, about as many hits as that of paths.
const ringOfValues memory.Size = 128 << 20

func valuesCommand() *cobra.Command {
	o := newRecordFlags()
	o.values, o.ring = true, ringOfValues
	stat := ""
	c := &cobra.Command{
		Use: "values {-p PID | [FLAG...] -- COMMAND [ARG...] | --stat SNAPSHOT}",
		Short: "Record what each instruction of some routines computes, reads and writes, " +
			"besides the paths",
		Example: valuing.Example,
		Long:    valuing.Help,
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if stat != "" {
				return valuesStat(c, args, stat)
			}
			if err := o.check(c, args); err != nil {
				return err
			}
			return recordCommandLine(&o, args, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.add(all)
	for _, name := range ofValues {
		c.Flags().AddFlag(all.Lookup(name))
	}
	c.Flags().StringVar(&stat, "stat", "", "print how much of the values of `SNAPSHOT` is known")
	return c
}

// valuesStat prints how much is known of what a snapshot has recorded.
func valuesStat(c *cobra.Command, args []string, path string) error {
	if c.Flags().NFlag() > 1 || len(args) > 0 {
		return usagef("--stat goes with nothing else: it reads a snapshot")
	}
	s, _, err := readSnapshot(c, path)
	return cmp.Or(err, valuing.WriteStat(c.OutOrStdout(), s))
}
