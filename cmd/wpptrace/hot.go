package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"wpptrace/compress/wpp"
	"wpptrace/internal/listing"
	"wpptrace/internal/valuing"
	"wpptrace/query"
	"wpptrace/query/profile"
	"wpptrace/query/report"
)

const hotHelp = `A subpath is a sequence of acyclic paths that ran one after the other. It is hot if
COUNT times the cost of its paths is -C or more. Where it overlaps itself, that is more than its
SHARE. It is minimal if no shorter beginning of it is hot (Larus 1999). All minimal hot subpaths are
found. -l 1 -L 1 lists single paths, -l 3 -L 3 sequences of three. The counts of all threads are
added up; --tid asks for one thread. Where no instructions are known, as after wpptrace compress,
each path costs 1.

--maximal finds the longest instead, up to -L: those that one more path, before or behind, would
make rarer. --larus finds those that Larus's own algorithm (1999, figure 7) reports: a quick choice
of the minimal ones and of some that are longer, which misses most. Counts are exact in all three.

--cost FILE takes a table of costs: CSV with a header. The column "path" has ROUTINE#N, in full as
--json has it. Other columns have whole numbers; :COLUMN names the one to take. A column "before"
may name another path in some rows: the cost is then that of executions directly behind that path,
with no mark between. Such executions count apart: a line "after ROUTINE#N" says so.

SHARE    what ran within the subpath, as a share of all; where subpaths overlap, it counts in each
CUM.     what ran within it or one above it, counted once
COUNT    how often the subpath ran
LEN      how many paths it has
SUBPATH  a line for each path: ROUTINE#N, path N of the routine (wpptrace path prints more); where
         its code is, and in parentheses the routines that are inlined there; xN: N times in a row.
         ROUTINE@ADDRESS is one of several routines of that name.

--data finds sequences of addresses that were accessed, as subpaths are of paths: see wpptrace
values. Accesses to routines' own frames are left out.

--routines prints a line for each routine instead. SHARE is that of the CPU time, by samples, with
the INTERVAL that it is in 95 times of 100; where the snapshot has no samples, that of instructions.
What a routine calls is not in its share. CALLS is how often the routine was entered, PATHS how many
of its paths ran. HOTTEST PATH is the one that ran most instructions of it: its number, its share of
the routine's instructions, where its code is.

--callers ROUTINE prints who called it, and how often. The caller is the innermost traced routine
that had not returned: external code may lie between, as where qsort calls what it was given.
Behind a tail jump of another routine, the caller is who called that one, which is named, too.
"(none known)" is external code, as that which starts a thread, or what was called before the
recording began. Where code of the routine is inlined, its calls are not counted, which is said.

--lines FILE prints a source file with how often each line ran that has code. FILE is read where it
is named, or else where debug information says that it is. COUNT is how often the instruction of the
line ran that ran most often; where the line has code in several routines, or is inlined in several
places, these are added up. An optimizing compiler moves code, merges that of several lines, or
writes some twice: then it may not be how often the source would run the line. Lines without a
COUNT have no code, or only in routines that did not run or were not traced.

--disasm ROUTINE prints its instructions, with how often each ran. The snapshot has where they are;
what they are is read from the program or library: where it was recorded, or where --binary says, if
its build id agrees. Between instructions that do not follow each other is an empty line.

In a recording in windows, all that these count is what ran in the windows. IN ALL is the interval
that the count of the whole run is in, 95 times of 100 (with --routines, that of CALLS); "-": it is
not known, as of what ran in one window alone.`

func hotCommand() *cobra.Command {
	h := &hotAsked{query: query.DefaultHotQuery()}
	c := &cobra.Command{
		Use: "hot [--routines | --callers ROUTINE | --lines FILE | --disasm ROUTINE] [FLAG...] " +
			"SNAPSHOT",
		Short: "Print the hot subpaths of a snapshot: where the program's instructions go, in " +
			"sequence",
		Example: `  wpptrace hot bash-4711.wpp                 of 1 % of all instructions or more
  wpptrace hot --top 5 -C 5% bash-4711.wpp   the five hottest of those of 5 % or more
  wpptrace hot --cost count -l 3 -L 3 x.wpp  sequences of three paths, by how often they ran
  wpptrace hot --cost t.csv:misses x.wpp     by what has been measured elsewhere
  wpptrace hot --maximal -L 20 x.wpp         as long as they get, up to twenty paths
  wpptrace hot --routines --top 20 x.wpp     the twenty hottest routines
  wpptrace hot --callers xmalloc x.wpp       who calls xmalloc, and how often
  wpptrace hot --lines match.c x.wpp         a source file, with how often each line ran
  wpptrace hot --disasm longest_match x.wpp  instructions, with how often each ran`,
		Long: hotHelp,
		Args: exactly(1, "a snapshot"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := h.check(c); err != nil {
				return err
			}
			s, _, err := readSnapshot(c, args[0])
			if err != nil {
				return err
			}
			h.query.FitTo(s, c.Flags().Changed("min-length"), c.Flags().Changed("max-length"))
			return h.answer(c, s)
		},
	}
	h.flags(c)
	return c
}

// hotAsked is what hot is asked for.
type hotAsked struct {
	query          query.HotQuery
	cost           string
	larus, maximal bool
	routines, data bool
	callers        string
	lines          string
	disasm, binary string
	asJSON         bool
}

func (h *hotAsked) flags(c *cobra.Command) {
	f, q := c.Flags(), &h.query
	f.BoolVar(&h.routines, "routines", false, "print what ran by routine instead")
	f.StringVar(&h.callers, "callers", "", "print who called `ROUTINE` instead")
	f.StringVar(&h.lines, "lines", "", "print how often each line of `FILE` ran instead")
	f.StringVar(&h.disasm, "disasm", "", "print how often each instruction of `ROUTINE` ran instead")
	f.StringVar(&h.binary, "binary", "", "with --disasm: the program or library is `FILE`")
	f.IntVarP(&q.MinLength, "min-length", "l", q.MinLength, "least `PATHS` of a subpath")
	f.IntVarP(&q.MaxLength, "max-length", "L", q.MaxLength, "most `PATHS` of a subpath")
	f.FuncP("min-cost", "C", "least `COST` of a hot subpath, or share of all, as 5% (default 1%)",
		func(text string) error { return setCost(q, text) })
	f.StringVar(&h.cost, "cost", "", "`WHAT` a path costs: instructions: its own (the default), "+
		"count: 1, or a FILE[:COLUMN] of costs")
	f.BoolVar(&h.maximal, "maximal", false, "find the maximal hot subpaths")
	f.BoolVar(&h.larus, "larus", false, "find what Larus's figure 7 does")
	f.BoolVar(&h.data, "data", false, "of a recording of values: print hot sequences of addresses")
	f.IntVar(&q.Top, "top", 0, "print only the hottest `N`")
	f.IntSliceVar(&q.TIDs, "tid", nil, "only thread `TID` (repeatable)")
	f.BoolVar(&h.asJSON, "json", false, "print one JSON object")
}

// ofSubpaths are the flags of hot that only subpaths have.
var ofSubpaths = []string{"min-length", "max-length", "min-cost", "cost", "maximal", "larus"}

// instead are the flags that ask for something else than subpaths.
var instead = []string{"routines", "callers", "lines", "disasm"}

// check fails where flags do not go together, whatever the snapshot.
func (h *hotAsked) check(c *cobra.Command) error {
	asked := slices.DeleteFunc(slices.Clone(instead),
		func(name string) bool { return !c.Flags().Changed(name) })
	if len(asked) > 1 {
		return usagef("both --%s and --%s: give one of them", asked[0], asked[1])
	}
	for _, name := range ofSubpaths {
		if len(asked) > 0 && c.Flags().Changed(name) {
			return usagef("--%s is about subpaths, and does not go with --%s", name, asked[0])
		}
	}
	switch {
	case h.data && (len(asked) > 0 || h.cost != ""):
		return usagef("--data counts accesses, and goes with no --cost and no other question")
	case h.query.Top > 0 && (c.Flags().Changed("lines") || c.Flags().Changed("disasm")):
		return usagef("--top does not go with --%s, which prints all", asked[0])
	case h.binary != "" && !c.Flags().Changed("disasm"):
		return usagef("--binary goes with --disasm alone")
	case h.larus && h.maximal:
		return usagef("both --larus and --maximal: give one of them")
	case h.larus:
		h.query.Kind = query.Larus
	case h.maximal:
		h.query.Kind = query.Maximal
	}
	if err := setMetric(&h.query, h.cost); err != nil {
		return err
	}
	if err := h.query.Validate(); err != nil {
		return usageError{err}
	}
	return nil
}

// answer prints what is asked for.
func (h *hotAsked) answer(c *cobra.Command, s *wpp.Snapshot) error {
	switch {
	case c.Flags().Changed("callers"):
		return h.printCallers(c, s)
	case c.Flags().Changed("lines"):
		return listing.Lines(c.OutOrStdout(), s, h.listed(c, h.lines))
	case c.Flags().Changed("disasm"):
		return listing.Disasm(c.OutOrStdout(), s, h.listed(c, h.disasm))
	case h.routines:
		return h.printRoutines(c, s)
	case h.data:
		return valuing.HotData(c.OutOrStdout(), s, h.query, h.asJSON)
	}
	hot, err := query.Hot(s, h.query)
	switch {
	case err != nil:
		return err
	case h.asJSON:
		return report.WriteHotJSON(c.OutOrStdout(), s, hot)
	}
	return report.WriteHot(c.OutOrStdout(), s, hot)
}

// listed asks for a source file or a routine.
func (h *hotAsked) listed(c *cobra.Command, of string) *listing.Question {
	return &listing.Question{Of: of, Binary: h.binary, TIDs: h.query.TIDs, JSON: h.asJSON,
		Note: func(format string, args ...any) {
			fmt.Fprintf(c.ErrOrStderr(), "wpptrace: "+format+"\n", args...)
		}}
}

func (h *hotAsked) printRoutines(c *cobra.Command, s *wpp.Snapshot) error {
	flat, err := profile.Flat(s, h.query.TIDs...)
	switch {
	case err != nil:
		return err
	case h.asJSON:
		return report.WriteFlatJSON(c.OutOrStdout(), s, flat, h.query.Top)
	}
	return report.WriteFlat(c.OutOrStdout(), s, flat, h.query.Top)
}

func (h *hotAsked) printCallers(c *cobra.Command, s *wpp.Snapshot) error {
	callers, err := profile.CallersOf(s, h.callers, h.query.TIDs...)
	printCaveats(c, s, h.callers)
	switch {
	case err != nil:
		return err
	case h.asJSON:
		return report.WriteCallersJSON(c.OutOrStdout(), s, callers, h.query.Top)
	}
	return report.WriteCallers(c.OutOrStdout(), s, callers, h.query.Top)
}
