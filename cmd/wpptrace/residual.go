package main

import (
	"cmp"
	"errors"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wpptrace/internal/coverage"
)

// residualFlags are those of wpptrace residual.
type residualFlags struct {
	coverage.Watching
	record recordFlags
}

func residualCommand() *cobra.Command {
	o := residualFlags{record: newRecordFlags()}
	c := &cobra.Command{
		Use:     "residual {-p PID | [FLAG...] -- COMMAND [ARG...]} --baseline FILE",
		Short:   "Report what a live process runs that no baseline has run, as it happens",
		Example: coverage.ResidualExample,
		Long:    coverage.ResidualHelp,
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.record.check(c, args); err != nil {
				return err
			}
			if wrong := o.Wrong(c.Flags().Changed); wrong != "" {
				return usagef("%s", wrong)
			}
			return o.run(args, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.record.add(all)
	f := c.Flags()
	f.AddFlag(all.Lookup("pid"))
	o.Add(f)
	for _, name := range []string{"duration", "func", "no-func", "lib"} {
		f.AddFlag(all.Lookup(name))
	}
	f.BoolVar(&o.record.json, "json", false, "print a JSON object for each event")
	all.Lookup("quiet").Usage = quietOfObserving
	for _, name := range []string{"quiet", "verbose"} {
		f.AddFlag(all.Lookup(name))
	}
	return c
}

// run watches a process or a command. Files are read and opened first: better now than later.
func (o *residualFlags) run(argv []string, stdout, stderr io.Writer) (err error) {
	baseline, err := coverage.ReadBaseline(o.Baselines)
	if err != nil {
		return err
	}
	log := io.Discard
	if o.Log != "" {
		f, failed := coverage.OpenLog(o.Log)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		log = f
	}
	return o.record.observe(argv, stdout, stderr, func(by *observing) error {
		return o.watch(by, baseline, log)
	})
}

func (o *residualFlags) watch(by *observing, baseline *coverage.Baseline, log io.Writer) error {
	p, options := by.printer, by.options
	for _, file := range baseline.Vague {
		p.Say("%s does not show all that has run: it lost events, or is of windows", file)
	}
	var failed error
	printed := coverage.NewWriter(by.out, o.record.json)
	logged := coverage.NewWriter(log, true)
	result, err := coverage.Residual(by.signals.End, coverage.ResidualOptions{
		Options: options, Baseline: baseline, Most: o.Most,
		Restarts: o.Restarts && options.Child == nil, Paths: o.Paths, Edges: o.Edges,
		Overhead: o.Overhead / 100,
		Found: func(n coverage.Event) {
			failed = cmp.Or(failed, printed.Write(n), logged.Write(n))
		},
	})
	if err != nil {
		return err
	}
	failed = cmp.Or(failed, printed.Flush())
	p.Say("%s", result.Text())
	return failed
}
