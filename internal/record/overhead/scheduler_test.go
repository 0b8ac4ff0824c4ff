package overhead

import (
	"math"
	"testing"
	"time"

	"wpptrace/loader/attach"
	"wpptrace/loader/target"
)

const usualWindow = 10 * time.Millisecond

// A window begins while the process does something, unless that is not to be had, or costs too
// much.
func TestWindowsOfASleeper(t *testing.T) {
	const window = 10 * time.Millisecond
	sleeps, works := func() bool { return true }, func() bool { return false }
	slowly := func() bool { time.Sleep(window); return true }
	p := NewScheduler(0.05, Limits{Window: window, Stall: time.Second}, target.Times{}, 1, nil)
	if p.waking.isDue(sleeps) {
		t.Error("a window is opened while the process sleeps")
	}
	if p.Pause(glance) != glance {
		t.Errorf("it is looked for the process to wake up in %v, not %v", p.Pause(glance), glance)
	}
	if p.waking.isDue(slowly) || p.Pause(glance) < 10*window {
		t.Errorf("where a look takes %v it is looked again in %v", window, p.Pause(glance))
	}
	if !p.waking.isDue(works) || p.waking.isDue(sleeps) {
		t.Error("a window is not opened while the process works, or the next one while it sleeps")
	}
	p.waking.ready = time.Now().Add(-longestSleep)
	if !p.waking.isDue(sleeps) {
		t.Error("no window is opened of a process that sleeps for long")
	}
	for range mostTries {
		if p.Begins(true) {
			t.Fatal("a window begins while the process sleeps")
		}
	}
	for _, c := range []struct {
		name        string
		asleep      bool
		load        float64
		change      time.Duration
		begunAsleep uint64
	}{
		{"after many tries", true, 1, 0, 1},
		{"while it works", false, 1, 0, 1},
		{"that was costly to open", true, 1, window + 1, 2},
		{"of what hardly works", true, leastLoad / 2, 0, 3},
		{"of what hardly works, and does", false, leastLoad / 2, 0, 4},
	} {
		if p.load, p.in = c.load, c.change; !p.Begins(c.asleep) || p.Asleep() != c.begunAsleep {
			t.Errorf("a window %s: %d have begun asleep, not %d", c.name, p.Asleep(), c.begunAsleep)
		}
	}
	if p.Begins(true); p.waking.tries != 0 {
		t.Error("tries are not counted anew")
	}
}

// TestSampledShare: the share that windows are of a run is in doubt where it is what hits leave of
// the time in them.
func TestSampledShare(t *testing.T) {
	// 30 ms were the process's own
	rated := NewControls(planOf(3))
	for site := range 3 {
		rated.Count(site, 1000)
	}
	rated.choose()
	for range 10 {
		rated.add([]int{0, 1, 2}, []uint64{1000, 1001, 1002}, 31*time.Millisecond,
			time.Millisecond, 0)
	}
	for _, c := range []struct {
		name     string
		hits     time.Duration // in the windows, of a second of CPU time there
		controls *Controls
		closed   uint64
		own      time.Duration
		doubted  bool
	}{
		{"few hits", 100 * time.Millisecond, nil, 3, 900 * time.Millisecond, false},
		{"few hits in few windows", 100 * time.Millisecond, nil, 2, 900 * time.Millisecond, true},
		{"few hits, and sites are counted", 100 * time.Millisecond, rated, 3,
			900 * time.Millisecond, false},
		{"many hits", 400 * time.Millisecond, nil, 3, 600 * time.Millisecond, false},
		{"many hits in few windows", 400 * time.Millisecond, nil, 2, 600 * time.Millisecond, true},
		{"hits most of the time", 900 * time.Millisecond, nil, 3, 100 * time.Millisecond, true},
		{"nothing else", time.Second, nil, 3, 0, true},
		{"hits most of the time, and sites are counted", 900 * time.Millisecond, rated, 2,
			30 * time.Millisecond, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := NewScheduler(0.05, Limits{Window: usualWindow, Stall: time.Second}, target.Times{},
				1, c.controls)
			p.closed = c.closed
			p.account.inWindows = tracedUse{target.Times{CPU: time.Second}, NewHitCost(c.hits, 0),
				time.Second}
			p.account.all = tracedUse{target.Times{CPU: 10 * time.Second}, NewHitCost(c.hits, 0),
				10 * time.Second}
			windows, x := p.Sampled(KernelShare{})
			own := float64(c.own)
			if want := own / (own + 9e9); windows != c.closed || math.Abs(x.Share-want) > 0.0015 ||
				x.Most < want || x.Least > want || (x.Least == 0) != c.doubted {
				t.Errorf("%d windows, %+v of it; want %v", windows, x, want)
			}
		})
	}
}

// TestCostlyWindows: of a process that does little, what hits by calibration leave of its CPU time
// in windows may be hits that are costlier, and what they leave while probes go in and out is. One
// in a thousand of what it did was taken for 35 % of it, or all.
func TestCostlyWindows(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name                 string
		inWindows, inChanges tracedUse // of 3 s, in which it used 60 ms besides
		least, most          float64   // what may be known of the most that windows are
	}{
		{"single-stepped", tracedUse{target.Times{CPU: 140 * ms}, NewHitCost(0, 90*ms), 20 * ms},
			tracedUse{}, 0.5, 0.8},
		{"emulated", tracedUse{target.Times{CPU: 110 * ms}, NewHitCost(32*ms, 0), 20 * ms},
			tracedUse{target.Times{CPU: 850 * ms}, NewHitCost(240*ms, 0), 200 * ms}, 0.5, 0.8},
		// which the little that hits cost by calibration does not show: totals were 218 times off
		{"few hits, many probes", tracedUse{target.Times{CPU: 35 * ms}, NewHitCost(ms/10, 0),
			20 * ms}, tracedUse{}, 0.3, 0.5},
	} {
		p := NewScheduler(0.05, Limits{Window: usualWindow, Stall: time.Second}, target.Times{}, 1,
			nil)
		p.closed, p.account.all, p.account.inWindows, p.account.inChanges =
			1, tracedUse{target.Times{CPU: 60 * ms}, HitCost{}, 3 * time.Second}, c.inWindows,
			c.inChanges
		p.account.all.add(c.inWindows)
		p.account.all.add(c.inChanges)
		if _, x := p.Sampled(KernelShare{}); x.Least != 0 || x.Most < x.Share || x.Most < c.least ||
			x.Most > c.most {
			t.Errorf("%s: %+v", c.name, x)
		}
	}
}

// TestSingleStepsAreTheWindows: which hits were single-stepped is known only when they have been
// read, as a window's probes are being taken out: it is not the taking out that they have cost.
func TestSingleStepsAreTheWindows(t *testing.T) {
	const ms = time.Millisecond
	p := NewScheduler(0.05, Limits{Window: usualWindow, Stall: time.Second}, target.Times{}, 1, nil)
	closed := Reading{Hits: NewHitCost(ms, 0), N: 2000}
	p.account.inWindows.hits = closed.Hits
	late := NewHitCost(0, 30*ms)
	p.account.last = Reading{Hits: closed.Hits.Plus(late), N: 2500}
	p.account.inChanges.hits = late
	p.account.apportion(Reading{}, closed, p.account.last)
	if in, out := p.account.inWindows.hits.Cost, p.account.inChanges.hits.Cost; in+out != 31*ms ||
		in != 31*ms*4/5 {
		t.Errorf("%v to the window, %v to its end", in, out)
	}
}

// TestHitsTakeNoMoreThanThereWas: those of a window are charged with no more CPU time than was used
// while its probes stood, though single-stepped ones are known to have been that only when the
// process has run on.
func TestHitsTakeNoMoreThanThereWas(t *testing.T) {
	const ms = time.Millisecond
	for _, hits := range []time.Duration{10 * ms, 40 * ms} {
		all := NewHitCost(hits, 0)
		want := min(all.Cost+all.doubt, 23*ms)
		p := NewScheduler(0.05, Limits{Window: usualWindow, Stall: time.Second}, target.Times{}, 1,
			nil)
		used, n := time.Duration(0), uint64(0)
		use := func(cpu, hits time.Duration, more uint64) {
			used, n = used+cpu, n+more
			p.Charge(Reading{At: time.Now(), Used: target.Times{CPU: used},
				Hits: p.account.last.Hits.Plus(NewHitCost(hits, 0)), N: n})
		}
		p.Open()
		use(20*ms, 4*ms, 4000)
		change := p.BeginChange()
		use(3*ms, ms, 1000)
		p.EndChange(change)
		p.ChargeChange(change, 1, attach.Changes{})
		p.Close()
		use(50*ms, hits-5*ms, 0) // now they are known
		p.Settle()
		if got := p.budget.total.Probes; got != want {
			t.Errorf("hits of %v in 23 ms: %v, not %v", hits, got, want)
		}
		if all := p.budget.total.Own + p.budget.total.Probes; all != 73*ms {
			t.Errorf("of 73 ms, %v are accounted for", all)
		}
	}
}

// TestDebtOfAttachingIsPaidOff: what putting probes in has cost is no reason to take them out, as
// long as hits let it be paid off.
func TestDebtOfAttachingIsPaidOff(t *testing.T) {
	const own = 100 * time.Millisecond
	p := NewScheduler(0.05, Limits{Window: usualWindow, Stall: time.Second}, target.Times{}, 1, nil)
	p.budget.account(use{Probes: time.Second})
	p.turn()
	for i, c := range []struct {
		hits   time.Duration
		deeper bool
	}{{0, false}, {time.Millisecond, false}, {own, true}} {
		p.budget.account(use{Own: own, Probes: c.hits})
		if got := p.deeper(); got != c.deeper {
			t.Errorf("step %d: deeper in debt: %v, %v", i, got, p.budget.debt())
		}
	}
	p = NewScheduler(0.05, Limits{Window: usualWindow, Stall: time.Second}, target.Times{}, 1, nil)
	p.turn()
	if p.deeper() {
		t.Error("in debt at first")
	}
	p.budget.account(use{Own: own, Probes: own})
	if !p.deeper() {
		t.Error("hits have cost twenty times what was earned, and it is in no debt")
	}
}

// TestNextWindow: when the next window comes follows from the load that the process has.
func TestNextWindow(t *testing.T) {
	for _, c := range []struct {
		probes time.Duration // what they have taken
		load   float64
		want   float64 // seconds
	}{
		{50 * time.Millisecond, 1, 0.9},
		{355 * time.Millisecond, 1, 7},
		{355 * time.Millisecond, 0.5, 14},
		{105 * time.Millisecond, 0, 200},
	} {
		p := NewScheduler(0.05, Limits{Window: usualWindow, Stall: time.Second}, target.Times{},
			c.load, nil)
		p.budget.account(use{Probes: c.probes})
		if got := p.Wait().Seconds(); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%v at load %v: %v s, want %v", c.probes, c.load, got, c.want)
		}
	}
}

// TestMayTryAgain: chance meetings with another's windows do not end a recording, however far
// apart: a window that opens begins the count anew. A recording that never gets its turn ends.
func TestMayTryAgain(t *testing.T) {
	p := NewScheduler(0.05, Limits{Window: usualWindow, Stall: time.Second}, target.Times{}, 1, nil)
	for range 3 {
		for i := 1; i < mostBarred; i++ {
			if !p.MayTryAgain() {
				t.Fatalf("given up after %d times", i)
			}
		}
		p.Open()
		p.Close()
	}
	for range mostBarred - 1 {
		p.MayTryAgain()
	}
	if p.MayTryAgain() {
		t.Error("it is tried for ever")
	}
}

// TestHeldUp: a window holds the process up while its probes go in and out, and for its hits, but
// for no longer than it lasts.
func TestHeldUp(t *testing.T) {
	const ms = time.Millisecond
	p := NewScheduler(0.05, Limits{Window: usualWindow, Stall: time.Second}, target.Times{}, 1, nil)
	for i, c := range []struct{ in, lasts, hits, out, want time.Duration }{
		{3 * ms, 20 * ms, 10 * ms, 2 * ms, 15 * ms},
		{3 * ms, 20 * ms, 40 * ms, 2 * ms, 25 * ms}, // of several threads
		{ms, 10 * ms, 0, ms, 25 * ms},
	} {
		p.ChargeChange(p.BeginChange(), 1, attach.Changes{Probes: 1, Took: c.in})
		p.Open()
		p.account.last.At = p.account.last.At.Add(c.lasts)
		p.account.last.Hits.Cost += c.hits
		change := p.BeginChange()
		p.Close()
		p.ChargeChange(change, 1, attach.Changes{Probes: 1, Took: c.out})
		if got := p.HeldUp(); got != c.want {
			t.Errorf("window %d: held up for %v, want %v", i, got, c.want)
		}
	}
}
