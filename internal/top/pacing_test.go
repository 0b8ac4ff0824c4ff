package top

import (
	"testing"
	"time"
)

// Snapshots that take long come less often, so that they take no more than their share; figures
// come as often as before.
func TestPacing(t *testing.T) {
	const ms, interval = time.Millisecond, time.Second
	for _, c := range []struct {
		name          string
		copied, coded time.Duration
		err           error
		want          int // snapshots in a minute
	}{
		{"quick", ms, 20 * ms, nil, 60},
		{"long to code", ms, 500 * ms, nil, 12},
		{"long to copy", 100 * ms, 200 * ms, nil, 6},
		{"too large", ms, 20 * ms, errTooLarge, 1},
	} {
		var p pacing
		updates, snapshots := 0, 0
		began := time.Now()
		for now := began; now.Before(began.Add(time.Minute)); now = now.Add(20 * ms) {
			if !p.isDue(now) {
				continue
			}
			updates++
			p.begin(now, interval)
			var done sent
			if p.isSnapshotDue(now) {
				snapshots++
				p.copied, done = c.copied, sent{c.coded, c.err}
			}
			p.end(done, interval)
		}
		if p.trouble != "" != (c.err != nil) {
			t.Errorf("%s: in the end, the trouble is %q", c.name, p.trouble)
		}
		if updates < 59 || updates > 61 || snapshots != c.want {
			t.Errorf("%s: %d updates and %d snapshots in a minute, want 60 and %d", c.name,
				updates, snapshots, c.want)
		}
	}
}
