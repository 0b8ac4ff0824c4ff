package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/covered"
	"wpptrace/compress/wpp/format"
	"wpptrace/compress/wpp/store"
	"wpptrace/internal/memory"
	"wpptrace/internal/valuing"
	"wpptrace/query"
	"wpptrace/query/report"
)

// The commands that read a snapshot. They need no privileges.

// statHelp says what each figure is.
const statHelp = `--routines prints IMAGE START END STATE NAME for each contiguous range of each
routine, separated by tabs; addresses are link-time, in hex, END exclusive; STATE is observed (that
is: traced) or left-out:REASON.

--csv prints the data of a figure of Larus (1999). figure8 is how the grammar grows with the trace,
as tid,position,rules,rhs_symbols: the rules and symbols that the paths and marks before the
position take. figure9 is how many minimal hot subpaths of ten paths and more there are, as
min_cost,max_length,subpaths.

The figures, with --json too; what is not known is -, with --json null:
  schema_version         of these figures; within a version, members are only added
  command, pid           what was traced
  started, kernel        when and on which kernel
  ended                  on what occasion: exited; interrupted; duration (-d); exec; slow-down
                         (--max-slowdown); guard (wpptrace's own, which was killed); failure;
                         -: it went on
  exit_status            of the process, or
  killed_by_signal       the number of the signal that ended it; -: not known
  wpptrace_version       by which wpptrace
  paths                  acyclic paths that ran, each as often as it did
  distinct_paths         different ones among them
  instructions           that ran in them
  threads                that were recorded
  rules, rhs_symbols     of the grammars: their rules, and the symbols on their right-hand sides
  rules_per_path         rules / distinct_paths
  trace_bytes            what the trace would take without compression
  grammar_ascii_bytes    what the grammars take as text
  grammar_bytes          size of the snapshot, the tables of the program included
  ratio_ascii, ratio     trace_bytes / grammar_ascii_bytes, trace_bytes / grammar_bytes
  trace_bytes_per_second, grammar_ascii_bytes_per_second
                         of the recording
  bits_per_instruction   of the snapshot
  duration_seconds       of the recording
  cpu_seconds            CPU time that the process used meanwhile, tracing included
  hits                   how often a probe was hit, hits_single_stepped slow ones of them
  hits_per_path          hits / paths
  ns_per_hit             what a hit took on average that was not single-stepped, as measured
  ns_per_hit_over_probe  what recording a hit took, on average, over a bare probe
  words                  events that the kernel sent, of 8 bytes each
  slow_down              CPU time while traced / CPU time without, as measured; 100: that or more
  slow_down_vague        then slow_down is the least that it may be, and slow_down_most the most;
                         slow_down_likely is the best estimate: by the time that hits leave or,
                         where that is next to nothing, by recorded instructions of 0.2 ns each
  probes                 that were put in, probes_single_stepped slow ones of them
  routines_total         of the program, routines_observed those that were traced,
                         routines_met those of them that ran
  lost, gaps             events that were lost, and in how many places
  windows                in which it was traced; 0: all the time
  sampled, sampled_least, sampled_most
                         the share of its own CPU time that was traced, 1: all; the interval that
                         it is in, 95 times of 100. unknown: all that is known is sampled_most
  longest_stall_seconds  that a window, with its probes going in and out, held the process up, at
                         most
  anomalies              events that did not fit the program: paths near #cut and #unwind may be
                         wrong`

func statCommand() *cobra.Command {
	var asJSON, routines bool
	var csv string
	c := &cobra.Command{
		Use:   "stat [--json | --routines | --csv FIGURE] SNAPSHOT",
		Short: "Print the figures of a snapshot: its size, its cost, and what was lost",
		Example: `  wpptrace stat bash-4711.wpp              one figure a line
  wpptrace stat --routines bash-4711.wpp   what was traced, and what was not and why`,
		Long: statHelp,
		Args: exactly(1, "a snapshot"),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case asJSON && routines:
				return usagef("both --json and --routines: give one of them")
			case csv != "" && (asJSON || routines):
				return usagef("--csv goes neither with --json nor with --routines")
			case csv != "" && csv != "figure8" && csv != "figure9":
				return usagef("no figure %q: use one of figure8, figure9", csv)
			}
			s, size, err := readSnapshot(c, args[0])
			switch {
			case err != nil:
				return err
			case csv == "figure8":
				return report.WriteFigure8(c.OutOrStdout(), s)
			case csv == "figure9":
				return report.WriteFigure9(c.OutOrStdout(), s)
			case routines:
				printBare(c, args[0], s)
				return report.WriteRoutines(c.OutOrStdout(), s)
			}
			stat, err := query.NewStat(s, size)
			switch {
			case err != nil:
				return err
			case asJSON:
				return report.WriteStatJSON(c.OutOrStdout(), stat)
			}
			return report.WriteStat(c.OutOrStdout(), stat)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	c.Flags().BoolVar(&routines, "routines", false, "list the routines instead")
	c.Flags().StringVar(&csv, "csv", "", "print the data of `FIGURE`: figure8, figure9")
	return c
}

func pathCommand() *cobra.Command {
	return &cobra.Command{
		Use: "path ROUTINE#N SNAPSHOT",
		Short: "Print what a path in the table of hot subpaths is: its blocks and their source " +
			"lines",
		Example: `  wpptrace path 'xmalloc#0' bash-4711.wpp            the name as hot prints it
  wpptrace path 'std::vec...push_back#2' x.wpp       shortened too`,
		Long: `Each basic block has a line, in the order in which they ran: the link-time addresses
of its first and last instruction, in hex; how many instructions it has; the source lines of these
two, where they are known. Where a block has code that is inlined from other routines, each part of
the block has a line. Further lines say which routine that part is of, where it was called, and in
which routine.`,
		Args: exactly(2, "a path with a snapshot"),
		RunE: func(c *cobra.Command, args []string) error {
			s, _, err := readSnapshot(c, args[1])
			if err != nil {
				return err
			}
			printBare(c, args[1], s)
			return report.WritePath(c.OutOrStdout(), s, args[0])
		},
	}
}

func dumpCommand() *cobra.Command {
	form := string(report.Paths)
	part := report.Whole()
	var tids []int
	all := false
	c := &cobra.Command{
		Use:   "dump [--as FORM] [--tid TID] [--from N] [--to N] [--reverse] SNAPSHOT",
		Short: "Print a snapshot in full: every path, block or instruction that ran, in order",
		Example: `  wpptrace dump x.wpp              TID ROUTINE PATH START-KIND END-KIND ADDRESS
  wpptrace dump --as insns x.wpp   TID IMAGE ADDRESS, a line for each instruction
  wpptrace dump --as dot x.wpp | dot -Tsvg    the grammar as a graph
  wpptrace dump --from 900 --to 910 x.wpp     ten paths, at once, wherever they are`,
		Long: `Threads come one after the other, each in execution order. Addresses are link-time,
in hex. Lines that begin with # are marks:
#gap N     N events were lost here; 0: it is not known how many, as where a window ends
#resume    an activation goes on whose beginning was not recorded, or a coroutine: what led there
           may be missing
#unwind N  N activations were left without a return
#cut       the path before was cut off
#handler   a signal came

External code is in no line: shared libraries, routines that were left out (stat --routines),
linkage stubs, start-up code such as _init and _fini. --as symbols is binary: the little-endian
32-bit numbers that wpptrace compress --symbols has read.

--from and --to select by position: each thread's paths and marks are counted from 0, and find
prints positions. --reverse prints the last first. What is not selected takes no time.`,
		Args: exactly(1, "a snapshot"),
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains(report.Forms(), report.Form(form)) {
				return usagef("no form %q to dump as: use one of %s", form, formNames(", "))
			}
			if f, ok := c.OutOrStdout().(*os.File); ok && form == string(report.Symbols) &&
				term.IsTerminal(int(f.Fd())) {
				return usagef("--as %s is binary, and not written to a terminal: use > FILE, or "+
					"a pipe", form)
			}
			if part.From > part.To {
				return usagef("--from %d is behind --to %d: no position is between them", part.From,
					part.To)
			}
			selects := part != report.Whole()
			if all && form != string(report.Values) {
				return usagef("--all goes with --as values")
			} else if all {
				form = string(report.AllValues)
			}
			if selects && !report.Form(form).HasParts() {
				return usagef("--from, --to and --reverse do not go with --as %s", form)
			}
			s, _, err := readSnapshot(c, args[0])
			if err != nil {
				return err
			}
			if form == string(report.Insns) || form == string(report.Blocks) {
				printBare(c, args[0], s)
			}
			if err := report.Dump(c.OutOrStdout(), s, report.Form(form), part,
				tids...); err != nil {
				return valuing.InFile(args[0], err)
			}
			printBehind(c, s, tids, part.From)
			return nil
		},
	}
	c.Flags().StringVar(&form, "as", form, "`FORM`: "+formNames(", "))
	c.Flags().BoolVar(&all, "all", false, "with --as values: also flags that were used, and vectors")
	c.Flags().IntSliceVar(&tids, "tid", nil, "only thread `TID` (repeatable)")
	c.Flags().Uint64Var(&part.From, "from", 0, "only from position `N` on")
	c.Flags().Uint64Var(&part.To, "to", math.MaxUint64, "only before position `N`")
	c.Flags().Lookup("to").DefValue = "0" // what help leaves out
	c.Flags().BoolVar(&part.Backward, "reverse", false, "the last first")
	return c
}

// printBehind names the threads of which a dump has nothing, because it begins behind their ends.
func printBehind(c *cobra.Command, s *wpp.Snapshot, tids []int, from uint64) {
	for i := range s.Threads {
		t := &s.Threads[i]
		if n := t.Grammar.Length(0); n <= from && from > 0 &&
			(len(tids) == 0 || slices.Contains(tids, t.TID)) {
			fmt.Fprintf(c.ErrOrStderr(), "wpptrace: --from %d is behind the last position of "+
				"thread %d: it has %d\n", from, t.TID, n)
		}
	}
}

func formNames(separator string) string {
	var names []string
	for _, f := range report.Forms() {
		names = append(names, string(f))
	}
	return strings.Join(names, separator)
}

// printBare prints why a snapshot without program tables does not say what its paths are.
func printBare(c *cobra.Command, path string, s *wpp.Snapshot) {
	if !slices.ContainsFunc(s.Routines, func(r wpp.Routine) bool { return len(r.Ranges) > 0 }) {
		fmt.Fprintf(c.ErrOrStderr(), "wpptrace: %s has no program tables: the raw trace that it "+
			"was made of does not say what its paths consist of, nor where routines are\n", path)
	}
}

// largeMemory is what the collector keeps to with a snapshot that is read segment by segment, and
// twoLarge with two: where segments are large, so is what it leaves for later.
const (
	largeMemory = 300 << 20
	twoLarge    = 390 << 20
)

// smallFile is the size of a snapshot that takes so little memory that the collector may leave four
// times as much to be collected.
const smallFile = 1 << 20

// readSnapshot reads a snapshot for a command, with the size of its file. Of one that is cut off
// the command shows what is whole.
func readSnapshot(c *cobra.Command, path string) (*wpp.Snapshot, uint64, error) {
	return readBy(store.ReadFile, c, path)
}

// reader is store.ReadFile, or store.ReadParts.
type reader func(path string, known ...wpp.SectionKind) (*wpp.Snapshot, error)

func readBy(read reader, c *cobra.Command, path string) (*wpp.Snapshot, uint64, error) {
	s, size, err := readPartBy(read, path)
	if s != nil && len(s.Skipped) > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "wpptrace: %s: %s\n", path, skippedNote(s.Skipped))
	}
	return s, size, admitCutOff(c, s, err)
}

// skippedNote names the kinds of the sections of a snapshot that this wpptrace does not know.
func skippedNote(kinds []wpp.SectionKind) string {
	return fmt.Sprintf("sections of kind %s are skipped: a newer wpptrace reads them",
		numbersOf(kinds))
}

func numbersOf(kinds []wpp.SectionKind) string {
	var numbers []string
	for _, k := range kinds {
		numbers = append(numbers, fmt.Sprint(k.Number()))
	}
	return strings.Join(numbers, ", ")
}

// admitCutOff has a command go on with what has been read of a snapshot that is cut off. It warns
// of that, and sees to it that the command fails in the end.
func admitCutOff(c *cobra.Command, s *wpp.Snapshot, err error) error {
	if s == nil || !errors.Is(err, format.ErrTruncated) {
		return err
	}
	fmt.Fprintf(c.ErrOrStderr(), "wpptrace: %v\n", err)
	c.PostRunE = func(*cobra.Command, []string) error { return exitStatus(exitError) }
	return nil
}

// readPart reads a snapshot, and of one that is cut off what is whole, with an error that is
// format.ErrTruncated.
func readPart(path string) (*wpp.Snapshot, uint64, error) {
	return readPartBy(store.ReadFile, path)
}

func readPartBy(read reader, path string) (*wpp.Snapshot, uint64, error) {
	st, statErr := os.Stat(path)
	if statErr == nil && st.Size() <= smallFile {
		debug.SetGCPercent(400)
	}
	s, err := read(path, append(query.Sections(), covered.Kind)...)
	if s == nil {
		return nil, 0, err
	}
	if err := covered.CheckPaths(path, s); err != nil {
		return nil, 0, err
	}
	if statErr != nil {
		return nil, 0, fmt.Errorf("look at snapshot: %w", statErr)
	}
	if s.InSegments() {
		memory.KeepTo(largeMemory)
	}
	return s, uint64(st.Size()), err
}
