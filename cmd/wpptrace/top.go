package main

import (
	"cmp"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wpptrace/internal/interrupts"
	"wpptrace/internal/statusline"
	"wpptrace/internal/top"
	"wpptrace/loader/target"
)

// topFlags are those of a recording that is watched.
type topFlags struct {
	record   recordFlags
	interval time.Duration
}

// ofRecording are the flags of a recording that one has that is watched, but for --output.
var ofRecording = []string{"pid", "duration", "func", "no-func", "weights", "lib", "complete",
	"max-slowdown", "overhead", "window", "max-stall", "ring-size", "memory", "strict", "verbose"}

func topCommand() *cobra.Command {
	o := topFlags{record: newRecordFlags(), interval: time.Second}
	c := &cobra.Command{
		Use:   "top -p PID",
		Short: "Show live where a process spends its time: routines, and hot subpaths",
		Example: `  wpptrace top -p 4711                   until q is typed
  wpptrace top -p 4711 --lib 'libc.so*'  of the C library, too
  wpptrace top -p 4711 -d 10s | cat      lines, not a screen
  wpptrace top -p 4711 -o x.wpp          and keep the recording`,
		Long: `A recording as wpptrace -p makes it, watched while it goes on: once a second it shows
where the CPU time went, what ran by routine, and the hot subpaths, of all that was recorded so far.
Columns are those of wpptrace hot --routines and of wpptrace hot. What tracing costs is always in
view: events that were lost, the overhead, and the longest time for which a window may have held the
process up. Below is the source of what is selected: lines that ran are marked.

Keys: up and down (or k and j) select, tab changes between routines and subpaths. s sorts by share,
c by calls or count, p by paths or length, n by name; r the other way round. / asks for a regular
expression: only routines that it matches are shown, and subpaths through them; escape shows all
again. [ and ] scroll the source. The space bar holds the tables, or lets them go on. q or Ctrl-C
ends: probes are taken out, and the process goes on as before.

Where standard input or output is no terminal, lines are printed: each begins with the time and its
kind: status, time, routine, subpath, next (what to ask for next) or trouble.

What is shown comes from a process that has no privileges. Nothing is written when the recording
ends, unless -o says where. See wpptrace --help for the other flags.`,
		Args: exactly(0, "no argument"),
		RunE: func(c *cobra.Command, args []string) error {
			if !c.Flags().Changed("pid") {
				return usagef("nothing to watch: give -p PID")
			}
			if o.interval < shortestInterval {
				return usagef("--interval %v is below %v", o.interval, shortestInterval)
			}
			if err := o.record.check(c, args); err != nil {
				return err
			}
			return o.run(c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.record.add(all)
	f := c.Flags()
	for _, name := range ofRecording {
		f.AddFlag(all.Lookup(name))
	}
	f.StringVarP(&o.record.output, "output", "o", "", "write a snapshot to `FILE` at the end; "+
		"what was there becomes FILE.old")
	addTime(f, &o.interval, "interval", "", "`TIME` between two updates (default 1s)")
	return c
}

const shortestInterval = 100 * time.Millisecond

// run records a process and has the recording shown.
func (o *topFlags) run(stdout, stderr io.Writer) error {
	s := interrupts.Watch()
	defer s.Stop()
	if err := mayRecord(); err != nil {
		return err
	}
	interrupts.OutlivePipes()
	s.TakeINT()
	p, err := target.Open(o.record.pids[0])
	if err != nil {
		return err
	}
	defer p.Close()
	if err := o.record.checkTarget(p); err != nil {
		return err
	}
	printer := o.record.printer(p, true)
	opening := top.Opening{Process: printer.Process(), Interval: o.interval,
		Budget: o.record.overhead / 100, MaxStall: o.record.maxStall,
		Selected: len(o.record.selection.only) > 0}
	viewer, err := top.Start(opening, os.Stdin, stdout)
	if err != nil {
		return err
	}
	printer.Err, printer.Prepared = statusline.New(viewer.Messages(stderr), true),
		s.QuitAtOnce(stderr)
	defer printer.Prepared()
	options := o.record.options(s, newLog(printer.Err, o.record.verbose))
	printer.Log, options.Process, options.Unwritten = options.Log, p, options.Output == ""
	result, err := viewer.Record(s.End, options, printer.Handle)
	err = cmp.Or(err, viewer.End(result, s.Further(), stderr))
	if result == nil {
		return err
	}
	printer.Err = statusline.New(stderr, true)
	return cmp.Or(err, statusOf(printer.Watched(result)))
}
