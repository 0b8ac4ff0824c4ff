package main

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

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
		nature     nature
		low, high  float64
	}{
		{"no hits", 900 * ms, 0, nature{true, 0.1}, 1, 1.1},
		{"true 2.0", 549 * ms, 500 * ms, nature{true, 0.01}, 1.7, 2.3},
		{"true 9.4", 180 * ms, 900 * ms, nature{true, 0.03}, 6, 15},
		{"true 9.4, hits taken for dearer than they are", 180 * ms, 1100 * ms, nature{true, 0.03}, 6, 25},
		{"true 49", 113 * ms, 950 * ms, nature{true, 0.3}, 25, 100},
		{"true 123", 95 * ms, 990 * ms, nature{true, 0.3}, 40, 100},
		{"true 13.6, mostly system calls", 122 * ms, 920 * ms, nature{true, 2.3}, 7, 20},
		{"nothing known of before", 300 * ms, 600 * ms, nature{}, 2.4, 2.6},
		{"nothing known of before, all hits", 95 * ms, 1200 * ms, nature{}, 100, 100},
	} {
		e := c.nature.estimate(target.Times{CPU: time.Second, User: c.user}, tollOf(c.hits, 0))
		if got := e.slower(); got < c.low || got > c.high {
			t.Errorf("%s: %.1f, want %v to %v", c.what, got, c.low, c.high)
		}
		if most := e.atMost(); e.atLeast() > e.slower() || e.atLeast() < 1 || most > 0 && most < e.slower() {
			t.Errorf("%s: at least %.1f, at most %.1f of %.1f", c.what, e.atLeast(), most, e.slower())
		}
	}
	if got := (nature{}).estimate(target.Times{}, toll{}).slower(); got != 1 {
		t.Errorf("of nothing: %v", got)
	}
}

// TestTicksAreNoSlowDown: what the clock tick happens to meet in user mode, of a process that has
// used a few ticks of CPU time, is not known to be its own.
func TestTicksAreNoSlowDown(t *testing.T) {
	const ms = time.Millisecond
	for _, n := range []nature{{}, {true, 0.1}} {
		used := target.Times{CPU: 16 * ms, User: 10 * ms}
		if e := n.estimate(used, tollOf(15500*time.Microsecond, 0)); !e.vague() || e.slower() < 4 {
			t.Errorf("%+v: %s", n, e.tellLikely())
		}
	}
}

// TestFewHitsTellLittle: of a process that ran for 2 ms after probes had been put in, most of that
// was not its own, but followed from it.
func TestFewHitsTellLittle(t *testing.T) {
	used := target.Times{CPU: 1800 * time.Microsecond}
	if e := (nature{}).estimate(used, tollOf(740*time.Microsecond, 0)); !e.vague() {
		t.Errorf("%s, and it was 8", e.tellLikely())
	}
	if e := (nature{}).estimate(used, tollOf(2*time.Microsecond, 0)); e.vague() || e.slower() > 1.01 {
		t.Errorf("%s by two hits", e.tellLikely())
	}
}

// TestHitTimeIsWithinCPUTime: a hit has taken what was charged for it on average, and hits no more
// than all CPU time.
func TestHitTimeIsWithinCPUTime(t *testing.T) {
	g := &gauge{cost: attach.Cost{Emulated: 500, Stepped: 20 * time.Microsecond}}
	if got := g.hitTime(time.Second, 0); got != 0 {
		t.Errorf("%v, before there was one", got)
	}
	g.charge(1050, 50)
	g.cost.Emulated = 1500 // for a moment
	g.charge(1100, 50)
	for _, c := range []struct{ cpu, hits, want time.Duration }{
		{time.Second, time.Millisecond, 547},
		{time.Millisecond, 2 * time.Millisecond, 273}, // of a recording that began later than the probes were hit
	} {
		if got := g.hitTime(c.cpu, c.hits); got != c.want {
			t.Errorf("%v of %v: %v, want %v", c.hits, c.cpu, got, c.want)
		}
	}
}

// Hits are charged by class, what was charged stays charged, and counts that fall back for once do
// no harm.
func TestGaugeCharges(t *testing.T) {
	g := &gauge{cost: attach.Cost{Emulated: time.Microsecond, Stepped: 20 * time.Microsecond}}
	for _, c := range []struct {
		hits, stepped uint64
		want          time.Duration
	}{
		{100, 0, 100 * time.Microsecond},
		{200, 50, 100*time.Microsecond + 50*time.Microsecond + 1000*time.Microsecond},
		{150, 40, 1150 * time.Microsecond},
		{210, 50, 1160 * time.Microsecond},
	} {
		if got := g.add(target.Times{CPU: time.Second}, c.hits, c.stepped, 0).hits.cost; got != c.want {
			t.Errorf("%d hits, %d single-stepped: %v, want %v", c.hits, c.stepped, got, c.want)
		}
	}
}

// A process is let go of when a whole window is beyond the limit, or before where there is no
// doubt.
func TestGaugeExceeds(t *testing.T) {
	const ms = time.Millisecond
	begin := time.Now()
	at := func(after, cpu, user, hits time.Duration) sample {
		return sample{begin.Add(after), target.Times{CPU: cpu, User: user}, tollOf(hits, 0)}
	}
	none := at(0, 0, 0, 0)
	for _, c := range []struct {
		what    string
		samples []sample
		want    bool
	}{
		{"no sample", nil, false},
		{"idle", []sample{none, at(1100*ms, 20*ms, 2*ms, 19*ms)}, false},
		{"slow beyond doubt", []sample{none, at(300*ms, 300*ms, 30*ms, 300*ms)}, true},
		{"slow with a doubt", []sample{none, at(300*ms, 300*ms, 50*ms, 280*ms)}, false},
		{"slow with a doubt over a window", []sample{none, at(1000*ms, 1000*ms, 165*ms, 935*ms)}, true},
		{"hardly slow", []sample{none, at(1000*ms, 1000*ms, 600*ms, 400*ms)}, false},
	} {
		g := &gauge{nature: nature{true, 0}, samples: c.samples}
		if e, got := g.exceeds(10); got != c.want {
			t.Errorf("%s: %v, estimate %+v", c.what, got, e)
		}
	}
}

// TestGaugeOfWhatWaits: a process that had less than a fifth of a CPU was never found to be slowed down,
// for of no second did anything follow.
func TestGaugeOfWhatWaits(t *testing.T) {
	for _, c := range []struct {
		share float64 // of the time that it runs
		after time.Duration
	}{
		{1, 200 * time.Millisecond},
		{0.07, 3 * time.Second},
		{0.01, 20 * time.Second},
		{0.001, 0}, // never
	} {
		g := &gauge{nature: nature{known: true}}
		begin, after := time.Now(), time.Duration(0)
		for at := time.Duration(0); at < 3*time.Minute; at += samplePause {
			ran := time.Duration(c.share * float64(at))
			g.keep(sample{begin.Add(at), target.Times{CPU: ran, User: ran / 40}, tollOf(ran*39/40, 0)})
			if _, over := g.exceeds(10); over && after == 0 {
				after = at
			}
		}
		if after != c.after {
			t.Errorf("one that runs for %v of the time is let go of after %v, want %v", c.share, after, c.after)
		}
		if most := int(longestGauged/samplePause) + 2; len(g.samples) > most {
			t.Errorf("%d samples are kept, %d at most will do", len(g.samples), most)
		}
	}
}

// TestGaugeExceedsByForecast: a process that was slowed down 5,000 times was never found to be slowed
// down more than 100 times, for what the hits leave of its time tells no more.
func TestGaugeExceedsByForecast(t *testing.T) {
	const ms, forecast = time.Millisecond, 1500
	begin := time.Now()
	for _, c := range []struct {
		what       string
		user, hits time.Duration // of a second
		nature     nature
		most       float64
		want       bool
	}{
		{"hits take all", 80 * ms, 940 * ms, nature{true, 0}, 200, true},
		{"hits take all, and more is allowed", 80 * ms, 940 * ms, nature{true, 0}, 2000, false},
		{"hits take all, of a program that is mostly in the kernel", 80 * ms, 940 * ms, nature{true, 9}, 200, false},
		{"a fifth is left", 300 * ms, 800 * ms, nature{true, 0}, 200, false},
		{"nobody knows what is left", 0, 900 * ms, nature{}, 200, false},
	} {
		g := &gauge{nature: c.nature, forecast: forecast, samples: []sample{{at: begin}, {begin.Add(window), target.Times{CPU: window, User: c.user}, tollOf(c.hits, 0)}}}
		if e, got := g.exceeds(c.most); got != c.want {
			t.Errorf("%s: %v, estimate %+v", c.what, got, e)
		}
	}
}

// A status line is shown where stderr is a terminal, and taken away at the end.
func TestStatusLine(t *testing.T) {
	s := startServer(t)
	if _, err := fmt.Fprintln(s.in, 1<<40); err != nil { // it never answers: the test's end is its end
		t.Fatal(err)
	}
	command := "wpptrace -p " + strconv.Itoa(s.pid()) + " -d 2500ms --max-slowdown 0 -o " + t.TempDir() + "/x.wpp"
	out, err := exec.Command("script", "-qec", command, "/dev/null").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text := string(out)
	for _, want := range []string{" paths/s  ring ", " rules  ratio ", "  lost 0", "\r\x1b[K"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	if _, after, _ := strings.Cut(text, "wpptrace: 2.5s are over"); strings.Contains(after, "paths/s") {
		t.Errorf("the line stays: %q", text)
	}
	s.isClean()
}

// Messages have lines of their own.
func TestMessagesBesideStatusLine(t *testing.T) {
	var out strings.Builder
	l := newStatusLine(&out, false)
	log := newLog(l, true)
	l.width = func() int { return 40 }
	for range 2 {
		l.replace("1s  5 paths/s")
		log.Info("met")
	}
	text := out.String()
	if strings.Count(text, "\r\x1b[K1s  5 paths/s\r\x1b[Ktime=") != 2 || !strings.HasSuffix(text, "msg=met\n") {
		t.Errorf("%q", text)
	}
}

func TestShort(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 999: "999", 1000: "1.0k", 12345: "12.3k", 123456: "123k", 2.5e6: "2.5M", 7e9: "7.0G", 3e12: "3T"} {
		if got := short(n); got != want {
			t.Errorf("%v: %s, want %s", n, got, want)
		}
	}
}

// Where the hits leave hardly anything that could be told from the error, only the least is told.
func TestVagueSlowDown(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		user, hits time.Duration // of 1 s
		nature     nature
		want       string
	}{
		{900 * ms, 100 * ms, nature{true, 0.1}, "1.1 times"},
		{0, 900 * ms, nature{}, "at least 4.2 times"},
	} {
		if got := c.nature.estimate(target.Times{CPU: time.Second, User: c.user}, tollOf(c.hits, 0)).tell(); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestElsewhere: most of the CPU time went to code that is not observed, beyond doubt.
func TestElsewhere(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name         string
		own          time.Duration
		instructions uint64
		want         bool
	}{
		{"hardly any observed instruction ran", 300 * ms, 2000, true},
		{"twice as much as slow instructions take", 300 * ms, 15_000_000, true},
		{"slow instructions may have been all", 300 * ms, 30_000_000, false},
		{"more instructions than nanoseconds", 300 * ms, 1 << 63, false},
	} {
		if got := isElsewhere(c.own, c.instructions); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
