package report

import (
	"strings"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/query/querytest"
	"wpptrace/query/rules"
)

// An order of paths that were not all recorded is unknown, not never.
func TestWriteOrderOfWhatIsUnknown(t *testing.T) {
	s := querytest.Letters("aba")
	s.Routines = append(s.Routines, wpp.Routine{Name: "main", LeftOut: "not selected"})
	o, err := rules.PathOrder(s, "a", "main")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := WriteOrder(&text, s, o); err != nil || strings.Count(text.String(),
		": unknown; not both were traced\n") != 2 {
		t.Errorf("%q, %v", text.String(), err)
	}
}
