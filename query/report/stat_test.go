package report

import (
	"bytes"
	"strings"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/query"
)

// What is not known is printed, and so is that a slow-down may be larger.
func TestWriteStatLimits(t *testing.T) {
	var out bytes.Buffer
	if err := WriteStat(&out, query.Stat{SlowDown: wpp.MostSlowDown, SampledMost: 0.0123}); err !=
		nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\ncommand -\n", "\nstarted -\n", "\nslow_down >=100.000\n",
		"\nsampled unknown\n", "\nsampled_most 0.0123\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

// statOf has the figures of a snapshot in a file of 1000 bytes.
func statOf(t testing.TB, s *wpp.Snapshot) query.Stat {
	t.Helper()
	x, err := query.NewStat(s, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return x
}
