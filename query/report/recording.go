package report

import (
	"bufio"
	"fmt"
	"io"

	"wpptrace/compress/wpp"
	"wpptrace/query"
	"wpptrace/query/profile"
)

// WriteRecording writes what a recording ends with: where the CPU time went, up to top routines,
// hot subpaths, and lines that say what to ask next. The snapshot is that of both reports, which
// are as WriteFlat and WriteHot write them.
func WriteRecording(w io.Writer, s *wpp.Snapshot, flat *profile.FlatReport, top int,
	hot *query.HotReport, next []string) error {
	out := bufio.NewWriter(w)
	writeTime(out, s)
	WriteTitle(out, s, flat.Threads)
	writeWindows(out, s, "calls and paths")
	writeFlatTable(out, s, flat, top)
	out.WriteByte('\n')
	writeHotTotals(out, s, hot)
	if len(hot.Subpaths) > 0 {
		newHotTable(s, hot).write(out)
	}
	if len(next) > 0 {
		out.WriteByte('\n')
	}
	for _, line := range next {
		fmt.Fprintf(out, "Next: %s\n", line)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write what was recorded: %w", err)
	}
	return nil
}
