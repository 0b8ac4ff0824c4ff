package top

import (
	"bufio"
	"encoding/gob"
	"fmt"
	"io"
	"strings"
	"time"

	"wpptrace/internal/text"
	"wpptrace/query/names"
)

// The most lines of an update.
const (
	mostRoutineLines = 5
	mostSubpathLines = 3
)

// lineWidth is how wide lines are at most, but for that which says where the CPU time went.
const lineWidth = 100

// printLines prints each update as lines of their own kinds, each with its time, until there are no
// more: a program may read them.
func printLines(to io.Writer, o *Opening, updates *gob.Decoder) error {
	out := bufio.NewWriter(to)
	var shown *content
	asking := asker{selected: o.Selected}
	for {
		u, more, err := next(updates)
		if err != nil || !more {
			return err
		}
		if c := asking.ask(&u); c != nil {
			shown = c
		}
		writeLines(out, o, &u, shown)
		if err := out.Flush(); err != nil {
			return fmt.Errorf("print what is recorded: %w", err)
		}
	}
}

// writeLines writes an update; content may be nil.
func writeLines(out *bufio.Writer, o *Opening, u *update, c *content) {
	line := func(kind, format string, args ...any) {
		fmt.Fprintf(out, "%7.1fs  %-7s  %s\n", u.Status.Duration.Seconds(), kind,
			fmt.Sprintf(format, args...))
	}
	line("status", "%s", strings.Join(append(progress(&u.Status), costs(o, &u.Status)...), "  "))
	if u.Trouble != "" {
		line("trouble", "%s", names.Printable(u.Trouble))
	}
	if c == nil {
		return
	}
	if c.time != "" {
		line("time", "%s", c.time)
	}
	const numbers = 47 // columns
	for i := range c.flat.Routines[:min(mostRoutineLines, len(c.flat.Routines))] {
		r := &c.flat.Routines[i]
		line("routine", "%6s  %s calls  %s paths  %s", percent(r.Share), short(r.Calls),
			short(r.Paths), inTwo(names.Printable(r.Routine), hottestOf(r), lineWidth-numbers))
	}
	for i := range c.hot.Subpaths[:min(mostSubpathLines, len(c.hot.Subpaths))] {
		p := &c.hot.Subpaths[i]
		line("subpath", "%6s  %s times  %s", percent(p.Share), short(&p.Count),
			nameOf(p, lineWidth-numbers))
	}
	for _, text := range c.next {
		line("next", "%s", text)
	}
}

// progress is how far a recording has come.
func progress(s *status) []string {
	if s.Windows == 0 {
		return []string{text.Short(float64(s.Paths)) + " paths"}
	}
	return []string{text.Count(s.Windows, "window"), text.Short(float64(s.Paths)) + " paths"}
}

// costs are what a recording loses and takes.
func costs(o *Opening, s *status) []string {
	list := []string{"lost " + text.Count(s.Lost, "event")}
	if o.Budget == 0 {
		if s.SlowDown != "" {
			list = append(list, "slow-down "+s.SlowDown)
		}
		return list
	}
	return append(list, fmt.Sprintf("overhead %s of %s", text.Share(s.Overhead),
		text.Share(o.Budget)), fmt.Sprintf("longest stall %s of %v", milliseconds(s.HeldUp),
		o.MaxStall))
}

// milliseconds writes a time to a tenth of a millisecond.
func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1fms", d.Seconds()*float64(time.Second/time.Millisecond))
}

func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

// short is a number in four columns; -: there is none.
func short(n *uint64) string {
	if n == nil {
		return fmt.Sprintf("%4s", "-")
	}
	return fmt.Sprintf("%4s", text.Short(float64(*n)))
}

// inTwo puts two texts side by side, of which the first gets half of the width, or more where the
// other needs less.
func inTwo(a, b string, width int) string {
	const gap = "  "
	room := width - len(gap)
	a = names.Shorten(a, max(room/2, room-len([]rune(b))))
	return a + gap + names.ShortenMiddle(b, room-len([]rune(a)))
}
