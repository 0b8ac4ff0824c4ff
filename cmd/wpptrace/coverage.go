package main

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wpptrace/compress/wpp/covered"
	"wpptrace/internal/coverage"
	"wpptrace/internal/interrupts"
	"wpptrace/internal/messages"
	"wpptrace/internal/record"
	"wpptrace/internal/statusline"
	"wpptrace/internal/text"
	"wpptrace/loader/target"
)

// coverageFlags are those of wpptrace coverage.
type coverageFlags struct {
	record recordFlags
	lcov   string
	named  string // processes to attach to
}

// quietOfObserving is what -q does where the result is always printed.
const quietOfObserving = "print errors, what is not known, and the result alone"

// ofObserving are the flags of wpptrace coverage that only what is running takes.
var ofObserving = []string{"pid", "attach-all", "duration", "func", "no-func", "lib"}

func coverageCommand() *cobra.Command {
	o := coverageFlags{record: newRecordFlags()}
	c := &cobra.Command{
		Use:     "coverage {-p PID | --attach-all NAME | [FLAG...] -- COMMAND [ARG...] | FILE...}",
		Short:   "Find out which lines, branches and routines of a live process run, at full speed",
		Example: coverage.Example,
		Long:    coverage.Help,
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			files := len(args) > 0 && c.ArgsLenAtDash() < 0
			if err := o.outputs().Check(); err != nil {
				return err
			}
			for _, name := range ofObserving {
				if files && c.Flags().Changed(name) {
					return usagef("--%s goes with no FILE, as %s, which says what has run; a COMMAND "+
						"stands behind --", name, args[0])
				}
			}
			switch {
			case files:
				return o.printFiles(args, c.OutOrStdout(), c.ErrOrStderr())
			case o.named != "" && (len(args) > 0 || c.Flags().Changed("pid")):
				return usagef("both --attach-all and another process: give one of them")
			case o.named != "":
				return cmp.Or(o.record.selection.check(), o.runNamed(c.OutOrStdout(),
					c.ErrOrStderr()))
			}
			if err := o.record.check(c, args); err != nil {
				return err
			}
			return o.run(args, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.record.add(all)
	f := c.Flags()
	f.AddFlag(all.Lookup("pid"))
	f.StringVar(&o.named, "attach-all", "", "attach to all processes whose command is called "+
		"`NAME`, as ps -e has it, and unite what they run")
	for _, name := range []string{"duration", "func", "no-func", "lib"} {
		f.AddFlag(all.Lookup(name))
	}
	f.StringVarP(&o.record.output, "output", "o", "", "write a snapshot of what has run to "+
		"`FILE`, for residual, and to be merged; what was there becomes FILE.old")
	f.StringVar(&o.lcov, "lcov", "", "write what has run to `FILE`, as lcov and genhtml read it")
	f.BoolVar(&o.record.json, "json", false, "print one JSON object in place of the table")
	all.Lookup("quiet").Usage = quietOfObserving
	for _, name := range []string{"quiet", "verbose"} {
		f.AddFlag(all.Lookup(name))
	}
	return c
}

// run observes a process or a command, and reports.
func (o *coverageFlags) run(argv []string, stdout, stderr io.Writer) error {
	return o.record.observe(argv, stdout, stderr, func(by *observing) error {
		return o.report(by, func(own coverage.Options) (*covered.Coverage, error) {
			return coverage.Run(by.signals.End, own)
		})
	})
}

// runNamed observes all processes of a name.
func (o *coverageFlags) runNamed(stdout, stderr io.Writer) error {
	s := interrupts.Watch()
	defer s.Stop()
	if err := mayRecord(); err != nil {
		return err
	}
	interrupts.OutlivePipes()
	s.TakeINT()
	list, err := coverage.Named(o.named)
	if err != nil {
		return err
	}
	for _, p := range list {
		defer p.Close()
	}
	by := o.record.observing(s, list[0], stdout, stderr)
	defer by.printer.Prepared()
	return o.report(by, func(own coverage.Options) (*covered.Coverage, error) {
		return coverage.RunAll(s.End, list, own)
	})
}

// report observes, and reports what has run.
func (o *coverageFlags) report(by *observing,
	run func(coverage.Options) (*covered.Coverage, error)) error {
	by.options.Output = o.outputs().Files()
	from := coverage.Origin{Tool: version(), Command: by.process.Command(), PID: by.process.PID,
		Start: time.Now()}
	c, err := run(by.options)
	if c == nil {
		return err
	}
	return cmp.Or(o.outputs().Write(by.out, c, from, by.options.Remark), err)
}

// An observing is what commands have that observe a process, and record nothing.
type observing struct {
	signals *interrupts.Wishes
	process *target.Process
	options coverage.Options
	printer *messages.Printer
	out     io.Writer // takes the result
}

// observe has a process observed, or a command, whose output stdout is.
func (o *recordFlags) observe(argv []string, stdout, stderr io.Writer,
	run func(*observing) error) error {
	s := interrupts.Watch()
	defer s.Stop()
	if err := mayRecord(); err != nil {
		return err
	}
	interrupts.OutlivePipes()
	out := stdout
	if len(argv) > 0 {
		out = stderr
	}
	return recordTarget(o, s, argv, stderr, func(from record.Options) error {
		process := from.Process
		if from.Child != nil {
			process = from.Child.Process
		}
		by := o.observing(s, process, out, stderr)
		defer by.printer.Prepared()
		by.options.Process, by.options.Child = from.Process, from.Child
		if err := o.checkTarget(process); err != nil {
			return record.KillUnstarted(from.Child, err)
		}
		return run(by)
	})
}

func (o *recordFlags) observing(s *interrupts.Wishes, process *target.Process,
	out, stderr io.Writer) *observing {
	p := o.printer(process, true)
	p.Err, p.Prepared = statusline.New(stderr, o.quiet), s.QuitAtOnce(stderr)
	return &observing{s, process, coverage.Options{
		Selection: o.selection.compiled, Duration: o.limit, Confine: confine,
		Log:    newLog(p.Err, o.verbose),
		Remark: func(text string) { p.Insist("%s", text) },
		LibraryLeftOut: func(path string, err error) {
			p.Handle(record.LibraryLeftOut{Path: path, Err: err})
		},
		EndsEarly: func(why error) { p.Insist("it ends: %s", errorText(why)) },
		Ending: func(pid, probes int) {
			p.Say("taking %s out of process %d: it goes on meanwhile", text.Count(probes, "probe"),
				pid)
		},
		Began: func(pid, probes int) {
			p.Prepared()
			p.Say("attached to process %d (%s): %s", pid, p.Name, text.Count(probes, "probe"))
		},
	}, p, out}
}

func (o *coverageFlags) outputs() coverage.Outputs {
	return coverage.Outputs{Snapshot: o.record.output, LCOV: o.lcov, JSON: o.record.json}
}

func (o *coverageFlags) printFiles(files []string, out, stderr io.Writer) error {
	c, err := coverage.ReadFiles(files)
	if err != nil {
		return err
	}
	return o.outputs().Write(out, c, coverage.Origin{Tool: version()}, func(text string) {
		fmt.Fprintf(stderr, "wpptrace: %s\n", text)
	})
}
