package top

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"wpptrace/compress/wpp"
	"wpptrace/query"
	"wpptrace/query/names"
	"wpptrace/query/profile"
	"wpptrace/query/report"
)

// A content is what is asked of a snapshot.
type content struct {
	snapshot *wpp.Snapshot
	time     string // where the CPU time went; "": there are no samples
	flat     *report.FlatJSON
	hot      *report.HotJSON
	next     []string // what to ask next
}

// mostSubpaths is how many subpaths are asked for.
const mostSubpaths = 100

// An asker asks snapshots as they come. Where that takes long it passes some over: it takes no more
// than a share of a CPU.
type asker struct {
	selected bool // see Opening
	next     time.Time
	trouble  string // of the snapshot that was asked last
}

const askingShare = 0.2

// ask asks the snapshot of an update, if it has one and it is time. An error is the trouble of the
// update, and of those that follow: what was asked before still holds. Of the last one all is
// asked.
func (a *asker) ask(u *update) *content {
	defer func() { u.Trouble = cmp.Or(u.Trouble, a.trouble) }()
	if u.Snapshot == nil || !u.Last && time.Now().Before(a.next) {
		return nil
	}
	began := time.Now()
	c, err := newContentOf(u.Snapshot, a.selected)
	if a.trouble = ""; err != nil {
		a.trouble = err.Error()
	}
	a.next = time.Now().Add(time.Duration(float64(time.Since(began)) * (1/askingShare - 1)))
	return c
}

func newContentOf(p *packed, selected bool) (*content, error) {
	s, err := p.snapshot()
	if err != nil {
		return nil, fmt.Errorf("read from the recording: %w", err)
	}
	return newContent(s, selected)
}

func newContent(s *wpp.Snapshot, selected bool) (*content, error) {
	c := &content{snapshot: s}
	if time, err := profile.CPUTime(s); err != nil {
		return nil, err
	} else if time != nil {
		c.time = report.TimeText(time)
	}
	flat, err := profile.Flat(s)
	if err != nil {
		return nil, err
	}
	if c.flat, err = report.NewFlatJSON(s, flat, 0); err != nil {
		return nil, err
	}
	c.next = report.Next(s, flat, "", selected)
	q := query.DefaultHotQuery()
	q.Top = mostSubpaths
	hot, err := query.Hot(s, q)
	if err != nil {
		return nil, err
	}
	c.hot, err = report.NewHotJSON(s, hot)
	return c, err
}

// hottestOf is the hottest path of a routine in words, or why there is none.
func hottestOf(r *report.RoutineJSON) string {
	switch {
	case r.Hottest != nil && r.Cost != nil && *r.Cost > 0:
		return fmt.Sprintf("#%d %.0f%% %s", r.Hottest.Path,
			100*query.Share(r.HottestCost, *r.Cost), r.Hottest.Place())
	case r.Hottest != nil:
		return fmt.Sprintf("#%d %s", r.Hottest.Path, r.Hottest.Place())
	case r.Traced:
		return "-"
	}
	return names.Printable(r.Image) + ", not traced"
}

// A step is a path of a subpath that ran several times in a row.
type step struct {
	label *report.Label
	times int
}

// stepsOf folds the paths of a subpath.
func stepsOf(paths []*report.Label) (list []step) {
	for _, l := range paths {
		if n := len(list); n > 0 && list[n-1].label == l {
			list[n-1].times++
			continue
		}
		list = append(list, step{l, 1})
	}
	return list
}

// name is the path, and how often in a row.
func (x step) name(width int) string {
	if x.times == 1 {
		return x.label.Name(width)
	}
	times := fmt.Sprintf(" x%d", x.times)
	return x.label.Name(width-len(times)) + times
}

// nameOf is a subpath in one line of at most that width: where there is not room for all of its
// paths, the first and the last one.
func nameOf(p *report.SubpathJSON, width int) string {
	const arrow = " > "
	steps := stepsOf(p.Paths)
	list := make([]string, len(steps))
	for i, x := range steps {
		list[i] = x.name(1 << 10)
	}
	if all := strings.Join(list, arrow); utf8.RuneCountInString(all) <= width {
		return all
	}
	first, last, between := list[0], list[len(list)-1], arrow
	switch len(list) {
	case 1:
		return names.Shorten(first, width)
	case 2:
	default:
		between = arrow + names.Ellipsis + arrow
	}
	room := width - len(between)
	first = names.Shorten(first, max(room-utf8.RuneCountInString(last), (room+1)/2))
	last = names.Shorten(last, room-utf8.RuneCountInString(first))
	return first + between + last
}
