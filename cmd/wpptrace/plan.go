package main

import (
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"wpptrace/internal/interesting"
	"wpptrace/internal/planreport"
	"wpptrace/internal/text"
)

func planCommand() *cobra.Command {
	var q planQuery
	c := &cobra.Command{
		Use: "plan [FLAG...] {-p PID | FILE}",
		Short: "Print what would be probed in a process or a file and what not, why, and at what " +
			"cost",
		Example: `  wpptrace plan -p 4711            of a process
  wpptrace plan -v /usr/bin/bash   of a file, routine by routine; needs no privileges
  wpptrace plan --complete -F '^parse' /usr/bin/bash
  wpptrace plan --lib 'libssl*' -p 4711   and of a library that it has loaded
  wpptrace plan --canary -p 4711   and how much slower it really gets: probes stand for a moment
  wpptrace plan --verify FILE      prove that the events determine every path
  wpptrace plan --routine main FILE   the blocks of one routine, and what the probes there record
  wpptrace plan --routine main --dot FILE | dot -Tsvg > main.svg
  wpptrace plan --interesting x.wpp FILE   how compactly the paths in x.wpp can be numbered`,
		Long: `Nothing is attached, except with --canary. The lines that are printed:

  routines        how many are traced, of all; how many of these need no probe, as their callers
                  imply what they do, and how many more make no event in some activations
  acyclic paths   of all traced routines
  loops           that need no probe, as registers say how many rounds they run
  probes          emulated ones cost about 0.5 us a hit, single-stepped ones 20 to 40 times that
  expected hits   for each acyclic path that runs, and for 1000 instructions
  warning         that many of these are single-stepped, and slow; and the routine with most
  slow-down       of the program's own code, if it computes and never waits; and at most, if it
                  runs as fast as any processor can
  canary          the slow-down that --canary measured
  inlined         routines not selected by -F that hold inlined code of those that are
  left out        routines that are not traced, by reason, with one of them each
  not listed      code in no routine, which is not traced
  libraries       that the program loads, and that are not traced
  verified        or not: what --verify found

Expected hits rest on a static estimate of how often each block runs, or on how often it ran in the
recording that --weights names. The slow-down is no more certain than that estimate: what a library
calls back, as qsort does, may run any number of times. Time in libraries, in the kernel and asleep
stays as it is. With -F or -N the slow-down is that of the selected routines while they run; the
others run as ever. What a hit takes is assumed; a virtual machine may take ten times that. --canary
measures the slow-down: the probes stand in the process for 50ms, nothing is kept, and they go
again. That is of all its CPU time, in libraries and in the kernel too. Where hits took nearly all
of it, the least that the slow-down can be is printed, and the most, by the instructions that ran.

With -p the plan is that of a recording in windows, which -p makes unless --overhead 0 is given or
this kernel lacks what windows take. Every loop has a probe then, for windows begin and end amid
loops. Of a FILE the plan is that of a recording without windows.

--verify proves the plan, apart from what made it: between two events there is one probe-free route
at most; no circle of jumps or calls runs without an event; and external code (libraries that are
not traced, the kernel, routines left out) can break no probe-free route by calling back, throwing
or jumping. Each fault names its routine and the blocks of both routes that no event distinguishes;
then the exit status is 1.

--routine NAME prints the plan of one routine instead. NAME is its name, its symbol, or the address
of its entry. Each block has its addresses, its line of source where that is known, how it ends and
where it goes. A block with a probe has the instruction that carries it, emulated or single-stepped,
and what each event records: the activation, whether the jump is taken, and a captured value, if one
decides where a switch goes, what jumps ahead do, or how often a loop runs. The activation is
recorded by its frame's address, the CFA: that above the return address, which is rsp+8 at the
entry. A route is what runs between two events of the routine. A block without a probe is known by
the routes that it is on. A loop without a probe is in a route once, as 2 (rounds), for all its
rounds. --dot draws the blocks for Graphviz.

--interesting SNAPSHOT prints instead how an array can count the paths that SNAPSHOT has recorded:
their probes' hits, as often as each path ran, and for each routine its paths, how many of these are
interesting, the range of their identifiers, which is the number of counters, and its compactness:
identifiers for each interesting path, 1 at best. --hot N takes the N paths in which most
instructions ran. All other paths can be told from these, and be counted together. --others chooses
probes that do nothing but tell these paths from each other and from all others, and prints how
often they would have been hit: with ignore, other paths need make no hit; with count, those of a
routine are counted together. What is chosen is proven; it takes some seconds, or a minute.`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := q.validate(args, c.Flags().Changed("pid")); err != nil {
				return err
			}
			if q.routine == "" && c.Flags().Changed("routine") {
				return usagef("--routine needs the NAME of a routine: plan -v lists them")
			}
			if q.interesting == "" && c.Flags().Changed("interesting") {
				return usagef("--interesting needs a SNAPSHOT: that of a recording of the program")
			}
			x := q.question(c.ErrOrStderr(), args)
			if q.routine+q.interesting != "" {
				return q.writePart(c.OutOrStdout(), x)
			}
			r, err := x.Report()
			if err != nil {
				return err
			}
			write := r.WriteText
			if q.asJSON {
				write = r.WriteJSON
			}
			err = write(c.OutOrStdout(), q.verbose)
			if trouble := r.Trouble(); trouble != "" {
				fmt.Fprintf(c.ErrOrStderr(), "wpptrace: %s\n", trouble)
			}
			return cmp.Or(err, r.Unproven())
		},
	}
	c.Flags().IntVarP(&q.pid, "pid", "p", 0, "plan for process `PID`")
	q.sel.add(c.Flags())
	c.Flags().BoolVarP(&q.verbose, "verbose", "v", false, "list the routines")
	c.Flags().BoolVar(&q.try, "canary", false, "put the probes in for a moment, and measure the "+
		"slow-down")
	c.Flags().BoolVar(&q.prove, "verify", false, "prove that the probes' events determine every "+
		"path")
	c.Flags().StringVar(&q.routine, "routine", "", "print the blocks, probes and routes of the "+
		"routine `NAME`")
	c.Flags().BoolVar(&q.dot, "dot", false, "with --routine: draw them for Graphviz")
	c.Flags().StringVar(&q.interesting, "interesting", "", "print how compactly the paths are "+
		"numbered that `SNAPSHOT` has recorded")
	c.Flags().IntVar(&q.hot, "hot", 0, "with --interesting: of the `N` hottest of these alone")
	c.Flags().StringVar(&q.others, "others", "", "with --interesting: choose probes that count "+
		"these paths, and have them `count` or `ignore` all others")
	c.Flags().BoolVar(&q.asJSON, "json", false, "print one JSON object")
	return c
}

// A planQuery says which plan is asked for, and what of it.
type planQuery struct {
	pid                         int // 0: a file is given
	sel                         selectionFlags
	verbose, asJSON, prove, try bool
	routine                     string // "": the whole program
	dot                         bool
	interesting                 string // a snapshot; "": all paths are
	hot                         int    // how many of its hottest paths; 0: all
	others                      string // what becomes of others, where probes count these
}

func (q *planQuery) validate(args []string, ofProcess bool) error {
	switch {
	case len(args) > 1:
		return usagef("a FILE expected, not %s", text.Count(len(args), "argument"))
	case ofProcess == (len(args) == 1):
		return usagef("give either -p PID or a FILE to plan")
	case len(q.sel.libs) > 0 && len(args) == 1:
		return usagef("--lib needs -p: which libraries %s will run with is not known", args[0])
	case q.try && len(args) == 1:
		return usagef("--canary needs -p: %s does not run", args[0])
	case q.try && len(q.sel.libs) > 0:
		return usagef("--canary cannot try --lib: give one of them")
	case q.routine == "" && q.dot:
		return usagef("--dot needs --routine NAME: the graph is of one routine")
	case q.dot && q.asJSON:
		return usagef("--dot and --json are two forms of one answer: give one of them")
	case q.routine != "" && q.interesting != "":
		return usagef("--routine and --interesting are two questions: give one of them")
	case q.routine+q.interesting != "" && (q.try || q.prove || q.verbose || len(q.sel.libs) > 0):
		return usagef("--routine and --interesting go with none of --canary, --lib, --verify and " +
			"-v: they answer for a part of the program")
	case q.interesting == "" && q.hot != 0:
		return usagef("--hot needs --interesting SNAPSHOT, which says how often paths ran")
	case q.hot < 0:
		return usagef("--hot %d is below 0", q.hot)
	}
	if err := checkOthers(q.interesting, q.others); err != nil {
		return err
	}
	return q.sel.check()
}

// checkOthers checks what is to become of paths that are not interesting.
func checkOthers(snapshot, others string) error {
	switch {
	case others == "":
		return nil
	case snapshot == "":
		return usagef("--others needs --interesting SNAPSHOT, which says which paths are not others")
	case others != interesting.CountOthers && others != interesting.IgnoreOthers:
		return usagef("--others %s: count or ignore expected", others)
	}
	return nil
}

// question is what is asked of package planreport. Messages go to stderr.
func (q *planQuery) question(stderr io.Writer, args []string) *planreport.Question {
	x := &planreport.Question{PID: q.pid, Selection: q.sel.compiled, Prove: q.prove, Try: q.try,
		Warn: func(message string) { fmt.Fprintf(stderr, "wpptrace: %s\n", message) },
		Line: oneLine}
	if len(args) > 0 {
		x.File = args[0]
	}
	return x
}

// writePart writes what the plan makes of one routine, or of interesting paths.
func (q *planQuery) writePart(w io.Writer, x *planreport.Question) error {
	var answer interface {
		WriteText(io.Writer) error
		WriteJSON(io.Writer) error
	}
	var err error
	if q.interesting != "" {
		answer, err = x.Interesting(q.interesting, q.hot, q.others)
	} else {
		c, errOfChart := x.Chart(q.routine)
		if errOfChart == nil && q.dot {
			return c.WriteDot(w)
		}
		answer, err = c, errOfChart
	}
	switch {
	case err != nil:
		return err
	case q.asJSON:
		return answer.WriteJSON(w)
	}
	return answer.WriteText(w)
}
