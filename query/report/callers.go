package report

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
	"wpptrace/query/names"
	"wpptrace/query/profile"
)

// WriteCallers writes up to top callers of a report, all where top is 0, as a table 100 columns
// wide: a line for each. The snapshot is the report's.
func WriteCallers(w io.Writer, s *wpp.Snapshot, r *profile.CallersReport, top int) error {
	out := bufio.NewWriter(w)
	writeFitted(out, "", r.Name, " was called "+text.Count(r.Calls, "time")+", by "+
		text.Count(len(r.Callers), "caller"))
	writeWindows(out, s, "counts")
	shown := r.Callers
	if top > 0 {
		shown = shown[:min(top, len(shown))]
	}
	if len(shown) > 0 {
		writeCallerTable(out, s, r, shown)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write callers: %w", err)
	}
	return nil
}

func writeCallerTable(out *bufio.Writer, s *wpp.Snapshot, r *profile.CallersReport,
	shown []profile.Caller) {
	called := names.Of(s)
	count := max(len("COUNT"), len(strconv.FormatUint(shown[0].Count, 10)))
	places, widest := make([]string, len(shown)), 0
	for i := range shown {
		places[i] = callerPlace(s, &shown[i])
		widest = max(widest, utf8.RuneCountInString(places[i]))
	}
	front := fmt.Sprintf("%*s    SHARE  ", count, "COUNT")
	room := TableColumns - len(front) - 2
	widest = min(widest, room/3)
	names := make([]string, len(shown))
	width := len("CALLER")
	for i := range shown {
		names[i] = callerName(called, &shown[i], room-widest)
		width = max(width, utf8.RuneCountInString(names[i]))
	}
	line := func(front, name, place string) {
		out.WriteString(strings.TrimRight(front+pad(name, width)+"  "+place, " ") + "\n")
	}
	line("\n"+front, "CALLER", "WHERE")
	for i := range shown {
		line(fmt.Sprintf("%*d  %6.2f%%  ", count, shown[i].Count, percent(shown[i].Count, r.Calls)),
			names[i], shortenPlace(places[i], widest))
	}
}

func shortenPlace(place string, width int) string {
	if place == "" {
		return ""
	}
	return names.ShortenLeft(place, width)
}

// callerName says who called, at most width columns wide.
func callerName(called *names.Names, c *profile.Caller, width int) string {
	who := "(none known)"
	if c.Routine != profile.NoRoutine {
		who = called.Routine(c.Routine)
	}
	switch {
	case c.Signal && c.Routine == profile.NoRoutine:
		return "a signal"
	case c.Signal:
		return "a signal, in " + names.Shorten(who, width-len("a signal, in "))
	case c.Tail != profile.NoRoutine:
		const between = ", behind a tail jump of "
		room := (width - len(between)) / 2
		return names.Shorten(who, room) + between + names.Shorten(called.Routine(c.Tail), room)
	}
	return names.Shorten(who, width)
}

// callerPlace is where a caller begins in the source, or in its image.
func callerPlace(s *wpp.Snapshot, c *profile.Caller) string {
	if c.Routine == profile.NoRoutine {
		return ""
	}
	r := &s.Routines[c.Routine]
	if file, line := entryOf(s, r); file != "" {
		return names.Printable(path.Base(file)) + ":" + strconv.Itoa(line)
	}
	return names.Printable(s.Images[r.Image].Base()) + " " + hex(r.Entry)
}

// CallersJSON is what hot --callers --json prints. Of a recording in windows, counts are those of
// the windows.
type CallersJSON struct {
	SchemaVersion int      `json:"schema_version"`
	Name          string   `json:"name"`     // as it was asked for
	Routines      []string `json:"routines"` // that have the name
	Threads       int      `json:"threads"`  // that were looked at
	Calls         uint64   `json:"calls"`    // activations whose beginning was recorded
	Windows       uint64   `json:"windows"`  // that were traced; 0: all the time was
	// by falling count, of which --top leaves out the last; all add up to calls
	Callers []CallerJSON `json:"callers"`
	Inlined
}

// CallerJSON is from where a routine was called.
type CallerJSON struct {
	// the innermost traced activation: between it and the routine external code may have run; null:
	// none is known
	Caller *string `json:"caller"`
	// the routine that ran directly before and ended in a tail jump; null: none did
	Tail   *string `json:"tail"`
	Signal bool    `json:"signal"` // a signal interrupted the caller
	Count  uint64  `json:"count"`  // how often
	// of the caller's entry; absent: not known
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"` // of the caller's entry; absent: not known
}

// WriteCallersJSON writes up to top callers of a report, all where top is 0, as one JSON object.
// The snapshot is the report's.
func WriteCallersJSON(w io.Writer, s *wpp.Snapshot, r *profile.CallersReport, top int) error {
	called := names.Of(s)
	name := func(routine int) *string {
		if routine == profile.NoRoutine {
			return nil
		}
		name := called.Routine(routine)
		return &name
	}
	object := CallersJSON{SchemaVersion: SchemaVersion, Name: r.Name, Threads: r.Threads,
		Calls: r.Calls, Windows: s.Figures.Windows, Callers: []CallerJSON{},
		Inlined: inlinedOf(s, r.Name)}
	for _, i := range r.Routines {
		object.Routines = append(object.Routines, called.Routine(i))
	}
	for i, c := range r.Callers {
		if top > 0 && i == top {
			break
		}
		row := CallerJSON{Caller: name(c.Routine), Tail: name(c.Tail), Signal: c.Signal,
			Count: c.Count}
		if c.Routine != profile.NoRoutine {
			row.File, row.Line = entryOf(s, &s.Routines[c.Routine])
		}
		object.Callers = append(object.Callers, row)
	}
	return WriteJSON(w, object, "callers")
}
