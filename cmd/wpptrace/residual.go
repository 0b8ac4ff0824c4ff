package main

import (
	"cmp"
	"errors"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wpptrace/internal/coverage"
	"wpptrace/internal/record"
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

// run watches a process or a command.
func (o *residualFlags) run(argv []string, stdout, stderr io.Writer) (err error) {
	s := watchSignals()
	defer s.stop()
	if err := mayRecord(); err != nil {
		return err
	}
	outlivePipes()
	baseline, err := coverage.ReadBaseline(o.Baselines)
	if err != nil {
		return err
	}
	out, log := stdout, io.Discard
	if len(argv) > 0 {
		out = stderr
	}
	if o.Log != "" {
		f, err := coverage.OpenLog(o.Log)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		log = f
	}
	return recordTarget(&o.record, s, argv, stderr, func(options record.Options) error {
		return o.watch(s, options, baseline, out, log, stderr)
	})
}

func (o *residualFlags) watch(s *signals, from record.Options, baseline *coverage.Baseline,
	out, log, stderr io.Writer) error {
	process := from.Process
	if from.Child != nil {
		process = from.Child.Process
	}
	p, options := o.record.observed(s, process, stderr)
	defer p.Prepared()
	options.Process, options.Child = from.Process, from.Child
	if err := o.record.checkTarget(process); err != nil {
		return record.KillUnstarted(from.Child, err)
	}
	for _, file := range baseline.Vague {
		p.Say("%s does not show all that has run: it lost events, or is of windows", file)
	}
	options.Notice = func(line string) { p.Insist("%s", line) }
	var failed error
	printed := coverage.NewWriter(out, o.record.json)
	logged := coverage.NewWriter(log, true)
	result, err := coverage.Residual(s.end, coverage.ResidualOptions{
		Options: options, Baseline: baseline, Most: o.Most,
		Restarts: o.Restarts && from.Child == nil, Paths: o.Paths, Edges: o.Edges,
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
