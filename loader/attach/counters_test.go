package attach

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestMetricsInTheLog(t *testing.T) {
	for want, m := range map[string]Metrics{
		"failures=none": {},
		`"failures.lost hits"=7 "failures.not reported"=2`: {LostHits: 7, Unreported: 2},
	} {
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("counted", "failures", m)
		if !strings.HasSuffix(log.String(), "msg=counted "+want+"\n") {
			t.Errorf("%+v is logged as %q, want %s", m, &log, want)
		}
	}
}
