package statusline

import (
	"log/slog"
	"strings"
	"testing"
)

// Messages have lines of their own.
func TestMessagesBesideTheLine(t *testing.T) {
	var out strings.Builder
	l := New(&out, false)
	log := slog.New(slog.NewTextHandler(l, nil))
	l.width = func() int { return 40 }
	for range 2 {
		l.replace("1s  5 paths/s")
		log.Info("met")
	}
	text := out.String()
	if strings.Count(text, "\r\x1b[K1s  5 paths/s\r\x1b[Ktime=") != 2 || !strings.HasSuffix(text,
		"msg=met\n") {
		t.Errorf("%q", text)
	}
}
