package report_test

import (
	"strings"
	"testing"

	"wpptrace/query/querytest"
	"wpptrace/query/report"
)

// TestDumpOfAllValues: what is known of flags stands behind the other values.
func TestDumpOfAllValues(t *testing.T) {
	var text strings.Builder
	err := report.Dump(&text, querytest.Values(), report.AllValues, report.Whole())
	if err != nil || !strings.Contains(text.String(), " f[8c0]=") {
		t.Errorf("%v: %s", err, text.String())
	}
}
