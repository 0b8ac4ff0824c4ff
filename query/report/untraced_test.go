package report

import (
	"strings"
	"testing"

	"wpptrace/compress/wpp"
)

// TestNothingWasTraced: a recording in windows of which none was opened is none of all that ran.
func TestNothingWasTraced(t *testing.T) {
	s := &wpp.Snapshot{}
	s.Figures.SetUntraced()
	if f := &s.Figures; !f.IsSampled() || !f.IsUntraced() || f.IsShareKnown() {
		t.Errorf("%+v", *f)
	}
	if list := Caveats(s); len(list) != 1 || !strings.Contains(list[0], "nothing") {
		t.Errorf("%q", list)
	}
}
