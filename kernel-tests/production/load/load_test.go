package load_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"wpptrace/kernel-tests/production/load"
)

// A hold-up is the longest gap of one connection, whether it has ended or not, and not a sum or a
// gap between answers of two.
func TestHoldUps(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name    string
		answers [][]time.Duration // of each connection
		end     time.Duration
		longest time.Duration
		holdUps uint64
		time    time.Duration
	}{
		{"none", [][]time.Duration{{1 * ms, 2 * ms, 3 * ms}}, 4 * ms, 1 * ms, 0, 0},
		{"before the first answer", [][]time.Duration{{40 * ms, 41 * ms}}, 42 * ms, 40 * ms, 1,
			40 * ms},
		{"in the middle", [][]time.Duration{{1 * ms, 31 * ms, 32 * ms}}, 33 * ms, 30 * ms, 1,
			30 * ms},
		{"not over yet", [][]time.Duration{{1 * ms}}, 101 * ms, 100 * ms, 1, 100 * ms},
		{"no answer at all", [][]time.Duration{{}}, 50 * ms, 50 * ms, 1, 50 * ms},
		{"one of two", [][]time.Duration{{5 * ms, 10 * ms, 15 * ms}, {1 * ms, 13 * ms}}, 16 * ms,
			12 * ms, 1, 6 * ms},
		{"two", [][]time.Duration{{20 * ms, 21 * ms, 51 * ms}}, 52 * ms, 30 * ms, 2, 50 * ms},
	} {
		begin := time.Now()
		var meters []*load.Meter
		answers := 0
		for _, list := range c.answers {
			m := &load.Meter{}
			m.Answer(begin) // forgotten
			m.Begin(begin)
			for _, at := range list {
				m.Answer(begin.Add(at))
			}
			meters = append(meters, m)
			answers += len(list)
		}
		for range 2 { // the second time sees the same
			f := load.Total(begin.Add(c.end), meters)
			if f.Longest != c.longest || f.HoldUps != c.holdUps || f.HoldUpTime != c.time ||
				f.Duration != c.end || f.Answers != uint64(answers) {
				t.Errorf("%s: %+v", c.name, f)
			}
		}
	}
}

// Quantiles are as near as promised, from nanoseconds to minutes.
func TestQuantiles(t *testing.T) {
	for _, unit := range []time.Duration{1, 17, 1000, 123456, time.Minute} {
		begin, m := time.Now(), &load.Meter{}
		m.Begin(begin)
		at := begin
		for i := range 1000 {
			at = at.Add(time.Duration(i+1) * unit)
			m.Answer(at)
		}
		f := load.Total(at, []*load.Meter{m})
		for _, q := range []struct{ got, want time.Duration }{
			{f.Median, 501 * unit}, {f.P99, 991 * unit}, {f.P999, 1000 * unit},
		} {
			if d := (q.got - q.want).Abs(); float64(d) > 0.03*float64(q.want)+1 {
				t.Errorf("unit %v: %v, not %v", unit, q.got, q.want)
			}
		}
	}
}

// A sleeper answers after a while, and once after a longer one.
type sleeper struct {
	asked  int
	closed chan struct{}
	fail   error
}

func (s *sleeper) Ask() error {
	s.asked++
	wait := time.Millisecond
	if s.asked == 5 {
		wait = 80 * time.Millisecond
		if s.fail != nil {
			return s.fail
		}
	}
	select {
	case <-s.closed:
		return errors.New("closed")
	case <-time.After(wait):
		return nil
	}
}

func (s *sleeper) Close() error { close(s.closed); return nil }

func TestLoad(t *testing.T) {
	l := load.Start([]load.Client{
		&sleeper{closed: make(chan struct{})}, &sleeper{closed: make(chan struct{})}})
	time.Sleep(200 * time.Millisecond)
	f, err := l.Figures()
	if err != nil || f.Longest < 80*time.Millisecond || f.HoldUps < 2 || f.Answers < 10 ||
		f.Rate() <= 0 || l.Answers() < f.Answers {
		t.Errorf("%+v, %v", f, err)
	}
	l.Begin()
	if n := l.Answers(); n > 2 {
		t.Errorf("%d answers are left", n)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := l.Figures(); err != nil {
		t.Errorf("what Close ends is no failure: %v", err)
	}
}

func TestLoadFails(t *testing.T) {
	broken := errors.New("connection reset")
	l := load.Start([]load.Client{&sleeper{closed: make(chan struct{}), fail: broken}})
	defer l.Close()
	for range 100 {
		if _, err := l.Figures(); errors.Is(err, broken) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("a failed connection goes unnoticed")
}

func ExampleTotal() {
	begin, m := time.Now(), &load.Meter{}
	m.Begin(begin)
	m.Answer(begin.Add(1 * time.Millisecond))
	m.Answer(begin.Add(31 * time.Millisecond)) // held up
	m.Answer(begin.Add(32 * time.Millisecond))
	f := load.Total(begin.Add(32*time.Millisecond), []*load.Meter{m})
	fmt.Println(f.Answers, f.Longest, f.HoldUps)
	// Output: 3 30ms 1
}
