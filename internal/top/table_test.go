package top

import (
	"strings"
	"testing"
)

// Where windows were recorded, what a count is in the whole run is beside it, where there is room
// for intervals and where it is known of any.
func TestInAll(t *testing.T) {
	calls, paths := uint64(412), uint64(2884)
	entryOf := func(name, inAll string) entry {
		return entry{key: name, name: name, share: 0.1, numbers: [2]*uint64{&calls, &paths},
			inAll: inAll, fit: func(int) string { return name }}
	}
	for _, c := range []struct {
		entries   []entry
		intervals bool
		want      string
	}{
		{[]entry{entryOf("known", "31.0k-35.2k"), entryOf("unknown", "-")}, true, "" +
			"  SHARE   CALLS       IN ALL   PATHS  ROUTINE (2)\n" +
			"  10.0%     412  31.0k-35.2k    2884  known\n" +
			"  10.0%     412            -    2884  unknown\n"},
		{[]entry{entryOf("known", "31.0k-35.2k")}, false, "" +
			"  SHARE   CALLS   PATHS  ROUTINE (1)\n" +
			"  10.0%     412    2884  known\n"},
		{[]entry{entryOf("unknown", "-")}, true, "" +
			"  SHARE   CALLS   PATHS  ROUTINE (1)\n" +
			"  10.0%     412    2884  unknown\n"},
	} {
		x := table{titles: [2]string{"CALLS", "PATHS"}, title: "ROUTINE"}
		x.arrange(c.entries, nil)
		var got strings.Builder
		for _, r := range x.rows(60, len(c.entries)+1, false, c.intervals) {
			got.WriteString(strings.TrimRight(r.text, " ") + "\n")
		}
		if got.String() != c.want {
			t.Errorf("intervals %v:\n%swant\n%s", c.intervals, got.String(), c.want)
		}
	}
}
