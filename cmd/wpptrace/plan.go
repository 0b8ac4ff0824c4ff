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
		Example: planreport.Example,
		Long:    planreport.Help,
		RunE: func(c *cobra.Command, args []string) error {
			if err := cmp.Or(q.validate(args, c.Flags().Changed("pid")),
				checkOverlap(c, q.overlap, q.interesting.Snapshot)); err != nil {
				return err
			}
			if q.routine == "" && c.Flags().Changed("routine") {
				return usagef("--routine needs the NAME of a routine: plan -v lists them")
			}
			if wrong := q.interesting.Wrong(c.Flags().Changed); wrong != "" {
				return usagef("%s", wrong)
			}
			x := q.question(c.ErrOrStderr(), args)
			if q.ofPart() {
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
	q.interesting.Add(c.Flags(), "print how compactly the paths are numbered that `SNAPSHOT` has "+
		"recorded", "choose probes that count these paths, and have them `count` or `ignore` all "+
		"others")
	c.Flags().IntVar(&q.overlap, "overlap", -1, "print how many overlapping paths of degree `K` "+
		"there may be")
	c.Flags().Lookup("overlap").DefValue = "0" // which help does not print
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
	interesting                 interesting.Choice // no Snapshot: all paths are
	overlap                     int                // a degree; below 0: acyclic paths alone
}

// ofPart reports whether a part of the plan is asked for.
func (q *planQuery) ofPart() bool {
	return q.routine+q.interesting.Snapshot != "" || q.overlap >= 0
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
	case q.routine != "" && q.interesting.Snapshot != "":
		return usagef("--routine and --interesting are two questions: give one of them")
	case q.routine != "" && q.overlap >= 0:
		return usagef("--routine and --overlap are two questions: give one of them")
	case q.ofPart() && (q.try || q.prove || q.verbose || len(q.sel.libs) > 0):
		return usagef("--routine, --interesting and --overlap go with none of --canary, --lib, " +
			"--verify and -v: they answer for a part of the program")
	}
	return q.sel.check()
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
	switch {
	case q.interesting.Snapshot != "":
		answer, err = x.Interesting(q.interesting)
	case q.overlap >= 0:
		answer, err = x.Overlap(q.overlap)
	default:
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
