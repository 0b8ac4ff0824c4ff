package report

import (
	"bufio"
	"fmt"
	"io"

	"wpptrace/compress/wpp"
	"wpptrace/query"
)

// WriteFigure8 writes the size of each thread's grammar against the length of its trace, as figure
// 8 of Larus 1999 has that of WPPs for growing inputs: comma-separated values,
// tid,position,rules,rhs_symbols, a hundred lines a thread. See query.GrowthPoint. Time is linear
// in the grammars.
func WriteFigure8(w io.Writer, s *wpp.Snapshot) error {
	threads, err := query.Threads(s, nil)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, "tid,position,rules,rhs_symbols")
	for _, t := range threads {
		points, err := query.Growth(t.Grammar, 100)
		if err != nil {
			return err
		}
		for _, p := range points {
			fmt.Fprintf(out, "%d,%d,%d,%d\n", t.TID, p.Position, p.Rules, p.Symbols)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write figure 8: %w", err)
	}
	return nil
}

// WriteFigure9 writes what query.HotByLength finds as comma-separated values,
// min_cost,max_length,subpaths. (The legend of figure 9 of Larus 1999 has "<=" for ">=".)
func WriteFigure9(w io.Writer, s *wpp.Snapshot) error {
	counts, err := query.HotByLength(s)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, "min_cost,max_length,subpaths")
	for _, c := range counts {
		fmt.Fprintf(out, "%d,%d,%d\n", c.MinCost, c.MaxLength, c.Subpaths)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write figure 9: %w", err)
	}
	return nil
}
