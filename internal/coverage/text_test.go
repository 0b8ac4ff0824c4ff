package coverage

import (
	"strings"
	"testing"
	"time"
)

// Of several blocks of one activation the first has a line.
func TestWriter(t *testing.T) {
	name, at := "worker", time.Date(2026, 1, 2, 3, 4, 5, 6000000, time.UTC)
	event := func(routine string, line, thread int, callers ...Frame) *New {
		return &New{Thread: thread, ThreadName: &name, when: at, Callers: callers,
			Frame: Frame{Routine: routine, Image: "prog", Address: "1234", File: "/src/a.c",
				Line: line}}
	}
	main := Frame{Routine: "main", Image: "prog", Address: "99"}
	var b strings.Builder
	w := NewWriter(&b, false)
	edge := event("f", 2, 2)
	edge.To = &Frame{Routine: "f", Image: "prog", Address: "1240"}
	many := event("g", 7, 1)
	many.Suppressed = 3
	for _, n := range []*New{event("f", 1, 1, main), event("f", 2, 1, main), event("f", 3, 1, main),
		event("f", 4, 2, main), event("f", 5, 2), edge, many, edge, edge} {
		if err := w.Write(n); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	want := `03:04:05.006 thread 1 (worker): f (a.c:1) < main (prog+99)
    and 2 more blocks of f
03:04:05.006 thread 2 (worker): f (a.c:4) < main (prog+99)
03:04:05.006 thread 2 (worker): f (a.c:5)
    and 1 more edge of f
03:04:05.006 thread 1 (worker): g (a.c:7); before it 3 more events not printed
03:04:05.006 thread 2 (worker): f (a.c:2 -> prog+1240)
    and 1 more edge of f
`
	if b.String() != want {
		t.Errorf("written:\n%s", b.String())
	}
}
