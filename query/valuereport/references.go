package valuereport

import (
	"bufio"
	"fmt"
	"io"

	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
	"wpptrace/query"
	"wpptrace/query/names"
	"wpptrace/query/report"
	"wpptrace/query/values"
)

// WriteHotData writes the hot sequences of addresses: hot is a report on r.Trace, and s what that
// is of. Columns are as those of WriteHot; a line is an address and how many bytes were accessed
// there at most, how often all in all, and who did first. The same address several times in a row
// is one line.
func WriteHotData(w io.Writer, s *wpp.Snapshot, r *values.References, hot *query.HotReport) error {
	out := bufio.NewWriter(w)
	report.WriteTitle(out, s, hot.Threads)
	fmt.Fprintf(out, "Total: %s, to %s\n", text.Count(hot.Paths, "access"),
		text.Count(len(r.List), "address"))
	fmt.Fprintf(out, "Left out: %s of the stack, %s of which it is not known where\n",
		text.Count(r.Stack, "access"), text.Count(r.Unknown, "access"))
	var covered uint64
	if n := len(hot.Subpaths); n > 0 {
		covered = hot.Subpaths[n-1].Cumulative
	}
	fmt.Fprintf(out, "Showing %d of %s, which cover %.2f%%\n", len(hot.Subpaths),
		text.Count(hot.Found, string(hot.Query.Kind)+" hot sequence"), 100*query.Share(covered, hot.Total))
	fmt.Fprintf(out, "Hot: %d to %s long, %s in all or more\n", hot.Query.MinLength,
		text.Count(hot.Query.MaxLength, "access"), text.Count(hot.MinCost, "access"))
	if len(hot.Subpaths) > 0 {
		fmt.Fprintf(out, "\n  SHARE     CUM.       COUNT    LEN  ADDRESS, READS+WRITES, FIRST BY\n")
	}
	n := names.Of(s)
	for i := range hot.Subpaths {
		writeSequence(out, s, n, r, hot, &hot.Subpaths[i])
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write hot sequences of addresses: %w", err)
	}
	return nil
}

func writeSequence(out *bufio.Writer, s *wpp.Snapshot, n *names.Names, r *values.References,
	hot *query.HotReport, p *query.Subpath) {
	numbers := fmt.Sprintf("%6.2f%%  %6.2f%%  %10d  %5d  ", 100*query.Share(p.Covered, hot.Total),
		100*query.Share(p.Cumulative, hot.Total), p.Count, len(p.Symbols))
	lines := 0
	for i := 0; i < len(p.Symbols); {
		times := 1
		for i+times < len(p.Symbols) && p.Symbols[i+times] == p.Symbols[i] {
			times++
		}
		if lines++; lines == report.TallestRow {
			fmt.Fprintf(out, "%*s%s %s more\n", len(numbers), "", names.Ellipsis,
				text.Count(len(p.Symbols)-i, "access"))
			return
		}
		of := &r.List[p.Symbols[i]]
		line := fmt.Sprintf("%x:%d  %d+%d  %s", of.Addr, of.Size, of.Reads, of.Writes,
			report.Where(s, n, of.By, spanAt(s, of.By)))
		if times > 1 {
			line += fmt.Sprintf(" x%d", times)
		}
		fmt.Fprintf(out, "%s%s\n", numbers, line)
		numbers = fmt.Sprintf("%*s", len(numbers), "")
		i += times
	}
}

// spanAt is where an instruction is in the source.
func spanAt(s *wpp.Snapshot, at values.Instruction) wpp.Span {
	for i := range s.Routines[at.Routine].Blocks {
		b := &s.Routines[at.Routine].Blocks[i]
		addr := b.Addr
		for n, length := range b.Lengths {
			if addr == at.Addr {
				return values.SpanOf(b, n)
			}
			addr += uint64(length)
		}
	}
	return wpp.Span{}
}

// HotDataJSON is what hot --data --json prints. Shares are fractions of 1.
type HotDataJSON struct {
	SchemaVersion int           `json:"schema_version"`
	Kind          query.HotKind `json:"kind"`       // minimal, maximal or larus
	Threads       int           `json:"threads"`    // that were looked at
	Accesses      uint64        `json:"accesses"`   // that sequences are of
	Addresses     int           `json:"addresses"`  // where these began
	Stack         uint64        `json:"stack"`      // accesses to routines' frames: left out
	Unknown       uint64        `json:"unknown"`    // accesses of which it is not known where
	MinLength     int           `json:"min_length"` // of a sequence, in accesses
	MaxLength     int           `json:"max_length"` // of a sequence, in accesses
	MinCost       uint64        `json:"min_cost"`   // accesses that a hot sequence makes at least
	Found         int           `json:"found"`      // hot sequences, before --top cuts them down
	// the hottest first
	Sequences []DataSequenceJSON `json:"sequences"`
}

// DataSequenceJSON is a sequence of accesses that was made often.
type DataSequenceJSON struct {
	Share float64 `json:"share"` // of covered in all accesses
	// share of what this sequence or one before it covers
	Cumulative float64 `json:"cumulative"`
	Count      uint64  `json:"count"`   // times; those that overlap count each
	Covered    uint64  `json:"covered"` // accesses within it, each counted once
	// what it accesses, in order
	References []ReferenceJSON `json:"references"`
}

// ReferenceJSON is an address that was accessed.
type ReferenceJSON struct {
	Address string `json:"address"`        // in the process, in hex
	Size    int    `json:"size"`           // bytes of the largest access that began there
	Reads   uint64 `json:"reads"`          // that began there, all in all
	Writes  uint64 `json:"writes"`         // that began there, all in all
	Routine string `json:"routine"`        // of the first access
	Offset  uint64 `json:"offset"`         // of its instruction from the routine's entry, bytes
	File    string `json:"file,omitempty"` // its source file; absent: not known
	Line    int    `json:"line,omitempty"` // its source line; absent: not known
}

// WriteHotDataJSON writes what WriteHotData does, and whole sequences, as one JSON object.
func WriteHotDataJSON(w io.Writer, s *wpp.Snapshot, r *values.References,
	hot *query.HotReport) error {
	object := &HotDataJSON{report.SchemaVersion, hot.Query.Kind, hot.Threads, hot.Paths,
		len(r.List), r.Stack, r.Unknown, hot.Query.MinLength, hot.Query.MaxLength, hot.MinCost,
		hot.Found, []DataSequenceJSON{}}
	n := names.Of(s)
	for _, p := range hot.Subpaths {
		row := DataSequenceJSON{query.Share(p.Covered, hot.Total),
			query.Share(p.Cumulative, hot.Total), p.Count, p.Covered, nil}
		for _, symbol := range p.Symbols {
			of := &r.List[symbol]
			at := ReferenceJSON{Address: hex(of.Addr), Size: of.Size, Reads: of.Reads,
				Writes: of.Writes, Routine: n.Routine(of.By.Routine),
				Offset: of.By.Addr - s.Routines[of.By.Routine].Entry}
			if x := spanAt(s, of.By); x.Line > 0 {
				at.File, at.Line = s.Files[x.File], x.Line
			}
			row.References = append(row.References, at)
		}
		object.Sequences = append(object.Sequences, row)
	}
	return report.WriteJSON(w, object, "hot sequences of addresses")
}
