package main

import (
	"github.com/spf13/cobra"

	"wpptrace/query"
)

// The commands that ask a snapshot for something by name. They need no privileges.

// namesHelp says how paths are named.
const namesHelp = `ROUTINE    any path of a routine, named as hot does: "..." may stand for a part of the name
ROUTINE#N  path N of the routine
ROUTINE()  a path that enters the routine
'ROUTINE'  in quotes, a name with spaces, parentheses or other signs: 'f(int)'#2 is f(int), path 2`

func findCommand() *cobra.Command {
	q := query.FindQuery{Gap: 10, First: 1, Top: 10}
	var asJSON, onlyCount bool
	var nth uint64
	c := &cobra.Command{
		Use:   "find [FLAG...] PATTERN SNAPSHOT",
		Short: "Print how often and where a sequence of paths ran",
		Example: `  wpptrace find 'xmalloc#0 xmalloc#1' bash-4711.wpp    these two paths in a row
  wpptrace find 'main * read' --nth 100 x.wpp          the 100th time that a path lay between
  wpptrace find 'open() ** close()' --gap 50 x.wpp     with up to fifty between`,
		Long: `PATTERN is a sequence of these, with spaces between:
` + namesHelp + `
*          any path
**         none, or up to --gap any paths

An occurrence is where a match ends, with the shortest stretch that matches there; occurrences may
overlap. None crosses a line that dump marks with #. POSITION counts the thread's paths and marks
from 0, as dump --from does.`,
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
			s, _, err := readSnapshot(args[1])
			if err != nil {
				return err
			}
			report, err := query.Find(s, q)
			switch {
			case err != nil:
				return err
			case asJSON:
				return query.WriteFindJSON(c.OutOrStdout(), s, report)
			}
			return query.WriteFind(c.OutOrStdout(), s, report)
		},
	}
	f := c.Flags()
	f.BoolVar(&onlyCount, "count", false, "only count")
	f.Uint64Var(&nth, "nth", 0, "print only occurrence `N`")
	f.Lookup("nth").DefValue = ""
	f.IntVar(&q.Top, "top", q.Top, "print only the first `N`")
	f.IntVar(&q.Gap, "gap", q.Gap, "most paths that ** stands for: `N`")
	f.IntSliceVar(&q.TIDs, "tid", nil, "only thread `TID` (repeatable)")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}
