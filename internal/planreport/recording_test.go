package planreport

import (
	"os"
	"strings"
	"testing"

	"wpptrace/compress/wpp/samples"
	"wpptrace/internal/record"
	"wpptrace/internal/record/overhead"
	"wpptrace/internal/traced"
	"wpptrace/loader/attach"
	"wpptrace/loader/plan"
)

func TestForecast(t *testing.T) {
	f, err := os.Open("/bin/bash")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := traced.Load(f, "bash", traced.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	all := overhead.NewForecast(p.Plan, attach.TypicalCost(), false)
	if hits := all.Emulated + all.Stepped; hits < 0.02 || hits > 0.6 {
		t.Errorf("%.3f hits an instruction", hits)
	}
	if usual, most := all.SlowDown(overhead.UsualTime), all.SlowDown(overhead.LeastTime); usual <
		20 || usual > 500 || most < 8*usual {
		t.Errorf("slow-down %.1f, at most %.1f", usual, most)
	}
	lines := strings.Join(Forecast(record.Forecast{Forecast: all}, 0), "\n")
	if !strings.HasSuffix(lines, "at its present load, 0% of a CPU: some 1.0 times") {
		t.Errorf("of an idle process: %s", lines)
	}
	some := overhead.NewForecast(p.Plan, attach.TypicalCost(), true)
	lines = strings.Join(Forecast(record.Forecast{Forecast: some, Load: 0.5}, 0), "\n")
	if !strings.Contains(lines, "while it runs these routines alone") ||
		strings.Contains(lines, "at its present load") {
		t.Errorf("of some routines: %s", lines)
	}
	// samples show how much of its time is that of traced routines, selected or all
	for _, f := range []overhead.Forecast{some, all} {
		lines = strings.Join(Forecast(record.Forecast{Forecast: f, Load: 0.5,
			Traced: samples.Share{Samples: 20, Of: 100}}, 0), "\n")
		if !strings.Contains(lines, "50% of a CPU, 20% of it in traced routines: some ") {
			t.Error(lines)
		}
	}
}

// What attaching alone costs a large program that is at work is printed before.
func TestLargePlanIsWarnedOf(t *testing.T) {
	for _, c := range []struct {
		probes int
		load   float64
		want   string
	}{
		{10_000, 1, ""},
		{69_000, 0.1, ""},
		{69_000, 1, "putting in 69000 probes may hold it up for some 2.1 s, and taking them out " +
			"again, too: -F narrows what is traced"},
	} {
		lines := Forecast(record.Forecast{Load: c.load, Probes: c.probes}, 0)
		if !strings.HasSuffix(lines[0], "; it is measured as it runs") {
			t.Errorf("%d probes at %v: %q", c.probes, c.load, lines)
		}
		expected := 1 // the slow-down
		if c.load < 0.9 {
			expected++ // at its present load
		}
		if got := strings.Join(lines[expected:], "\n"); got != c.want {
			t.Errorf("%d probes at %v: %q", c.probes, c.load, lines)
		}
	}
}

func TestSummaryOfOneProbe(t *testing.T) {
	p := &plan.Plan{Sites: make([]plan.Site, 1)}
	if got, want := Summary(p), "0 of 0 routines, 1 probe (0 single-stepped)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
