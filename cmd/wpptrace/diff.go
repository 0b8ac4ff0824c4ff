package main

import (
	"cmp"
	"fmt"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"wpptrace/compress/wpp"
	"wpptrace/internal/hotspots"
	"wpptrace/internal/memory"
	"wpptrace/query"
	"wpptrace/query/names"
	"wpptrace/query/report"
)

func diffCommand() *cobra.Command {
	q := query.DiffQuery{Hot: query.DefaultHotQuery(), Top: 20}
	var asJSON bool
	c := &cobra.Command{
		Use: "diff [FLAG...] SNAPSHOT SNAPSHOT",
		Short: "Print which routines and paths are new, gone, hotter or colder in a second " +
			"snapshot",
		Example: `  wpptrace diff before.wpp after.wpp       what changed most, of the same build
  wpptrace diff --share -L 8 a.wpp b.wpp   of runs that were not equally long`,
		Long: `All routines and paths are compared, and the subpaths that are hot in either of both:
those that hot finds with the same flags. Both snapshots must be of the same build of the program.
All threads count together. In snapshots that wpptrace compress has made, routines are the same if
their names and addresses are.

CHANGE  new: ran only in the second; gone: only in the first; hotter, colder: cost more or less;
        unseen: ran in one, where the other did not trace all of it, or what comes in between
COST    how much more it cost in the second; with --share, as a share of all that ran
RANGE   of recordings in windows: where the true difference lies, in 19 of 20 cases; with a ? where
        it may be by chance
COUNT   how often it ran in the first, THEN in the second

Of recordings in windows, what may differ by chance is not listed, but with --all. That is found
out from how much windows of the same recording differ from each other; what one run differs from
another that does the same is not known by that.`,
		Args: exactly(2, "two snapshots"),
		RunE: func(c *cobra.Command, args []string) error {
			if q.Top < 0 {
				return usagef("--top %d is below 0", q.Top)
			}
			if err := q.Hot.Validate(); err != nil {
				return usageError{err}
			}
			first, second, err := readBoth(c, args[0], args[1])
			if err != nil {
				return err
			}
			for _, s := range []*wpp.Snapshot{first, second} {
				q.Hot.FitTo(s, c.Flags().Changed("min-length"), c.Flags().Changed("max-length"))
			}
			if sampled := first.Figures.IsSampled() || second.Figures.IsSampled(); sampled &&
				!c.Flags().Changed("share") {
				q.Share = true
			}
			differences, err := query.Diff(first, second, q)
			for i, s := range []*wpp.Snapshot{first, second} {
				for _, caveat := range report.Caveats(s) {
					fmt.Fprintf(c.ErrOrStderr(), "wpptrace: %s: %s\n",
						names.Printable(args[i]), caveat)
				}
			}
			if err != nil {
				return err
			}
			for _, caveat := range report.DiffCaveats(differences) {
				fmt.Fprintf(c.ErrOrStderr(), "wpptrace: %s\n", caveat)
			}
			if asJSON {
				return report.WriteDiffJSON(c.OutOrStdout(), first, second, differences)
			}
			return report.WriteDiff(c.OutOrStdout(), first, second, differences)
		},
	}
	f := c.Flags()
	f.BoolVar(&q.Share, "share", false, "compare shares of all that ran, not costs; so it is "+
		"by default where one was traced in windows")
	f.IntVarP(&q.Hot.MinLength, "min-length", "l", q.Hot.MinLength, "least `PATHS` of a subpath")
	f.IntVarP(&q.Hot.MaxLength, "max-length", "L", q.Hot.MaxLength, "most `PATHS` of a subpath")
	f.FuncP("min-cost", "C", "least `COST` of a hot subpath, or share of all, as 5% (default 1%)",
		func(text string) error { return hotspots.SetLeast(&q.Hot, text) })
	f.StringVar((*string)(&q.Hot.Metric), "cost", "",
		"`WHAT` a path costs: instructions: its own (the default), or count: 1")
	f.IntVar(&q.Top, "top", q.Top, "print only the `N` that changed most; 0: all")
	f.BoolVar(&q.All, "all", false, "print what may differ by chance, too")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// readBoth reads two snapshots for a command, at once where they are so small that the memory for
// it does not matter.
func readBoth(c *cobra.Command, a, b string) (first, second *wpp.Snapshot, err error) {
	const small = 64 << 20
	var reading sync.WaitGroup
	var errSecond error
	reading.Go(func() { second, _, errSecond = readPart(b) })
	if st, err := os.Stat(b); err == nil && st.Size() > small {
		reading.Wait()
	}
	first, _, err = readPart(a)
	reading.Wait()
	if first != nil && second != nil && first.InSegments() && second.InSegments() {
		memory.KeepTo(twoLarge)
	}
	err = admitCutOff(c, first, err)
	errSecond = admitCutOff(c, second, errSecond)
	return first, second, cmp.Or(err, errSecond)
}
