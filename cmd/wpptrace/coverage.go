package main

import (
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wpptrace/internal/coverage"
	"wpptrace/internal/record"
	"wpptrace/internal/statusline"
)

// coverageFlags are those of wpptrace coverage.
type coverageFlags struct {
	record recordFlags
	lcov   string
}

func coverageCommand() *cobra.Command {
	o := coverageFlags{record: newRecordFlags()}
	c := &cobra.Command{
		Use:   "coverage {-p PID | [FLAG...] -- COMMAND [ARG...]}",
		Short: "Find out which lines, branches and routines of a live process run, at full speed",
		Example: `  wpptrace coverage -p 4711 -d 1m              what process 4711 runs in a minute
  wpptrace coverage --lcov x.info -- ./test     for genhtml x.info -o html
  wpptrace coverage --lib 'libssl*' -p 4711     of a library, too`,
		Long: `Each block of code has a probe until it has run. So the process soon runs at full
speed, and what it runs that is new is still seen. It need not be recompiled.

With -p it is known what has run since wpptrace attached, with -- since COMMAND began. Whether code
has run is known, and not how often: counts in the file of --lcov are 0 and 1. Code that cannot be
observed is left out: routines that wpptrace plan -v lists as left out, those that -F and -N do not
select, and blocks without an instruction that may carry a probe. A line has run if any of its code
has; it has not if all of its code is known not to have.

Lines and branches are those of debug information: build with -g. Without, blocks and routines are
counted. A branch is an outcome of a conditional jump of the machine's.

A table by source file goes to stdout with -p, to stderr with --. SIGINT, SIGTERM, SIGHUP or SIGQUIT
ends it, a second one at once. With --, the exit status is that of COMMAND.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.record.check(c, args); err != nil {
				return err
			}
			return o.run(args, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.record.add(all)
	for _, name := range []string{"pid", "duration", "func", "no-func", "lib"} {
		c.Flags().AddFlag(all.Lookup(name))
	}
	c.Flags().StringVar(&o.lcov, "lcov", "", "write what has run to `FILE`, as lcov and genhtml "+
		"read it")
	c.Flags().BoolVar(&o.record.json, "json", false, "print one JSON object in place of the table")
	for _, name := range []string{"quiet", "verbose"} {
		c.Flags().AddFlag(all.Lookup(name))
	}
	return c
}

// run observes a process or a command, and reports.
func (o *coverageFlags) run(argv []string, stdout, stderr io.Writer) error {
	s := watchSignals()
	defer s.stop()
	if err := mayRecord(); err != nil {
		return err
	}
	outlivePipes()
	out := stdout
	if len(argv) > 0 {
		out = stderr
	}
	return recordTarget(&o.record, s, argv, stderr, func(options record.Options) error {
		return o.observe(s, options, out, stderr)
	})
}

func (o *coverageFlags) observe(s *signals, from record.Options, out, stderr io.Writer) error {
	process := from.Process
	if from.Child != nil {
		process = from.Child.Process
	}
	errs := statusline.New(stderr, o.record.quiet)
	p := &printer{flags: &o.record, errs: errs, prepared: s.quitAtOnce(stderr)}
	defer p.prepared()
	if err := o.record.checkTarget(process); err != nil {
		return record.KillUnstarted(from.Child, err)
	}
	c, err := coverage.Run(s.end, coverage.Options{
		Process: from.Process, Child: from.Child, Selection: from.Selection,
		Duration: from.Duration, Confine: confine, Output: []string{o.lcov},
		Log: newLog(errs, o.record.verbose),
		LibraryLeftOut: func(path string, err error) {
			p.insist("%s is left out: %s", path, errorText(err))
		},
		Began: func(probes int) { p.prepared(); p.say("attached: %d probes", probes) },
	})
	if err != nil {
		return err
	}
	if o.lcov != "" {
		if err := coverage.WriteFile(o.lcov, c, coverage.WriteLCOV); err != nil {
			return err
		}
	}
	if o.record.json {
		return coverage.WriteJSON(out, c)
	}
	return coverage.WriteTable(out, c)
}
