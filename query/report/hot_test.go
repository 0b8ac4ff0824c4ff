package report

import (
	"strings"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/query"
)

// TestHotOfNothing: of a recording in which nothing ran, no bound of what is hot is printed.
func TestHotOfNothing(t *testing.T) {
	s := &wpp.Snapshot{Figures: wpp.Figures{Command: []string{"sleep"}, PID: 7}}
	r, err := query.Hot(s, query.DefaultHotQuery())
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := WriteHot(&out, s, r); err != nil {
		t.Fatal(err)
	}
	if want := "Command: sleep (pid 7)\nTotal: 0 paths\n"; out.String() != want {
		t.Errorf("%q, want %q", &out, want)
	}
}
