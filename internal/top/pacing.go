package top

import (
	"errors"
	"time"
)

// A pacing says when updates are due, and when one has a snapshot.
type pacing struct {
	next     time.Time // that an update is due
	began    time.Time // the last one
	snapshot time.Time // when one is due
	copied   time.Duration
	over     bool   // there are no snapshots any more
	trouble  string // of the last one; "": there was none
}

// The most that snapshots take of a CPU: of the recording's goroutine, and of another.
const (
	copyingShare = 0.01
	packingShare = 0.1
)

func (p *pacing) isDue(now time.Time) bool { return !now.Before(p.next) }

// isLate reports whether an update has been due for so long that it is no more waited for the end
// of a window.
func (p *pacing) isLate(now time.Time, interval time.Duration) bool {
	return now.Sub(p.next) > interval/2
}

// begin notes that an update begins: the next comes an interval after this one was due.
func (p *pacing) begin(now time.Time, interval time.Duration) {
	p.began = now
	if p.next = p.next.Add(interval); p.next.Before(now) {
		p.next = now.Add(interval)
	}
}

func (p *pacing) isSnapshotDue(now time.Time) bool { return !p.over && !now.Before(p.snapshot) }

// end notes that an update was sent.
func (p *pacing) end(s sent, interval time.Duration) {
	if s.took > 0 {
		if p.trouble = ""; s.err != nil {
			p.trouble = s.err.Error()
		}
		pause := max(time.Duration(float64(p.copied)/copyingShare),
			time.Duration(float64(s.took)/packingShare))
		if p.snapshot = p.began.Add(pause); pause < interval {
			p.snapshot = time.Time{}
		}
	}
	p.over = p.over || errors.Is(s.err, errTooLarge)
}
