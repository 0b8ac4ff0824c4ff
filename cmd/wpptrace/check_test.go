package main

import (
	"errors"
	"os"
	"strings"
	"testing"

	"wpptrace/internal/record"
	"wpptrace/internal/record/overhead"
	"wpptrace/internal/statusline"
	"wpptrace/loader/attach"
	"wpptrace/loader/plan"
	"wpptrace/loader/requirement"
)

// What is missing is told with the fix, and nothing hides what comes after it.
func TestCheckReport(t *testing.T) {
	r := checkReport{OK: true}
	r.add([]requirement.Requirement{
		{Name: "one", Find: func() (string, error) { return "fine", nil }, Fix: "never told"},
		{Name: "two", Find: func() (string, error) { return "", errors.New("broken") },
			Fix: "mend it"},
		{Name: "three", Find: func() (string, error) { return "fine", nil }, Fix: ""},
		{Name: "four", Find: func() (string, error) { return "", requirement.ErrUnknown },
			Fix: "never told"},
	}...)
	var out strings.Builder
	if err := r.write(&out, false); err != nil {
		t.Fatal(err)
	}
	const want = "ok       one              fine\nmissing  two              broken: mend it\nok  " +
		"     three            fine\n" +
		"unknown  four             not known without privileges: run wpptrace as root\n"
	if out.String() != want || r.OK {
		t.Errorf("%q, ok %v; want %q", out.String(), r.OK, want)
	}
}

func TestForecast(t *testing.T) {
	f, err := os.Open("/bin/bash")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := record.Load(f, "bash", record.Selection{})
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
	lines := strings.Join(forecastLines(all, 0, 0), "\n")
	if !strings.HasSuffix(lines, "at its present load, 0% of a CPU: some 1.0 times") {
		t.Errorf("of an idle process: %s", lines)
	}
	lines = strings.Join(forecastLines(overhead.NewForecast(p.Plan, attach.TypicalCost(), true),
		0.5, 0), "\n")
	if !strings.Contains(lines, "while it runs these routines alone") ||
		strings.Contains(lines, "at its present load") {
		t.Errorf("of some routines: %s", lines)
	}
}

// Whoever attaches to a large program is told what that alone costs it, if it is at work.
func TestLargePlanIsWarnedOf(t *testing.T) {
	for _, c := range []struct {
		probes int
		load   float64
		want   string
	}{
		{10_000, 1, ""},
		{69_000, 0.1, ""},
		{69_000, 1, "wpptrace: putting in 69000 probes may hold it up for some 2.1 s, and taking " +
			"them out again, too: -F narrows what is traced\n"},
	} {
		var out strings.Builder
		p := &printer{flags: &recordFlags{}, errs: statusline.New(&out, true)}
		p.forecast(record.Forecast{Load: c.load, Probes: c.probes})
		if _, got, _ := strings.Cut(out.String(), " some 1.0 times\n"); c.load < 0.9 &&
			got != c.want {
			t.Errorf("%d probes at %v: told %q", c.probes, c.load, out.String())
		} else if c.load >= 0.9 && !strings.HasSuffix(out.String(),
			"it is measured as it runs\n"+c.want) {
			t.Errorf("%d probes at %v: told %q", c.probes, c.load, out.String())
		}
	}
}

func TestSummaryOfOneProbe(t *testing.T) {
	p := &plan.Plan{Sites: make([]plan.Site, 1)}
	if got, want := summary(p), "0 of 0 routines, 1 probe (0 single-stepped)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
