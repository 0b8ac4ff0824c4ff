package overhead

import (
	"testing"
	"time"

	"wpptrace/compress/wpp/samples"
	"wpptrace/loader/attach"
	"wpptrace/loader/target"
)

// What was measured (CPU and user time in a second, hits by calibration, the nature before) beside
// the slow-down that was true by a count of the work done.
func TestEstimate(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		what       string
		user, hits time.Duration // of 1 s
		share      KernelShare
		low, high  float64
	}{
		{"no hits", 900 * ms, 0, KernelShare{true, 0.1}, 1, 1.1},
		{"true 2.0", 549 * ms, 500 * ms, KernelShare{true, 0.01}, 1.7, 2.3},
		{"true 9.4", 180 * ms, 900 * ms, KernelShare{true, 0.03}, 6, 15},
		{"true 9.4, hits taken for dearer than they are", 180 * ms, 1100 * ms,
			KernelShare{true, 0.03}, 6, 25},
		{"true 49", 113 * ms, 950 * ms, KernelShare{true, 0.3}, 25, 100},
		{"true 123", 95 * ms, 990 * ms, KernelShare{true, 0.3}, 40, 100},
		{"true 13.6, mostly system calls", 122 * ms, 920 * ms, KernelShare{true, 2.3}, 7, 20},
		{"nothing known of before", 300 * ms, 600 * ms, KernelShare{}, 2.4, 2.6},
		{"nothing known of before, all hits", 95 * ms, 1200 * ms, KernelShare{}, 100, 100},
	} {
		e := c.share.Estimate(target.Times{CPU: time.Second, User: c.user}, NewHitCost(c.hits, 0))
		if got := e.Slower(); got < c.low || got > c.high {
			t.Errorf("%s: %.1f, want %v to %v", c.what, got, c.low, c.high)
		}
		if most := e.AtMost(); e.AtLeast() > e.Slower() || e.AtLeast() < 1 ||
			most > 0 && most < e.Slower() {
			t.Errorf("%s: at least %.1f, at most %.1f of %.1f", c.what, e.AtLeast(), most,
				e.Slower())
		}
	}
	if got := (KernelShare{}).Estimate(target.Times{}, HitCost{}).Slower(); got != 1 {
		t.Errorf("of nothing: %v", got)
	}
}

// TestTicksAreNoSlowDown: what the clock tick happens to meet in user mode, of a process that has
// used a few ticks of CPU time, is not known to be its own.
func TestTicksAreNoSlowDown(t *testing.T) {
	const ms = time.Millisecond
	for _, n := range []KernelShare{{}, {true, 0.1}} {
		used := target.Times{CPU: 16 * ms, User: 10 * ms}
		if e := n.Estimate(used, NewHitCost(15500*time.Microsecond, 0)); !e.Vague() ||
			e.Slower() < 4 {
			t.Errorf("%+v: %+v", n, e)
		}
	}
}

// TestFewHitsShowLittle: of a process that ran for 2 ms after probes had been put in, most of that
// was not its own, but followed from it.
func TestFewHitsShowLittle(t *testing.T) {
	used := target.Times{CPU: 1800 * time.Microsecond}
	if e := (KernelShare{}).Estimate(used, NewHitCost(740*time.Microsecond, 0)); !e.Vague() {
		t.Errorf("%+v, and it was 8", e)
	}
	if e := (KernelShare{}).Estimate(used, NewHitCost(2*time.Microsecond, 0)); e.Vague() ||
		e.Slower() > 1.01 {
		t.Errorf("%+v by two hits", e)
	}
}

// TestHitTimeIsWithinCPUTime: a hit has taken what was charged for it on average, and hits no more
// than all CPU time.
func TestHitTimeIsWithinCPUTime(t *testing.T) {
	g := &Meter{cost: attach.Cost{Emulated: 500, Stepped: 20 * time.Microsecond}}
	if got := g.HitTime(time.Second, 0); got != 0 {
		t.Errorf("%v, before there was one", got)
	}
	g.Charge(1050, 50)
	g.cost.Emulated = 1500 // for a moment
	g.Charge(1100, 50)
	for _, c := range []struct{ cpu, hits, want time.Duration }{
		{time.Second, time.Millisecond, 547},
		// of a recording that began later than the probes were hit
		{time.Millisecond, 2 * time.Millisecond, 273},
	} {
		if got := g.HitTime(c.cpu, c.hits); got != c.want {
			t.Errorf("%v of %v: %v, want %v", c.hits, c.cpu, got, c.want)
		}
	}
}

// Hits are charged by class, what was charged stays charged, and counts that fall back for once do
// no harm.
func TestMeterCharges(t *testing.T) {
	g := &Meter{cost: attach.Cost{Emulated: time.Microsecond, Stepped: 20 * time.Microsecond}}
	for _, c := range []struct {
		hits, stepped uint64
		want          time.Duration
	}{
		{100, 0, 100 * time.Microsecond},
		{200, 50, 100*time.Microsecond + 50*time.Microsecond + 1000*time.Microsecond},
		{150, 40, 1150 * time.Microsecond},
		{210, 50, 1160 * time.Microsecond},
	} {
		if got := g.Add(target.Times{CPU: time.Second}, c.hits, c.stepped,
			0).Hits.Cost; got != c.want {
			t.Errorf("%d hits, %d single-stepped: %v, want %v", c.hits, c.stepped, got, c.want)
		}
	}
}

// A process is let go of when a whole window is beyond the limit, or before where there is no
// doubt.
func TestMeterExceeds(t *testing.T) {
	const ms = time.Millisecond
	begin := time.Now()
	at := func(after, cpu, user, hits time.Duration) Sample {
		return Sample{begin.Add(after), target.Times{CPU: cpu, User: user}, NewHitCost(hits, 0)}
	}
	none := at(0, 0, 0, 0)
	for _, c := range []struct {
		what    string
		samples []Sample
		want    bool
	}{
		{"no sample", nil, false},
		{"idle", []Sample{none, at(1100*ms, 20*ms, 2*ms, 19*ms)}, false},
		{"slow beyond doubt", []Sample{none, at(300*ms, 300*ms, 30*ms, 300*ms)}, true},
		{"slow with a doubt", []Sample{none, at(300*ms, 300*ms, 50*ms, 280*ms)}, false},
		{"slow with a doubt over a window", []Sample{none, at(1000*ms, 1000*ms, 165*ms, 935*ms)},
			true},
		{"hardly slow", []Sample{none, at(1000*ms, 1000*ms, 600*ms, 400*ms)}, false},
	} {
		g := &Meter{KernelShare: KernelShare{true, 0}, samples: c.samples}
		if e, got := g.Exceeds(10); got != c.want {
			t.Errorf("%s: %v, estimate %+v", c.what, got, e)
		}
	}
}

// TestMeterOfWhatWaits: a process that had less than a fifth of a CPU was never found to be slowed
// down, for of no second did anything follow.
func TestMeterOfWhatWaits(t *testing.T) {
	for _, c := range []struct {
		share float64 // of the time that it runs
		after time.Duration
	}{
		{1, 200 * time.Millisecond},
		{0.07, 3 * time.Second},
		{0.01, 20 * time.Second},
		{0.001, 0}, // never
	} {
		g := &Meter{KernelShare: KernelShare{known: true}}
		begin, after := time.Now(), time.Duration(0)
		for at := time.Duration(0); at < 3*time.Minute; at += SamplePause {
			ran := time.Duration(c.share * float64(at))
			g.keep(Sample{begin.Add(at), target.Times{CPU: ran, User: ran / 40},
				NewHitCost(ran*39/40, 0)})
			if _, over := g.Exceeds(10); over && after == 0 {
				after = at
			}
		}
		if after != c.after {
			t.Errorf("one that runs for %v of the time is let go of after %v, want %v", c.share,
				after, c.after)
		}
		if most := int(longestGauged/SamplePause) + 2; len(g.samples) > most {
			t.Errorf("%d samples are kept, %d at most will do", len(g.samples), most)
		}
	}
}

// TestMeterExceedsByForecast: a process that was slowed down 5,000 times was never found to be
// slowed down more than 100 times, for what the hits leave of its time shows no more.
func TestMeterExceedsByForecast(t *testing.T) {
	const ms, forecast = time.Millisecond, 1500
	begin := time.Now()
	for _, c := range []struct {
		what       string
		user, hits time.Duration // of a second
		share      KernelShare
		most       float64
		want       bool
	}{
		{"hits take all", 80 * ms, 940 * ms, KernelShare{true, 0}, 200, true},
		{"hits take all, and more is allowed", 80 * ms, 940 * ms, KernelShare{true, 0}, 2000,
			false},
		{"hits take all, of a program that is mostly in the kernel", 80 * ms, 940 * ms,
			KernelShare{true, 9}, 200, false},
		{"a fifth is left", 300 * ms, 800 * ms, KernelShare{true, 0}, 200, false},
		{"nobody knows what is left", 0, 900 * ms, KernelShare{}, 200, false},
		{"samples are in its code", 80 * ms, 940 * ms, KernelShare{known: true}, 200, true},
		{"samples are elsewhere", 80 * ms, 940 * ms, KernelShare{known: true}, 200, false},
	} {
		traced := map[string]samples.Share{"samples are in its code": {Samples: 50, Of: 100},
			"samples are elsewhere": {Samples: 5, Of: 100}}[c.what]
		g := &Meter{KernelShare: c.share, Forecast: forecast, Traced: traced,
			samples: []Sample{{at: begin},
				{begin.Add(window), target.Times{CPU: window, User: c.user},
					NewHitCost(c.hits, 0)}}}
		if e, got := g.Exceeds(c.most); got != c.want {
			t.Errorf("%s: %v, estimate %+v", c.what, got, e)
		}
	}
}
