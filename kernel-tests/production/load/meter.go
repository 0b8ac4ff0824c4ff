package load

import (
	"math/bits"
	"sync"
	"time"
)

// HeldUp is the gap from which on a client is said to be held up.
const HeldUp = 10 * time.Millisecond

// Figures are what the clients have noticed between two moments.
type Figures struct {
	Answers  uint64        `json:"answers"`
	Duration time.Duration `json:"duration_ns"`
	// Longest is the longest gap between two answers of one connection.
	Longest time.Duration `json:"longest_gap_ns"`
	// HoldUps is how many gaps were HeldUp or longer, of all connections.
	HoldUps uint64 `json:"hold_ups"`
	// HoldUpTime is how long these were together, divided by the number of connections.
	HoldUpTime time.Duration `json:"hold_up_time_ns"`

	// that many of the answers took this long at most, give or take 3 %
	Median time.Duration `json:"median_ns"`
	P99    time.Duration `json:"p99_ns"`
	P999   time.Duration `json:"p999_ns"`
}

// Rate is the number of answers a second.
func (f Figures) Rate() float64 {
	if f.Duration <= 0 {
		return 0
	}
	return float64(f.Answers) / f.Duration.Seconds()
}

// A Meter measures one connection. It may be used concurrently.
type Meter struct {
	mu    sync.Mutex
	last  time.Time // of an answer, or when measuring began
	begin time.Time
	f     Figures
	h     histogram
}

// Begin forgets what was, and measures from now on.
func (m *Meter) Begin(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last, m.begin, m.f, m.h = now, now, Figures{}, histogram{}
}

// Answer takes note of an answer, which ends a gap.
func (m *Meter) Answer(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	gap := now.Sub(m.last)
	m.last = now
	m.f.Answers++
	m.h.add(gap)
	m.gap(gap)
}

func (m *Meter) gap(gap time.Duration) {
	m.f.Longest = max(m.f.Longest, gap)
	if gap >= HeldUp {
		m.f.HoldUps++
		m.f.HoldUpTime += gap
	}
}

// Answers is how many answers there were since Begin.
func (m *Meter) Answers() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.f.Answers
}

// Total sums up several connections that began at the same time. A gap that is still open counts
// as far as it has come.
func Total(now time.Time, list []*Meter) Figures {
	var all Figures
	var h histogram
	for _, m := range list {
		m.mu.Lock()
		open := *m.copied()
		m.mu.Unlock()
		open.gap(now.Sub(open.last))
		all.Answers += open.f.Answers
		all.Duration = max(all.Duration, now.Sub(open.begin))
		all.Longest = max(all.Longest, open.f.Longest)
		all.HoldUps += open.f.HoldUps
		all.HoldUpTime += open.f.HoldUpTime / time.Duration(len(list))
		h.join(&open.h)
	}
	all.Median, all.P99, all.P999 = h.quantile(0.5), h.quantile(0.99), h.quantile(0.999)
	return all
}

func (m *Meter) copied() *Meter {
	return &Meter{last: m.last, begin: m.begin, f: m.f, h: m.h}
}

// A histogram counts durations in classes that are 1/16 of a power of two wide.
type histogram struct {
	counts [64 << classBits]uint32
	n      uint64
}

const classBits = 4

func (h *histogram) add(d time.Duration) {
	h.counts[class(d)]++
	h.n++
}

func (h *histogram) join(o *histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.n += o.n
}

// quantile is in the middle of the class that the share q of all reaches; 0: there are none.
func (h *histogram) quantile(q float64) time.Duration {
	left := uint64(q * float64(h.n))
	for i, n := range h.counts {
		if uint64(n) > left {
			return (least(i) + least(i+1)) / 2
		}
		left -= uint64(n)
	}
	return 0
}

// class is the class of a duration: exact below 1<<classBits ns.
func class(d time.Duration) int {
	n := uint64(max(d, 0))
	shift := max(bits.Len64(n)-1-classBits, 0)
	return shift<<classBits + int(n>>shift)
}

// least is the shortest duration of a class.
func least(class int) time.Duration {
	shift := max(class>>classBits-1, 0)
	return time.Duration(class-shift<<classBits) << shift
}
