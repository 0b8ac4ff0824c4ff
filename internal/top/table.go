package top

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"wpptrace/query/names"
)

// An entry is a line of a table: a routine, or a subpath.
type entry struct {
	key      string // that no other one has, in this recording
	share    float64
	interval string // that the share is in; "": not known
	numbers  [2]*uint64
	inAll    string // the first of them in the whole run, of which windows were recorded
	name     string
	second   string                 // behind the name
	fit      func(width int) string // is the name in so many columns
	routines []string
	symbols  []uint32 // of the paths whose source is shown
}

// routineEntries are what ran by routine.
func routineEntries(c *content) []entry {
	list := make([]entry, 0, len(c.flat.Routines))
	for i := range c.flat.Routines {
		r := &c.flat.Routines[i]
		e := entry{key: r.Image + " " + r.Routine, share: r.Share,
			numbers: [2]*uint64{r.Calls, r.Paths}, name: names.Printable(r.Routine),
			second: hottestOf(r), inAll: r.CallsInAll.Text(), routines: []string{r.Routine}}
		e.fit = func(width int) string { return names.Shorten(e.name, width) }
		if r.Least != nil {
			e.interval = fmt.Sprintf("%.1f-%.1f%%", 100**r.Least, 100**r.Most)
		}
		if r.Hottest != nil {
			e.symbols = []uint32{r.Hottest.Symbol}
		}
		list = append(list, e)
	}
	return list
}

// subpathEntries are the hot subpaths.
func subpathEntries(c *content) []entry {
	list := make([]entry, 0, len(c.hot.Subpaths))
	for i := range c.hot.Subpaths {
		p := &c.hot.Subpaths[i]
		length := uint64(p.Length)
		e := entry{share: p.Share, numbers: [2]*uint64{&p.Count, &length}, inAll: p.InAll.Text(),
			fit: func(width int) string { return nameOf(p, width) }}
		for _, l := range slices.Concat(p.Before, p.Paths) {
			e.key += fmt.Sprintf("%d ", l.Symbol) // a recording does not change what one is
			e.symbols = append(e.symbols, l.Symbol)
			e.routines = append(e.routines, l.Routine)
		}
		e.name = p.Paths[0].Name(1 << 10)
		list = append(list, e)
	}
	return list
}

// Keys that tables are sorted by.
const (
	byShare  = 's'
	byFirst  = 'c' // calls, or count
	bySecond = 'p' // paths, or length
	byName   = 'n'
)

// A table is entries in an order, one of which is selected.
type table struct {
	titles  [2]string // of the numbers
	title   string    // of the names
	second  string    // of what is behind them; "": there is nothing
	by      rune
	reverse bool
	entries []entry
	of      int    // entries, before the filter
	chosen  string // the key of the entry that is selected; "": the first
}

// arrange shows those entries that a filter lets through, nil: all.
func (t *table) arrange(all []entry, filter *regexp.Regexp) {
	t.of, t.entries = len(all), nil
	for _, e := range all {
		if filter == nil || slices.ContainsFunc(e.routines, filter.MatchString) {
			t.entries = append(t.entries, e)
		}
	}
	slices.SortStableFunc(t.entries, func(a, b entry) int {
		n := 0
		switch t.by {
		case byFirst:
			n = cmp.Compare(value(b.numbers[0]), value(a.numbers[0]))
		case bySecond:
			n = cmp.Compare(value(b.numbers[1]), value(a.numbers[1]))
		case byName:
			n = cmp.Compare(a.name, b.name)
		default:
			n = cmp.Compare(b.share, a.share)
		}
		if t.reverse {
			n = -n
		}
		return n
	})
}

func value(n *uint64) uint64 {
	if n == nil {
		return 0
	}
	return *n
}

// selected is the index of the entry that is selected, -1: there are none.
func (t *table) selected() int {
	if len(t.entries) == 0 {
		return -1
	}
	return max(0, slices.IndexFunc(t.entries, func(e entry) bool { return e.key == t.chosen }))
}

// move selects another entry.
func (t *table) move(by int) {
	if i := t.selected(); i >= 0 {
		t.chosen = t.entries[min(max(i+by, 0), len(t.entries)-1)].key
	}
}

// symbols are those of the entry that is selected.
func (t *table) symbols() []uint32 {
	if i := t.selected(); i >= 0 {
		return t.entries[i].symbols
	}
	return nil
}

// withIntervals is the width of the screen from which on tables have intervals.
const withIntervals = 100

// rows are the table in so many columns and rows, its title included.
func (t *table) rows(width, height int, focused, intervals bool) []row {
	at := max(t.selected(), 0)
	body := max(height-1, 0)
	first := min(max(at-body/2, 0), max(len(t.entries)-body, 0))
	shown := t.entries[first:min(first+body, len(t.entries))]
	widths := [2]int{len(t.titles[0]) + 1, len(t.titles[1]) + 1}
	interval, all, name := 0, 0, 0
	for _, e := range shown {
		for i, n := range e.numbers {
			widths[i] = max(widths[i], len(number(n)))
		}
		if intervals {
			interval = max(interval, len(e.interval))
			if e.inAll != "-" {
				all = max(all, len(e.inAll), len("IN ALL"))
			}
		}
		name = max(name, utf8.RuneCountInString(e.name))
	}
	second := t.second
	if width < narrow {
		second = ""
	}
	line := func(share, between string, numbers [2]string, inAll, rest string) string {
		text := fmt.Sprintf("%7s", share)
		if interval > 0 {
			text += fmt.Sprintf("  %*s", interval, between)
		}
		text += fmt.Sprintf("  %*s", widths[0], numbers[0])
		if all > 0 {
			text += fmt.Sprintf("  %*s", all, inAll)
		}
		if width < narrow { // one number: that by which it is sorted, else the first
			if t.by == bySecond {
				text = fmt.Sprintf("%7s  %*s", share, widths[1], numbers[1])
			}
			return text + "  " + rest
		}
		return text + fmt.Sprintf("  %*s  %s", widths[1], numbers[1], rest)
	}
	room := max(width-len(line("", "", [2]string{}, "", "")), 1)
	name = min(max(name, len(t.title)+len(" (000 of 000)")), max(room/2, 1))
	if second == "" {
		name = room
	}
	rest := func(first, behind string) string {
		if second == "" {
			return first
		}
		return fmt.Sprintf("%-*s  %s", name, first, names.ShortenMiddle(behind, room-name-2))
	}
	numbers := [2]string{t.mark(byFirst, t.titles[0]), t.mark(bySecond, t.titles[1])}
	list := []row{{line(t.mark(byShare, "SHARE"), "INTERVAL", numbers, "IN ALL",
		rest(t.mark(byName, t.title)+t.count(), second)), bold}}
	if focused {
		list[0].style = title
	}
	for i, e := range shown {
		r := row{line(percent(e.share), e.interval, [2]string{number(e.numbers[0]),
			number(e.numbers[1])}, e.inAll, rest(e.fit(name), e.second)), plain}
		if first+i == at {
			if r.style = faintChosen; focused {
				r.style, r.text = chosen, ">"+strings.TrimPrefix(r.text, " ")
			}
		}
		list = append(list, r)
	}
	for len(list) < height {
		list = append(list, row{})
	}
	return list
}

// mark marks the title of the column that the table is sorted by.
func (t *table) mark(by rune, title string) string {
	switch {
	case t.by != by:
		return title
	case t.reverse:
		return title + "^"
	}
	return title + "*"
}

// count is how many entries there are.
func (t *table) count() string {
	if len(t.entries) < t.of {
		return fmt.Sprintf(" (%d of %d)", len(t.entries), t.of)
	}
	return fmt.Sprintf(" (%d)", t.of)
}

func number(n *uint64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatUint(*n, 10)
}

// rule is a title over a width.
func rule(text string, width int) string {
	return text + strings.Repeat(" ", max(width-utf8.RuneCountInString(text), 0))
}
