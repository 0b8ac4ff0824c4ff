package report

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"wpptrace/compress/wpp"
	"wpptrace/query/names"
	"wpptrace/query/profile"
)

// A Source is the text of a source file.
type Source struct {
	Path string
	Text []string // lines; nil: there is none
}

// WriteLines writes a source file with how often each line ran that has code: COUNT LINE SOURCE.
// Without its text, lines without code are left out. Tabs are 8 columns wide; lines are as wide as
// they are. The snapshot is the report's.
func WriteLines(w io.Writer, s *wpp.Snapshot, r *profile.LinesReport, source Source) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "Source: %s\n", names.Printable(r.File))
	writeWindows(out, s, "counts")
	if len(r.Lines) > 0 || len(source.Text) > 0 {
		writeLineTable(out, r, source)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write lines: %w", err)
	}
	return nil
}

func writeLineTable(out *bufio.Writer, r *profile.LinesReport, source Source) {
	counts := map[int]uint64{}
	width, last := len("COUNT"), len(source.Text)
	for _, l := range r.Lines {
		counts[l.Line] = l.Count
		width = max(width, len(strconv.FormatUint(l.Count, 10)))
		last = max(last, l.Line)
	}
	number := max(len("LINE"), len(strconv.Itoa(last)))
	row := func(count, line, text string) {
		line = fmt.Sprintf("%*s  %*s  %s", width, count, number, line, text)
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	out.WriteByte('\n')
	row("COUNT", "LINE", "SOURCE")
	for i, text := range source.Text {
		count := ""
		if n, ok := counts[i+1]; ok {
			count = strconv.FormatUint(n, 10)
		}
		row(count, strconv.Itoa(i+1), names.Printable(expandTabs(text)))
	}
	for _, l := range r.Lines {
		if l.Line > len(source.Text) {
			row(strconv.FormatUint(l.Count, 10), strconv.Itoa(l.Line), "")
		}
	}
}

// expandTabs puts spaces in the place of tabs.
func expandTabs(text string) string {
	if !strings.Contains(text, "\t") {
		return text
	}
	const width = 8
	var out strings.Builder
	column := 0
	for _, c := range text {
		if c != '\t' {
			out.WriteRune(c)
			column++
			continue
		}
		n := width - column%width
		out.WriteString(strings.Repeat(" ", n))
		column += n
	}
	return out.String()
}

// LinesJSON is what hot --lines --json prints. Of a recording in windows, counts are those of the
// windows.
type LinesJSON struct {
	SchemaVersion int    `json:"schema_version"`
	File          string `json:"file"` // as debug information has it
	// where its text was read; null: it was not found
	Source  *string `json:"source"`
	Threads int     `json:"threads"` // that were looked at
	Windows uint64  `json:"windows"` // that were traced; 0: all the time was
	// all lines with code of routines that ran are here; false: of a block, only the first and the
	// last line is known
	Complete bool `json:"complete"`
	// those that have code, by rising line
	Lines []LineJSON `json:"lines"`
}

// LineJSON is a source line that has code.
type LineJSON struct {
	Line  int     `json:"line"`  // its number, from 1
	Count uint64  `json:"count"` // how often it ran; 0: it did not
	Text  *string `json:"text"`  // null: it is not known
}

// WriteLinesJSON writes the lines of a report as one JSON object. The snapshot is the report's.
func WriteLinesJSON(w io.Writer, s *wpp.Snapshot, r *profile.LinesReport, source Source) error {
	object := LinesJSON{SchemaVersion: SchemaVersion, File: r.File, Threads: r.Threads,
		Windows: s.Figures.Windows, Complete: s.EachLine, Lines: []LineJSON{}}
	if source.Text != nil {
		object.Source = &source.Path
	}
	for _, l := range r.Lines {
		line := LineJSON{Line: l.Line, Count: l.Count}
		if l.Line <= len(source.Text) {
			line.Text = &source.Text[l.Line-1]
		}
		object.Lines = append(object.Lines, line)
	}
	return WriteJSON(w, object, "lines")
}
