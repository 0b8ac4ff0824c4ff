package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wpptrace/internal/interrupts"
	"wpptrace/internal/memory"
	"wpptrace/internal/messages"
	"wpptrace/internal/record"
	"wpptrace/internal/record/follow"
	"wpptrace/internal/recordreport"
	"wpptrace/internal/statusline"
	"wpptrace/loader/attach"
	"wpptrace/loader/privilege"
	"wpptrace/loader/requirement"
	"wpptrace/loader/target"
	"wpptrace/loader/uprobe"
)

// recordFlags are the flags of a recording.
type recordFlags struct {
	counted     bool // a path profile is wanted
	values      bool // values are wanted besides paths
	overlap     int  // of a path profile, the degree of overlapping paths; below 0: none
	pids        []int
	limit       time.Duration
	every       time.Duration // between snapshots; 0: there is one, at the end
	output      string
	rawFile     string
	selection   selectionFlags
	followFork  bool
	tids        []int
	maxSlowDown float64
	overhead    float64 // per cent; 0: no limit
	window      time.Duration
	maxStall    time.Duration
	ring        memory.Size
	onOverflow  overflow
	memory      memoryFlags
	quiet       bool
	verbose     bool
	json        bool
	strict      bool
}

// defaultMaxSlowDown is that of a process that is at work already; a command that is started to be
// traced has none.
const defaultMaxSlowDown = 10

// defaultOverhead is that of a process that is at work already, per cent; a command that is started
// to be traced has none.
const defaultOverhead = 5

func newRecordFlags() recordFlags {
	return recordFlags{onOverflow: overflowGap, ring: attach.DefaultRing, memory: defaultMemory(),
		maxSlowDown: defaultMaxSlowDown, window: record.DefaultWindow,
		maxStall: record.DefaultMaxStall, overlap: -1}
}

func recordCommand() *cobra.Command {
	o := newRecordFlags()
	c := &cobra.Command{
		Use: "wpptrace {-p PID | [FLAG...] -- COMMAND [ARG...]}",
		Short: "Record the whole program path of a live process: every path that every thread " +
			"takes, in order",
		Example: recordreport.Example,
		Long:    recordreport.Help,
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(c, args); err != nil {
				return err
			}
			return recordCommandLine(&o, args, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	o.add(c.Flags())
	return c
}

func (o *recordFlags) add(f *pflag.FlagSet) {
	f.IntSliceVarP(&o.pids, "pid", "p", nil, "attach to process `PID`")
	addTime(f, &o.limit, "duration", "d", "end the recording after this `TIME`, as 10s or 2m; "+
		"without a unit: seconds; 0: when the process exits (the default)")
	addTime(f, &o.every, "snapshot-every", "", "write a snapshot each time that this `TIME` has "+
		"passed, as SIGUSR2 does; the last two stay; 0: only at the end (the default)")
	f.StringVarP(&o.output, "output", "o", "", "`FILE` for the snapshot (default NAME-PID.wpp); "+
		"what was there becomes FILE.old")
	f.StringVar(&o.rawFile, "raw", "", "write the raw trace to `FILE` too, as wpptrace compress "+
		"reads it; it is large; what was there becomes FILE.old")
	o.selection.add(f)
	f.BoolVar(&o.followFork, "follow-fork", false, "record the processes too that it starts, and "+
		"theirs, and what each becomes by exec, in a snapshot each")
	f.IntSliceVar(&o.tids, "tid", nil, "record only thread `TID` (repeatable)")
	f.Float64Var(&o.maxSlowDown, "max-slowdown", o.maxSlowDown,
		"detach when the process is slowed down more than `X` times; 0: never (the default with "+
			"-- and with --overhead other than 0); with -p and without --overhead, all is traced "+
			"until then")
	f.Float64Var(&o.overhead, "overhead", o.overhead, "take at most `PERCENT` of the process's "+
		"own CPU time more: where that does not do for all of it, trace it in windows; 0: no "+
		"limit (the default; with -p it is 5, unless --max-slowdown or --follow-fork is given, "+
		"or before Linux 6.6)")
	addTime(f, &o.window, "window", "", fmt.Sprintf("`TIME` that a window lasts, by the clock, "+
		"where it costs more than the budget earns meanwhile (default %v)", o.window))
	addTime(f, &o.maxStall, "max-stall", "", fmt.Sprintf("`TIME` that a window, with its probes "+
		"going in and coming out, may hold the process up: windows are shorter than --window "+
		"where it takes that (default %v, or twice the --window that is given)", o.maxStall))
	f.Var(&o.ring, "ring-size", "`BYTES` of the buffer between kernel and wpptrace, a power of "+
		"two; 64M, or 16M where windows are short")
	f.Var(&o.onOverflow, "on-overflow", "`WHAT` to do when that is full: gap: lose what comes, "+
		"and say so (the default with -p), or stop: stop the process meanwhile (the default with "+
		"-- and without --follow-fork)")
	f.Lookup("on-overflow").DefValue = "" // the text says which
	o.memory.add(f)
	f.BoolVar(&o.json, "json", false, "print the figures of the recording as one JSON object, "+
		"in place of the hot subpaths. With -- and -q, nothing else goes to stderr but what "+
		"COMMAND writes there")
	f.BoolVar(&o.strict, "strict", false, "exit with status 3 when data were lost")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print nothing but errors, losses, an end by "+
		"--max-slowdown, and what --json asks for")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print what is being done")
}

// unknownCommand says what may have been meant by what is no command.
func unknownCommand(c *cobra.Command, word string) error {
	c.SuggestionsMinimumDistance = 2
	near := c.SuggestionsFor(word)
	switch isSnapshot := strings.HasSuffix(word, ".wpp"); {
	case isSnapshot && c.Name() == "values":
		return usagef("nothing asked of %s: give --stat, --at or --var", word)
	case isSnapshot:
		return usagef("nothing asked of %s: give a command before it, such as hot", word)
	case c.Flags().Changed("pid"):
		return usagef("unknown command %q: -p PID traces a process without one", word)
	case len(near) > 0 && !strings.Contains(word, "/"):
		return usagef("unknown command %q: did you mean %s? Put -- before a program to trace it",
			word, strings.Join(near, " or "))
	}
	return usagef("unknown command %q: put -- before a program to trace it", word)
}

// check finds what cannot be meant.
func (o *recordFlags) check(c *cobra.Command, args []string) error {
	attaching := c.Flags().Changed("pid")
	dash := c.ArgsLenAtDash()
	switch {
	case len(args) > 0 && dash != 0:
		return unknownCommand(c, args[0])
	case dash == 0 && (len(args) == 0 || args[0] == ""):
		return usagef("no command after --")
	case attaching && len(args) > 0:
		return usagef("both -p and a command to trace: give one of them")
	case !attaching && len(args) == 0:
		return usagef("nothing to trace: give -p PID or -- COMMAND")
	case len(o.pids) > 1:
		return usagef("-p %d and -p %d: one wpptrace traces one process: start another for the "+
			"other", o.pids[0], o.pids[1])
	case attaching && o.pids[0] <= 0:
		return usagef("process number %d is not positive", o.pids[0])
	case !attaching && len(o.tids) > 0:
		return usagef("--tid needs -p: a command has no threads yet")
	case o.followFork && o.alone() != "":
		return usagef("both --follow-fork and %s: that is for one process: give one of them",
			o.alone())
	case o.output == "-":
		return usagef("-o -: a snapshot is a file: name one")
	case o.rawFile == "-":
		return usagef("--raw -: a raw trace goes to a file: name one, or a named pipe")
	case o.limit < 0:
		return usagef("duration %v is negative", o.limit)
	case o.every < 0:
		return usagef("--snapshot-every %v is negative", o.every)
	case o.maxSlowDown != 0 && !(o.maxSlowDown > 1):
		return usagef("--max-slowdown %v is not above 1, and not 0", o.maxSlowDown)
	case !(o.overhead >= 0 && o.overhead <= mostOverhead):
		return usagef("--overhead %v is not a percentage from 0 to %v", o.overhead, mostOverhead)
	case o.window < shortestWindow || o.window > longestWindow:
		return usagef("--window %v is not from %v to %v", o.window, shortestWindow, longestWindow)
	case o.maxStall < shortestWindow || o.maxStall > longestStall:
		return usagef("--max-stall %v is not from %v to %v", o.maxStall, shortestWindow,
			longestStall)
	case o.ring < memory.Size(os.Getpagesize()) || o.ring&(o.ring-1) != 0 || o.ring > maxRing:
		return usagef("--ring-size %v is not a power of two from %v to %v", o.ring,
			memory.Size(os.Getpagesize()), memory.Size(maxRing))
	}
	if err := cmp.Or(o.memory.check(), o.selection.check()); err != nil {
		return err
	}
	o.complete(attaching, uprobe.Detect().SupportsWindows() == nil, c.Flags().Changed)
	return o.fitMemory(memory.Allowed(), c.Flags().Changed)
}

// complete sets the flags that were not given: a process that is at work already is not to be held
// up, and of a command all is to be had. windows says that the kernel can put probes in and out in
// a moment.
func (o *recordFlags) complete(attaching, windows bool, given func(flag string) bool) {
	if attaching && windows && !given("overhead") && !given("max-slowdown") && !o.followFork {
		o.overhead = defaultOverhead
	}
	if !given("max-slowdown") && (!attaching || o.overhead > 0) {
		// the budget is the stricter one, in the long run
		o.maxSlowDown = 0
	}
	if o.overhead > 0 && o.window <= shortWindow && !given("ring-size") {
		o.ring = ringOfWindows
	}
	if given("window") && !given("max-stall") {
		o.maxStall = max(o.maxStall, 2*o.window)
	}
	if !attaching && !given("on-overflow") && !o.followFork {
		o.onOverflow = overflowStop
	}
}

// ringOfWindows is the buffer of a recording in windows of at most shortWindow: 8 threads that do
// nothing but hit probes report 8 MB in that time. The kernel maps it twice.
const (
	shortWindow   = 100 * time.Millisecond
	ringOfWindows = 16 << 20
)

// Limits of the budget.
const (
	mostOverhead   = 1000 // per cent
	shortestWindow = time.Millisecond
	longestWindow  = time.Minute
	longestStall   = 2 * longestWindow
)

// maxRing is the largest ring buffer that the kernel makes.
const maxRing = 1 << 30

// alone names a flag that does not go with --follow-fork; "": none is given.
func (o *recordFlags) alone() string {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"--lib", len(o.selection.libs) > 0}, {"--tid", len(o.tids) > 0},
		{"--raw", o.rawFile != ""},
		{"--overhead", o.overhead > 0}, {"--on-overflow stop", o.onOverflow == overflowStop},
	} {
		if f.given {
			return f.name
		}
	}
	return ""
}

// confine is a variable for tests, which record in their own process and go on.
var confine = privilege.Confine

// options are those of the recording that the flags ask for.
func (o *recordFlags) options(s *interrupts.Wishes, log *slog.Logger) record.Options {
	return record.Options{
		Threads: o.tids, Selection: o.selection.compiled, Output: o.output, Raw: o.rawFile,
		Counted: o.counted, Overlap: o.overlap + 1, Values: o.values, Tool: version(),
		Duration: o.limit, SnapshotEvery: o.every, Snapshot: s.Snapshot, MaxSlowDown: o.maxSlowDown,
		Overhead: o.overhead / 100, Window: o.window, MaxStall: o.maxStall, Ring: int(o.ring),
		StopWhenFull: o.onOverflow == overflowStop,
		Memory:       o.memory.limits(), Abort: s.Abort, Confine: confine, Log: log,
	}
}

// recordCommandLine records a process or a command, and reports.
func recordCommandLine(o *recordFlags, argv []string, stdout, stderr io.Writer) error {
	s := interrupts.Watch() // a SIGUSR2 that comes too early would kill
	defer s.Stop()
	if err := mayRecord(); err != nil {
		return err
	}
	if o.followFork {
		if err := follow.Check(); err != nil {
			return err
		}
	}
	interrupts.OutlivePipes()
	out := stdout
	if len(argv) > 0 {
		out = stderr
	}
	return recordTarget(o, s, argv, stderr, func(options record.Options) error {
		return o.run(s, options, out, stderr)
	})
}

// recordTarget opens the process that -p names, or starts a command, and runs a recording of it.
func recordTarget(o *recordFlags, s *interrupts.Wishes, argv []string, stderr io.Writer,
	run func(record.Options) error) error {
	if len(argv) == 0 {
		return recordProcess(o, s, run)
	}
	return recordChild(o, s, argv, stderr, run)
}

// mayRecord fails where this process may not trace: what the kernel refuses then has many reasons.
func mayRecord() error {
	if _, err := requirement.Privileges(); err != nil {
		return fmt.Errorf("trace a process: %w: %s", err, requirement.PrivilegesFix)
	}
	return requirement.CheckFiles()
}

func recordProcess(o *recordFlags, s *interrupts.Wishes, run func(record.Options) error) error {
	s.TakeINT()
	p, err := target.Open(o.pids[0])
	if err != nil {
		return err
	}
	defer p.Close()
	options := o.options(s, nil)
	options.Process = p
	return run(options)
}

func recordChild(o *recordFlags, s *interrupts.Wishes, argv []string, stderr io.Writer,
	run func(record.Options) error) error {
	c, err := target.Start(argv)
	if err != nil {
		return err
	}
	defer c.Process.Close()
	s.TakeINT()
	options := o.options(s, nil)
	options.Child = c
	err = run(options)
	if unstarted := (*record.UnstartedError)(nil); errors.As(err, &unstarted) ||
		errors.Is(err, context.Canceled) {
		return err
	}
	if waitErr := outlast(c, o, s, stderr); err == nil {
		err = waitErr
	}
	if err != nil {
		return err
	}
	status, err := c.ExitStatus()
	if err == nil && status != 0 {
		err = exitStatus(status)
	}
	return err
}

// run records and prints what happens, and the report. A second signal ends wpptrace at once while
// the recording is prepared, and any while it is reported.
func (o *recordFlags) run(s *interrupts.Wishes, options record.Options,
	out, stderr io.Writer) error {
	process := options.Process
	if options.Child != nil {
		process = options.Child.Process
	}
	errs := statusline.New(stderr, o.quiet)
	options.Log = newLog(errs, o.verbose)
	printer := o.printer(process, options.Process != nil)
	printer.Out, printer.Err, printer.Log = out, errs, options.Log
	printer.Prepared = s.QuitAtOnce(stderr)
	defer printer.Prepared()
	defer errs.Clear()
	if err := o.checkTarget(process); err != nil {
		return record.KillUnstarted(options.Child, err)
	}
	if o.followFork {
		result, err := follow.Run(s.End, options, printer.HandleFollowed)
		if result == nil {
			return err
		}
		return cmp.Or(statusOf(printer.Followed(result)), err)
	}
	result, err := record.Run(s.End, options, printer.Handle)
	if result == nil {
		return err
	}
	defer s.QuitReport(errs, result.Path)()
	return cmp.Or(err, statusOf(printer.Result(result, process)))
}

// printer prints what happens during a recording of a process.
func (o *recordFlags) printer(p *target.Process, attached bool) *messages.Printer {
	return &messages.Printer{PID: p.PID, Name: p.Name, Attached: attached, Explain: errorText,
		Flags: messages.Flags{
			Quiet: o.quiet, JSON: o.json, Strict: o.strict, Counted: o.counted,
			Overhead: o.overhead, Limit: o.limit, MaxSlowDown: o.maxSlowDown, Ring: o.ring,
			Stops: o.onOverflow == overflowStop, Memory: o.memory.all,
			Selection: o.selection.compiled,
		}}
}

// statusOf has data that were lost be an exit status.
func statusOf(err error) error {
	if errors.Is(err, messages.ErrLost) {
		return exitStatus(exitLost)
	}
	return err
}

// checkTarget fails where a recording of a process cannot be: better before anything is read.
func (o *recordFlags) checkTarget(p *target.Process) error {
	options := record.Options{Process: p, Output: o.output, Raw: o.rawFile}
	if options, err := options.Complete(); errors.Is(err, record.ErrOneFile) {
		return usagef("--raw %s is where the snapshot goes, %s, or the trace or snapshot before: "+
			"name another file", options.Raw, options.Output)
	}
	if _, err := requirement.Namespace(); err != nil {
		return fmt.Errorf("attach to process %d (%s): pid namespace: %w: %s", p.PID, p.Name, err,
			requirement.NamespaceFix)
	}
	return nil
}

// outlast waits for the end of a command whose recording is over. A further signal ends that.
func outlast(c *target.Child, o *recordFlags, s *interrupts.Wishes, stderr io.Writer) error {
	further := s.Further()
	if c.Process.Alive() && !o.quiet {
		fmt.Fprintf(stderr, "wpptrace: process %d (%s) goes on, untraced, and wpptrace waits for "+
			"it: a further signal ends wpptrace alone\n", c.Process.PID, c.Process.Name)
	}
	select {
	case <-c.Done():
		return nil
	case <-further:
	}
	if c.Process.Wait(interrupts.SameWish) { // the signal was for both, as a terminal's is
		<-c.Done()
		return nil
	}
	return fmt.Errorf("wait for process %d (%s): interrupted: it goes on", c.Process.PID,
		c.Process.Name)
}

func newLog(w io.Writer, verbose bool) *slog.Logger {
	if !verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
