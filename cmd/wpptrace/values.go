package main

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wpptrace/compress/wpp/store"
	"wpptrace/internal/memory"
	"wpptrace/internal/record"
	"wpptrace/internal/valuing"
)

// ofValues are the flags of a recording that one of values has.
var ofValues = []string{"pid", "duration", "snapshot-every", "output", "func", "no-func",
	"weights", "lib", "complete", "tid", "max-slowdown", "overhead", "window", "max-stall", "ring-size",
	"on-overflow", "strict", "quiet", "verbose"}

func valuesCommand() *cobra.Command {
	o := newRecordFlags()
	o.values, o.ring = true, record.ValuesRing
	var q valuing.Question
	c := &cobra.Command{
		Use:     "values {-p PID | [FLAG...] -- COMMAND [ARG...] | {--at | --var | --stat} ... SNAPSHOT}",
		Short:   "Record what each instruction of some routines computes, reads and writes",
		Example: valuing.Example,
		Long:    valuing.Help,
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if wrong := q.Wrong(c.Flags().Changed); wrong != "" {
				return usagef("%s", wrong)
			}
			if q.Asks() {
				return askValues(c, args, &q, &o)
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
	q.Add(c.Flags())
	c.Flags().BoolVar(&o.json, "json", false, "with --at and --var: print one JSON object")
	return c
}

// ofQuestion are the flags that go with a question.
var ofQuestion = []string{"stat", "at", "var", "instance", "csv", "json", "histogram", "tid"}

// askValues answers a question about a snapshot.
func askValues(c *cobra.Command, args []string, q *valuing.Question, o *recordFlags) error {
	wrong := ""
	c.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(ofQuestion, f.Name) {
			wrong = f.Name
		}
	})
	switch {
	case wrong != "":
		return usagef("--%s is for a recording: --at, --var and --stat read a snapshot", wrong)
	case c.ArgsLenAtDash() >= 0:
		return usagef("a command to trace, and --at, --var or --stat, which read a snapshot")
	}
	if err := exactly(1, "a snapshot")(c, args); err != nil {
		return err
	}
	read := store.ReadFile
	if q.At != "" {
		read = store.ReadParts
		memory.Ahead()
	}
	s, _, err := readBy(read, c, args[0])
	if err != nil {
		return err
	}
	return valuing.InFile(args[0], q.Answer(c.OutOrStdout(), s, o.json, o.tids))
}
