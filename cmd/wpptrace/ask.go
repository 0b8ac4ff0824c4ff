package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"wpptrace/compress/wpp"
	"wpptrace/query"
	"wpptrace/query/report"
	"wpptrace/query/rules"
)

// The commands that ask a snapshot for something by name. They need no privileges.

// namesHelp says how paths are named.
const namesHelp = `ROUTINE    any path of a routine, named as hot does; "..." may stand for a part
ROUTINE#N  path N of the routine
ROUTINE()  a path that enters the routine
'ROUTINE'  in quotes, a name with spaces or signs: 'operator new'#2 is path 2 of operator new`

// printCaveats prints what the recording does not know that is asked for with these names.
func printCaveats(c *cobra.Command, s *wpp.Snapshot, names ...string) {
	for _, caveat := range report.Caveats(s, names...) {
		fmt.Fprintf(c.ErrOrStderr(), "wpptrace: %s\n", caveat)
	}
}

// printMidway prints of how many threads the recording lacks the beginning.
func printMidway(c *cobra.Command, s *wpp.Snapshot) {
	if midway, err := rules.Midway(s); err == nil && midway > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "wpptrace: threads that ran before the recording began: %d: "+
			"what they did then is not known\n", midway)
	}
}

// printApart prints that threads are not looked at together: not how they ran beside each other.
func printApart(c *cobra.Command, s *wpp.Snapshot, tids []int) {
	if len(s.Threads) > 1 && len(tids) != 1 {
		fmt.Fprintln(c.ErrOrStderr(), "wpptrace: each thread is looked at by itself, whatever "+
			"ran in others before")
	}
}

func findCommand() *cobra.Command {
	q := rules.FindQuery{Gap: 10, First: 1, Top: 10}
	var asJSON, onlyCount bool
	var nth uint64
	c := &cobra.Command{
		Use:   "find [FLAG...] PATTERN SNAPSHOT",
		Short: "Print how often and where a sequence of paths ran",
		Example: `  wpptrace find 'xmalloc#0 xmalloc#1' bash-4711.wpp    these two paths in a row
  wpptrace find 'main * read' --nth 100 x.wpp          the 100th time that a path lay between
  wpptrace find 'open() ** close()' --gap 50 x.wpp     with up to fifty between
  wpptrace find 'malloc(n>4096)=p' x.wpp               calls, with values`,
		Long: `PATTERN is a sequence of these, with spaces between:
` + namesHelp + `
*          any path
**         none, or up to --gap any paths

Each place where a match ends is an occurrence: that of the shortest stretch which matches there.
Occurrences may overlap. None crosses a mark, which dump prints with #. POSITION counts the thread's
paths and marks from 0, as dump --from does.

In a recording of wpptrace values, PATTERN may be one of calls with values, as in free(p), and
malloc()=p: it is then a REGEX as wpptrace rules has it.

Code of a routine that is inlined into others runs in their paths: its calls there are not counted.
Printed is which routines have such code, as far as debug information shows it.`,
		Args: exactly(2, "a pattern with a snapshot"),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case c.Flags().Changed("nth") && (nth == 0 || onlyCount):
				return usagef("--nth counts from 1, and does not go with --count")
			case nth > 0:
				q.First, q.Top = nth, 1
			case onlyCount:
				q.Top = 0
			}
			q.Pattern = args[0]
			if err := q.Validate(); err != nil {
				return usageError{err}
			}
			s, _, err := readSnapshot(c, args[1])
			if err != nil {
				return err
			}
			found, err := rules.Find(s, q)
			printCaveats(c, s, q.Pattern)
			if err != nil {
				return err
			}
			if found.Count == 0 && !c.Flags().Changed("gap") &&
				slices.Contains(strings.Fields(q.Pattern), "**") {
				fmt.Fprintf(c.ErrOrStderr(), "wpptrace: ** stands for %d paths at most: --gap "+
					"allows more\n", q.Gap)
			}
			switch {
			case nth > found.Count:
				return fmt.Errorf("find %s: there is no occurrence %d: it has %d", q.Pattern, nth,
					found.Count)
			case asJSON:
				return report.WriteFindJSON(c.OutOrStdout(), s, found)
			}
			return report.WriteFind(c.OutOrStdout(), s, found)
		},
	}
	f := c.Flags()
	f.BoolVar(&onlyCount, "count", false, "only count")
	f.Uint64Var(&nth, "nth", 0, "print only occurrence `N`")
	f.IntVar(&q.Top, "top", q.Top, "print only the first `N`")
	f.IntVar(&q.Gap, "gap", q.Gap, "most paths that ** stands for: `N`")
	f.IntSliceVar(&q.TIDs, "tid", nil, "only thread `TID` (repeatable)")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func orderCommand() *cobra.Command {
	var asJSON bool
	var tids []int
	c := &cobra.Command{
		Use:   "order [FLAG...] P Q SNAPSHOT",
		Short: "Print whether one path ever, or always, ran before another",
		Example: `  wpptrace order 'init()' 'work()' x.wpp   did init come first, whenever work did?
  wpptrace order 'f#1' 'f#2' x.wpp         of two paths of a routine`,
		Long: `P and Q are each one of these:
` + namesHelp + `

P before Q is "always" if each Q has a P before it in its thread, "sometimes" if some have, "never"
if none has. It is "unknown" if none has, and not all of P and Q was traced. The first Q behind a P
is printed too, and what ran from that P on.`,
		Args: exactly(3, "two paths with a snapshot"),
		RunE: func(c *cobra.Command, args []string) error {
			s, _, err := readSnapshot(c, args[2])
			if err != nil {
				return err
			}
			o, err := rules.PathOrder(s, args[0], args[1], tids...)
			printCaveats(c, s, args[:2]...)
			printMidway(c, s)
			if err != nil {
				return err
			}
			printApart(c, s, tids)
			if asJSON {
				return report.WriteOrderJSON(c.OutOrStdout(), s, o)
			}
			return report.WriteOrder(c.OutOrStdout(), s, o)
		},
	}
	c.Flags().IntSliceVar(&tids, "tid", nil, "only thread `TID` (repeatable)")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func contextCommand() *cobra.Command {
	var asJSON bool
	var tids []int
	k, top := 1, 10
	c := &cobra.Command{
		Use:   "context [FLAG...] PATH SNAPSHOT",
		Short: "Print what ran directly before and after a path",
		Example: `  wpptrace context 'xmalloc#0' bash-4711.wpp    the path before, and the one after
  wpptrace context -k 3 'malloc()' x.wpp        the three before each entry, and after`,
		Long: `PATH is one of these:
` + namesHelp + `

COUNT is how often these paths ran directly before or after PATH; SHARE is COUNT as a share of all
executions of PATH. At the beginning and at the end of a thread there are fewer than -k. Marks,
which dump prints with #, are shown too.`,
		Args: exactly(2, "a path with a snapshot"),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case top < 0:
				return usagef("--top %d is below 0", top)
			case k < 1 || k > query.MostNeighbours:
				return usagef("-k %d is not between 1 and %d", k, query.MostNeighbours)
			}
			s, _, err := readSnapshot(c, args[1])
			if err != nil {
				return err
			}
			around, err := query.ContextOf(s, args[0], k, tids...)
			printCaveats(c, s, args[0])
			switch {
			case err != nil:
				return err
			case asJSON:
				return report.WriteContextJSON(c.OutOrStdout(), s, around, top)
			}
			return report.WriteContext(c.OutOrStdout(), s, around, top)
		},
	}
	c.Flags().IntVarP(&k, "paths", "k", k, "how many `PATHS` before and after")
	c.Flags().IntVar(&top, "top", top, "print only the `N` most frequent of each; 0: all")
	c.Flags().IntSliceVar(&tids, "tid", nil, "only thread `TID` (repeatable)")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}
