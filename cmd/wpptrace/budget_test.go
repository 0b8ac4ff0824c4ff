package main

import (
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"wpptrace/internal/testenv"
	"wpptrace/loader/target"
)

// What is not said of a recording follows from whether the process is at work already.
func TestUsualFlags(t *testing.T) {
	type usual struct {
		overhead, maxSlowDown float64
		onOverflow            overflow
	}
	for name, c := range map[string]struct {
		attaching, follow bool
		oldKernel         bool
		given             map[string]bool
		want              usual
	}{
		"a process": {attaching: true,
			want: usual{defaultOverhead, 0, overflowGap}},
		"a process, all of it": {attaching: true, given: map[string]bool{"overhead": true},
			want: usual{0, defaultMaxSlowDown, overflowGap}},
		"a process, up to a slow-down": {attaching: true,
			given: map[string]bool{"max-slowdown": true}, want: usual{0, defaultMaxSlowDown,
				overflowGap}},
		"a process and its children": {attaching: true, follow: true,
			want: usual{0, defaultMaxSlowDown, overflowGap}},
		"a process on an old kernel": {attaching: true, oldKernel: true,
			want: usual{0, defaultMaxSlowDown, overflowGap}},
		"a command": {want: usual{0, 0, overflowStop}},
		"a command that may lose": {given: map[string]bool{"on-overflow": true},
			want: usual{0, 0, overflowGap}},
		"a command and its children": {follow: true, want: usual{0, 0, overflowGap}},
	} {
		o := recordFlags{onOverflow: overflowGap, maxSlowDown: defaultMaxSlowDown,
			followFork: c.follow}
		o.complete(c.attaching, !c.oldKernel, func(flag string) bool { return c.given[flag] })
		if got := (usual{o.overhead, o.maxSlowDown, o.onOverflow}); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if inWindows := c.want.overhead > 0; inWindows != (o.ring == ringOfWindows) {
			t.Errorf("%s: a buffer of %v", name, o.ring)
		}
	}
}

// A progress is when a process has reported that it had done another stretch of the same work.
type progress struct {
	mutex sync.Mutex
	at    []time.Time
}

func (p *progress) note(string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.at = append(p.at, time.Now())
}

// stretch is how long one takes between two moments.
func (p *progress) stretch(t *testing.T, from, to time.Time) time.Duration {
	t.Helper()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	first := slices.IndexFunc(p.at, from.Before)
	last := first
	for last+1 < len(p.at) && p.at[last+1].Before(to) {
		last++
	}
	if first < 0 || last == first {
		t.Fatal("the process does not report two stretches")
	}
	return p.at[last].Sub(p.at[first]) / time.Duration(last-first)
}

// Under the usual budget of 5 %, ten million calls a second get slower by 2.5 to 7.5 %: the time
// that the same work takes, in the median of many recordings, each between two stretches without.
// They are short: on a machine shared with others that time can be half as long again for seconds.
func TestBudgetIsKept(t *testing.T) {
	if os.Getenv("WPPTRACE_SOAK") == "" {
		t.Skip("WPPTRACE_SOAK is not set, and it takes a machine that does nothing else: see " +
			"make soak")
	}
	const turns, turn = 31, 3 * time.Second
	var p progress
	pid := startCalls(t, p.note)
	var slower []float64
	before := time.Now()
	time.Sleep(turn)
	for range turns {
		w := startTracer(t, "-p", strconv.Itoa(pid), "-d", turn.String(), "-o", "x.wpp")
		w.expect("recording process")
		began := time.Now()
		w.wait(0)
		ended := began.Add(turn)
		after := time.Now()
		time.Sleep(turn)
		without := (p.stretch(t, before, before.Add(turn)) + p.stretch(t, after, after.Add(turn))) /
			2
		slower = append(slower, 100*(float64(p.stretch(t, began, ended))/float64(without)-1))
		before = after
	}
	slices.Sort(slower)
	t.Logf("slower by, in per cent: %.1f", slower)
	if median := slower[turns/2]; median < 2.5 || median > 7.5 {
		t.Errorf("slower by %.1f %%", median)
	}
}

// A process that waits is left alone, when windows have been, too: in two seconds it uses less than
// a hundredth of them.
func TestIdleProcessIsLeftAlone(t *testing.T) {
	s := testenv.StartServer(t)
	p, err := target.Open(s.PID())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	w := startTracer(t, "-v", "-p", strconv.Itoa(s.PID()), "-o", "x.wpp")
	w.expect("recording process")
	s.Ask(2000)
	w.expect("a window has ended")
	before, err := p.Times()
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	after, err := p.Times()
	if err != nil {
		t.Fatal(err)
	}
	if used := after.Sub(before).CPU; used > 20*time.Millisecond {
		t.Errorf("it has used %v", used)
	}
	w.signal(os.Interrupt)
	w.wait(0)
	s.Ask(10)
	s.End()
}
