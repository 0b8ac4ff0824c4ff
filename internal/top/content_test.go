package top

import (
	"testing"
	"time"
	"unicode/utf8"

	"wpptrace/query/report"
)

// A subpath is named by as many of its paths as there is room for, and never in more columns.
func TestNameOf(t *testing.T) {
	label := func(routine string, path uint64) *report.Label {
		return &report.Label{Routine: routine, Path: path}
	}
	a, b, c := label("first", 1), label("a_routine_with_a_long_name", 22), label("last", 333)
	for _, x := range []struct {
		paths []*report.Label
		width int
		want  string
	}{
		{[]*report.Label{a, c}, 40, "first#1 > last#333"},
		{[]*report.Label{a, a, a, c}, 40, "first#1 x3 > last#333"},
		{[]*report.Label{a, b, c}, 60, "first#1 > a_routine_with_a_long_name#22 > last#333"},
		{[]*report.Label{a, b, c}, 40, "first#1 > ... > last#333"},
		{[]*report.Label{a, b}, 30, "first#1 > a_routine..._name#22"},
		{[]*report.Label{b, a, b}, 40, "a_routi...ame#22 > ... > a_rout...ame#22"},
		{[]*report.Label{b}, 20, "a_routine..._name#22"},
	} {
		got := nameOf(&report.SubpathJSON{Paths: x.paths}, x.width)
		if n := utf8.RuneCountInString(got); n > x.width {
			t.Errorf("%q has %d columns of %d", got, n, x.width)
		}
		if got != x.want {
			t.Errorf("in %d columns: %q, want %q", x.width, got, x.want)
		}
	}
}

// What cannot be asked is trouble until the next snapshot that can; what takes long is asked less
// often, but for the last.
func TestAsker(t *testing.T) {
	good, err := pack(watched())
	if err != nil {
		t.Fatal(err)
	}
	bad := &packed{File: []byte("no snapshot")}
	var a asker
	for i, c := range []struct {
		update  update
		rested  bool
		content bool
		trouble bool
	}{
		{update{Snapshot: bad}, true, false, true},
		{update{}, true, false, true},
		{update{Snapshot: good}, false, false, true},
		{update{Snapshot: good}, true, true, false},
		{update{}, true, false, false},
		{update{Snapshot: good, Last: true}, false, true, false},
	} {
		if a.next = time.Now().Add(time.Hour); c.rested {
			a.next = time.Time{}
		}
		got := a.ask(&c.update)
		if (got != nil) != c.content || (c.update.Trouble != "") != c.trouble {
			t.Errorf("update %d: content %v, trouble %q", i, got != nil, c.update.Trouble)
		}
		if c.content && !a.next.After(time.Now()) {
			t.Errorf("update %d: it does not rest", i)
		}
	}
}
