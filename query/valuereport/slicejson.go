package valuereport

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"wpptrace/compress/wpp"
	"wpptrace/query/executed"
	"wpptrace/query/names"
	"wpptrace/query/report"
	"wpptrace/query/slice"
)

// SliceJSON is what slice --json prints.
type SliceJSON struct {
	SchemaVersion int    `json:"schema_version"`
	At            string `json:"at"`         // as it was asked for
	Instance      uint64 `json:"instance"`   // the execution that was taken, from 1
	Executions    uint64 `json:"executions"` // of these, in the threads that were asked for
	Thread        int    `json:"thread"`     // id
	Forward       bool   `json:"forward"`    // what depends on it; else what it depends on
	Executed      int    `json:"executed"`   // instructions that were looked at
	In            int    `json:"in"`         // of these, in the slice
	// positions in the thread's stream of paths and marks before, and from, which nothing was
	// looked at; absent: all was
	From *uint64 `json:"from,omitempty"`
	To   *uint64 `json:"to,omitempty"` // the end of what was looked at; absent: the thread's
	// stores of which it is not known where: what was written there is missing
	Unsure int `json:"unsure"`
	// instructions that are not emulated: what they used is missing
	Opaque int `json:"opaque"`
	// reads of what code that is not traced wrote, or another thread: the slice ends there
	Others int `json:"others"`
	// reads of which the value is not known: others may have written there since the thread did
	Doubtful int `json:"doubtful"`
	// the nearest first; with --instructions, those that ran nearest
	Parts []SlicePartJSON `json:"parts"`
}

// A SlicePartJSON is a source line of a slice, or with --instructions an instruction.
type SlicePartJSON struct {
	Away    int    `json:"away"`    // dependences between source lines that lead to it, at least
	Times   int    `json:"times"`   // that its instructions are in the slice
	Routine string `json:"routine"` // that it is in, also if it is inlined there
	// of an instruction, from the routine's entry, bytes; absent: it is a line
	Offset *uint64 `json:"offset,omitempty"`
	File   string  `json:"file,omitempty"` // its source file; absent: not known
	Line   int     `json:"line,omitempty"` // its source line; absent: not known
	// what its instructions wrote to registers, each in the execution that is nearest
	Written  []RegisterJSON `json:"written"`
	Accesses []AccessJSON   `json:"accesses"` // and what they read from memory and wrote there
	// reads of it of what others wrote; absent: there are none
	Foreign []ForeignJSON `json:"foreign,omitempty"`
}

// A ForeignJSON is a read of what code that is not traced wrote, or another thread.
type ForeignJSON struct {
	Accesses []AccessJSON `json:"accesses"` // of the instruction that read
	// where the thread itself wrote there last before; absent: that is not known
	Since *WriterJSON `json:"since,omitempty"`
	// the last store of what was read in each of the other threads: likely, as in which order
	// threads ran is not known
	Likely []WriterJSON `json:"likely"`
}

// A WriterJSON is an instruction that stored.
type WriterJSON struct {
	Thread  int    `json:"thread"`         // id
	Routine string `json:"routine"`        // of the instruction
	Offset  uint64 `json:"offset"`         // of it from the routine's entry, bytes
	File    string `json:"file,omitempty"` // its source file; absent: not known
	Line    int    `json:"line,omitempty"` // its source line; absent: not known
}

// partsJSON are the parts of a slice, by instruction or by source line.
func partsJSON(s *wpp.Snapshot, a *slice.Answer, instructions bool) []SlicePartJSON {
	list := []SlicePartJSON{}
	n := names.Of(s)
	if instructions {
		for i := range a.Parts {
			p := &a.Parts[i]
			x := SlicePartJSON{Away: p.Away, Times: p.Times, Routine: n.Routine(p.Routine),
				Offset: new(p.Addr - s.Routines[p.Routine].Entry)}
			x.File, x.Line = sourceAt(s, p.Place)
			x.add(s, n, a, p)
			list = append(list, x)
		}
		return list
	}
	for _, l := range a.Lines(s) {
		x := SlicePartJSON{Away: l.Away, Times: l.Times, Routine: n.Routine(l.Routine)}
		if l.Span.Line > 0 {
			x.File, x.Line = s.Files[l.Span.File], l.Span.Line
		}
		for _, i := range l.Parts {
			x.add(s, n, a, &a.Parts[i])
		}
		list = append(list, x)
	}
	return list
}

// add adds what an instruction computed.
func (x *SlicePartJSON) add(s *wpp.Snapshot, n *names.Names, a *slice.Answer, p *slice.Part) {
	if x.Written == nil {
		x.Written, x.Accesses = []RegisterJSON{}, []AccessJSON{}
	}
	if p.Last != nil {
		written, accesses := computedJSON(p.Last)
		x.Written, x.Accesses = append(x.Written, written...), append(x.Accesses, accesses...)
	}
	if f := p.Foreign; f != nil && f.Read != nil {
		foreign := ForeignJSON{Likely: []WriterJSON{}}
		_, foreign.Accesses = computedJSON(f.Read)
		if f.Since != nil {
			foreign.Since = new(writerJSON(s, n, a.TID, *f.Since))
		}
		for _, w := range f.Likely {
			foreign.Likely = append(foreign.Likely, writerJSON(s, n, w.TID, w.Place))
		}
		x.Foreign = append(x.Foreign, foreign)
	}
}

func writerJSON(s *wpp.Snapshot, n *names.Names, tid int, p slice.Place) WriterJSON {
	w := WriterJSON{Thread: tid, Routine: n.Routine(p.Routine),
		Offset: p.Addr - s.Routines[p.Routine].Entry}
	w.File, w.Line = sourceAt(s, p)
	return w
}

// WriteSliceJSON writes a slice as a SliceJSON, on a line.
func WriteSliceJSON(w io.Writer, s *wpp.Snapshot, a *slice.Answer, instructions bool) error {
	return report.WriteJSON(w, &SliceJSON{SchemaVersion: report.SchemaVersion, At: a.Query.At,
		Instance: a.Instance, Executions: a.Executions, Thread: a.TID, Forward: a.Query.Forward,
		Executed: a.Executed, In: a.In, From: a.From, To: a.To, Unsure: a.Unsure,
		Opaque: a.Opaque, Others: a.Others, Doubtful: a.Doubtful,
		Parts: partsJSON(s, a, instructions)}, "slice")
}

// WriteSliceCSV writes a row for each source line of a slice, or each instruction, under a heading.
// Values are as a dump has them.
func WriteSliceCSV(w io.Writer, s *wpp.Snapshot, a *slice.Answer, instructions bool) error {
	rows := [][]string{{"away", "times", "routine", "offset", "file", "line", "values", "others"}}
	lines := a.Lines(s)
	if instructions {
		lines = nil
		for i := range a.Parts {
			lines = append(lines, slice.Line{Parts: []int{i}})
		}
	}
	for i, p := range partsJSON(s, a, instructions) {
		row := []string{strconv.Itoa(p.Away), strconv.Itoa(p.Times), p.Routine, "", p.File,
			blankZero(uint64(p.Line))}
		if p.Offset != nil {
			row[3] = strconv.FormatUint(*p.Offset, 10)
		}
		var text []byte
		others := 0
		for _, k := range lines[i].Parts {
			if last := a.Parts[k].Last; last != nil {
				text = executed.Append(text, last)
			}
			others += a.Parts[k].Others
		}
		rows = append(rows, append(row, strings.TrimSpace(string(text)),
			blankZero(uint64(others))))
	}
	if err := csv.NewWriter(w).WriteAll(rows); err != nil {
		return fmt.Errorf("write a slice: %w", err)
	}
	return nil
}
