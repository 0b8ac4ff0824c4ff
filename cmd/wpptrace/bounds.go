package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"wpptrace/internal/shape"
	"wpptrace/loader/paths/overlap"
	"wpptrace/query/report"
)

func boundsCommand() *cobra.Command {
	q := &shape.Question{Limit: report.BoundsLimit{Places: 10, Paths: 5}}
	var asJSON, asCSV, summary bool
	var against string
	c := &cobra.Command{
		Use:   "bounds [FLAG...] SNAPSHOT...",
		Short: "Print how often paths ran one behind the other, by counts of shorter paths",
		Example: `  wpptrace bounds x.wpp               over back edges, calls and returns
  wpptrace bounds --overlap 1 x.wpp   by overlapping paths of degree 1
  wpptrace bounds --csv x.wpp         every pair, with its bounds and the truth
  wpptrace bounds --summary a.wpp b.wpp   a line for each`,
		Long: `A path that ends at a back edge, a call or a return goes on in another one. How often
each did in each is bounded by counts of overlapping paths (Tallam, Zhang and Gupta 2004): of degree
K, they are a path and what runs directly behind it, up to the predicate number K + 1. A predicate
is a block with two or more successors. Counts of paths alone are the degree -1.

LOWER and UPPER are the bounds, TRUTH is how often it was, as the recording shows. Flows are sums:
DEFINITE of lower bounds, POTENTIAL of upper ones. Pairs are all of the paths that ran, EXACT are
those whose bounds are equal. Blocks have the numbers that plan --routine prints.

The program's file is read where it was recorded: --binary FILE names a copy of it, or of a library
that was traced as well.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usagef("no snapshot: name one or more")
			case !c.Flags().Changed("overlap"):
				q.Degree = shape.Usual
			case q.Degree < -1:
				return usagef("--overlap %d is below -1", q.Degree)
			case q.Degree > overlap.MostDegree:
				return usagef("--overlap %d is above %d", q.Degree, overlap.MostDegree)
			}
			switch {
			case q.Limit.Places < 0:
				return usagef("--top %d is below 0", q.Limit.Places)
			case q.Limit.Paths < 0:
				return usagef("--paths %d is below 0", q.Limit.Paths)
			case asJSON && asCSV:
				return usagef("--json and --csv are two forms: give one of them")
			case summary && (asJSON || asCSV):
				return usagef("--summary is a table: give neither --json nor --csv")
			}
			if len(args) > 1 && (!summary || against != "") {
				return usagef("several snapshots: give --summary, and no --against")
			}
			all := asJSON || asCSV
			if all && !c.Flags().Changed("top") {
				q.Limit.Places = 0
			}
			if all && !c.Flags().Changed("paths") {
				q.Limit.Paths = 0
			}
			if against != "" {
				s, _, err := readSnapshot(c, against)
				if err != nil {
					return err
				}
				q.Against = s
			}
			var list []*report.BoundsJSON
			for _, path := range args {
				s, _, err := readSnapshot(c, path)
				if err != nil {
					return err
				}
				r, err := shape.Bounds(s, q)
				if err != nil {
					return fmt.Errorf("bounds of %s: %w", path, err)
				}
				list = append(list, r)
			}
			switch {
			case asJSON:
				return list[0].WriteJSON(c.OutOrStdout())
			case asCSV:
				return list[0].WriteCSV(c.OutOrStdout())
			case summary:
				return report.WriteBoundsSummary(c.OutOrStdout(), list)
			}
			return list[0].WriteText(c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.IntVar(&q.Degree, "overlap", 0, "degree `K` of the overlapping paths; without it, that of a "+
		"path profile; of a recording, a third of the greatest useful one")
	f.StringVar(&against, "against", "", "recording `SNAPSHOT` that has the truth")
	f.StringSliceVar(&q.Files, "binary", nil, "copy `FILE` of what was recorded (repeatable)")
	f.IntVar(&q.Limit.Places, "top", q.Limit.Places, "print only `N` places; 0: all")
	f.IntVar(&q.Limit.Paths, "paths", q.Limit.Paths, "print only `N` pairs of each; 0: all")
	f.BoolVar(&summary, "summary", false, "print a line for each snapshot")
	f.BoolVar(&asJSON, "json", false, "print one JSON object, with all places and pairs")
	f.BoolVar(&asCSV, "csv", false, "print all pairs as CSV")
	return c
}
