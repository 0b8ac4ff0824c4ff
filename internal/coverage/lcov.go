package coverage

import (
	"bufio"
	"cmp"
	"fmt"
	"io"

	"wpptrace/compress/wpp/covered"
	"wpptrace/query/names"
)

// WriteLCOV writes a coverage as a tracefile of lcov (geninfo(1)), which genhtml reads. Counts in
// it are 0 and 1: whether code has run, and not how often. What is not known is absent, as is an
// outcome of a jump that has run, where it is not known. Names may be hostile: a line stays one.
func WriteLCOV(w io.Writer, c *covered.Coverage) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, "TN:")
	for _, s := range c.Sources() {
		fmt.Fprintf(b, "SF:%s\n", names.Printable(s.Name))
		writeRoutines(b, s.Routines)
		writeBranches(b, s.Branches)
		hit := 0
		for _, l := range s.Lines {
			fmt.Fprintf(b, "DA:%d,%d\n", l.Line, count(l.Ran, &hit))
		}
		fmt.Fprintf(b, "LF:%d\nLH:%d\nend_of_record\n", len(s.Lines), hit)
	}
	return b.Flush()
}

// count is 1 for what has run, and adds that up.
func count(ran bool, hit *int) int {
	if !ran {
		return 0
	}
	*hit++
	return 1
}

// writeRoutines writes routines, each symbol of a file once: lcov takes it for one.
func writeRoutines(w io.Writer, routines []covered.SourceRoutine) {
	var met []string
	ran := map[string]bool{}
	for _, r := range routines {
		name := names.Printable(cmp.Or(r.Symbol, r.Name))
		if _, known := ran[name]; !known {
			met = append(met, name)
			fmt.Fprintf(w, "FN:%d,%s\n", r.Line, name)
		}
		ran[name] = ran[name] || r.Ran
	}
	hit := 0
	for _, name := range met {
		fmt.Fprintf(w, "FNDA:%d,%s\n", count(ran[name], &hit), name)
	}
	fmt.Fprintf(w, "FNF:%d\nFNH:%d\n", len(met), hit)
}

// writeBranches writes the outcomes of jumps: a block for each jump of a line, a branch for each
// outcome.
func writeBranches(w io.Writer, lines []covered.SourceBranches) {
	found, hit := 0, 0
	for _, l := range lines {
		for block, j := range l.Jumps {
			for branch, state := range j.Outcomes {
				if j.Ran && state == covered.Unknown {
					continue
				}
				found++
				taken := "-" // it has not run
				if j.Ran {
					taken = fmt.Sprint(count(state == covered.Run, &hit))
				}
				fmt.Fprintf(w, "BRDA:%d,%d,%d,%s\n", l.Line, block, branch, taken)
			}
		}
	}
	fmt.Fprintf(w, "BRF:%d\nBRH:%d\n", found, hit)
}
