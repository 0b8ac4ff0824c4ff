package recordreport

import (
	"strings"
	"testing"
	"time"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/samples"
	"wpptrace/internal/record"
	"wpptrace/loader/attach"
)

// TestLosses: each cause is named with what helps against it, and only that.
func TestLosses(t *testing.T) {
	for _, c := range []struct {
		m     attach.Metrics
		stops bool
		want  string
		lost  bool
	}{
		{attach.Metrics{}, false, "lost: 0 events", false},
		{attach.Metrics{LostHits: 5, LostBatches: 2}, false,
			"lost: 5 events in 2 places, where the ring buffer was full: use a larger " +
				"--ring-size than 4K, or --on-overflow stop", true},
		{attach.Metrics{LostHits: 5}, true,
			"lost: 5 events in 2 places, where the ring buffer was full, and the process was not " +
				"to be stopped, somebody let it go on (a debugger, strace, SIGCONT), or " +
				"thousands of threads ended at once: use a larger --ring-size than 4K", true},
		{attach.Metrics{LostHits: 5, LostByWhom: 1}, false,
			"lost: 5 events in 2 places or more, too many threads to know of each what it lost, " +
				"where the ring buffer was full: use a larger --ring-size than 4K, or " +
				"--on-overflow stop", true},
		{attach.Metrics{LostHits: 1, Dropped: 1}, true,
			"lost: 1 events in 2 places, where the kernel could not read what a jump of the " +
				"program was about to read, " +
				"in a page that was not in memory (swapped out, or never touched before): record " +
				"again, or leave the routine out with -N", true},
		{attach.Metrics{LostHits: 5, Dropped: 1}, false,
			"lost: 5 events in 2 places: 1 where the kernel could not read what a jump of the " +
				"program was about to read, " +
				"in a page that was not in memory (swapped out, or never touched before): record " +
				"again, or leave the routine out with -N; " +
				"the others where the ring buffer was full: use a larger --ring-size than 4K, or " +
				"--on-overflow stop", true},
		{attach.Metrics{NoStorage: 3}, false, "lost: 3 events for which the kernel had no " +
			"memory", true},
	} {
		if got, lost := Losses(record.Losses{Events: c.m.LostHits, Places: 2, Metrics: c.m},
			4096, c.stops); got != c.want || lost != c.lost {
			t.Errorf("%+v: %q, %v; want %q", c.m, got, lost, c.want)
		}
	}
}

// TestLive: with windows the live line says how many there were, how much of the budget is used
// and what is hot so far.
func TestLive(t *testing.T) {
	l := Live{Budget: 0.05}
	s := record.Status{Duration: 5 * time.Second, Paths: 16400, Windows: 15, Overhead: 0.0512,
		Hottest:      "std::vector<int, std::allocator<int> >::push_back",
		HottestShare: samples.Share{Samples: 81, Of: 1000}}
	const want = "5s  15 windows  16.4k paths  overhead 5.12% of 5%  lost 0  hottest "
	const widest = 100
	if got := l.Line(s, time.Second); len(got) > widest || !strings.HasPrefix(got, want) ||
		!strings.HasSuffix(got, " 8%") {
		t.Errorf("%q, want %q...", got, want)
	}
}

// TestElsewhere: a routine of the program that was left out may have used the time. It was said
// to be the kernel's or the libraries'.
func TestElsewhere(t *testing.T) {
	const leftOut = "the 3 routines of the program that are left out (wpptrace plan -v lists " +
		"them), or to the kernel"
	for _, c := range []struct {
		leftOut   int
		needed    []string
		libraries bool
		want      string
	}{
		{3, nil, false, leftOut},
		{3, []string{"a.so", "b.so"}, false, leftOut + ", or to shared libraries: --lib traces " +
			"those, as a.so, b.so"},
		{3, []string{"a.so"}, true, leftOut + ", or to shared libraries"},
		{0, []string{"a.so"}, true, "the kernel, or to shared libraries"},
	} {
		if got := elsewhereText(c.leftOut, c.needed, c.libraries); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestNextWindow: when the next window comes is said where it is worth waiting for.
func TestNextWindow(t *testing.T) {
	for _, c := range []struct {
		wait, left time.Duration
		want       string
	}{
		{900 * time.Millisecond, 0, ""},
		{900 * time.Millisecond, 1, ""},
		{7 * time.Second, 0, ", the next in some 7 s"},
		{14 * time.Second, 20 * time.Second, ", the next in some 14 s"},
		{14 * time.Second, 10 * time.Second, ", the next in some 14 s at its present load, when " +
			"-d is over"},
	} {
		if got := NextWindow(c.wait, c.left); got != c.want {
			t.Errorf("%v of %v: %q, want %q", c.wait, c.left, got, c.want)
		}
	}
}

// A share of next to no CPU time is said to be one.
func TestOverheadOfAnIdleProcess(t *testing.T) {
	for used, want := range map[time.Duration]string{
		0:                      "tracing took 50% more\n",
		18 * time.Millisecond:  "tracing took 50% more, of 12 ms of CPU time\n",
		150 * time.Microsecond: "tracing took 50% more, of 0.1 ms of CPU time\n",
		90 * time.Second:       "tracing took 50% more\n",
	} {
		got := printed(Windows(&record.Result{Snapshot: &wpp.Snapshot{
			Figures: wpp.Figures{Windows: 9}}, CPUTime: used, Overhead: 0.5}))
		if !strings.Contains(got, want) {
			t.Errorf("of %v: %q, not %q", used, got, want)
		}
	}
}

// A recording in windows says how long one has held the process up; one of which that is not known
// does not.
func TestHeldUp(t *testing.T) {
	for most, want := range map[time.Duration]string{
		0:                        "tracing took 50% more\n",
		14500 * time.Microsecond: "tracing took 50% more, and held it up for 14.5 ms at a time at most\n",
	} {
		got := printed(Windows(&record.Result{Snapshot: &wpp.Snapshot{
			Figures: wpp.Figures{Windows: 9, HeldUp: most}}, Overhead: 0.5}))
		if !strings.Contains(got, want) {
			t.Errorf("held up for %v: %q, not %q", most, got, want)
		}
	}
}

// Few windows are said to show little.
func TestFewWindows(t *testing.T) {
	for windows, want := range map[uint64]string{
		0: "",
		1: "traced in 1 window, 50% of its own CPU time; tracing took 0% more\n" +
			"so few show little ",
		4: "traced in 4 windows, 50% of its own CPU time; tracing took 0% more\n" +
			"so few show little ",
		5: "traced in 5 windows, 50% of its own CPU time; tracing took 0% more\n",
		8: "traced in 8 windows, 50% of its own CPU time; tracing took 0% more\n" +
			"3 of them begin where it wakes up, or may: ",
	} {
		begunAsleep := windows / 4
		if windows == 8 {
			begunAsleep++
		}
		figures := wpp.Figures{Windows: windows, Sampled: 0.5, SampledLeast: 0.5,
			SampledMost: 0.5}
		got := printed(Windows(&record.Result{Snapshot: &wpp.Snapshot{Figures: figures},
			Asleep: begunAsleep}))
		if !strings.HasPrefix(got, want) || strings.Contains(got,
			"so few") != strings.Contains(want, "so few") || want == "" && got != "" {
			t.Errorf("%d windows: printed %q", windows, got)
		}
	}
}

// printed are messages as they are printed.
func printed(messages []string) (text string) {
	for _, m := range messages {
		text += m + "\n"
	}
	return text
}
