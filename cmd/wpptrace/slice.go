package main

import (
	"github.com/spf13/cobra"

	"wpptrace/query/report"
	"wpptrace/query/slice"
)

func sliceCommand() *cobra.Command {
	q := slice.Query{By: slice.Data | slice.Control}
	onlyData, onlyControl := false, false
	c := &cobra.Command{
		Use:     "slice --at ROUTINE+0xOFFSET [FLAG...] SNAPSHOT",
		Short:   "Print which instructions made a value, or what came of it",
		Example: slice.Example,
		Long:    slice.Help,
		Args:    exactly(1, "a snapshot"),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case q.At == "":
				return usagef("--at says of which instruction: ROUTINE+0xOFFSET")
			case onlyData && onlyControl:
				return usagef("--data leaves out what --control leaves: give one of them")
			case c.Flags().Changed("instance") && q.Instance < 1:
				return usagef("--instance counts from 1")
			case onlyData:
				q.By = slice.Data
			case onlyControl:
				q.By = slice.Control
			}
			s, _, err := readSnapshot(c, args[0])
			if err != nil {
				return err
			}
			a, err := slice.Ask(s, q)
			if err != nil {
				return err
			}
			return report.WriteSlice(c.OutOrStdout(), s, a)
		},
	}
	f := c.Flags()
	f.StringVar(&q.At, "at", "", "the instruction at `ROUTINE+0xOFFSET`")
	f.IntVar(&q.Instance, "instance", 0, "its execution `N`, from 1 on (default the last)")
	f.IntVar(&q.TID, "tid", 0, "in thread `TID` (default the first that executed it so often)")
	f.BoolVar(&q.Forward, "forward", false, "print what came of it, not what made it")
	f.BoolVar(&onlyData, "data", false, "follow only registers, flags and memory")
	f.BoolVar(&onlyControl, "control", false, "follow only jumps and calls that decided")
	return c
}
