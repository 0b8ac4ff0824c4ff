package planreport

import (
	"strings"
	"testing"
	"unicode/utf8"

	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/figures"
	"wpptrace/query/report"
)

// However long names are, lines are no wider than tables, and reasons are whole.
func TestPlanFits(t *testing.T) {
	long := "std::vector<" + strings.Repeat("std::pair<int, ", 20) + ">::push_back(\x1b[2J)"
	reasons := []string{"", "no unwind information",
		"two probe-free routes to the block at 55b68f, and no place for a probe",
		"no probe can distinguish its activations: see the block at 55b68f"}
	r := &Report{Go: true, figures: &figures.Figures{}}
	for _, name := range []string{"f", long} {
		for _, reason := range reasons {
			r.routines = append(r.routines,
				&plan.Routine{Routine: &cfg.Routine{Name: name, Addr: 0x55b670}, LeftOut: reason})
			r.figures.ProbesOf, r.figures.PathsOf = append(r.figures.ProbesOf,
				0), append(r.figures.PathsOf, 1)
			if reason != "" {
				r.LeftOut = append(r.LeftOut, LeftOut{Reason: reason, Routines: 1, Example: name})
			}
		}
	}
	var out strings.Builder
	if err := r.WriteText(&out, true); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(line) - 1; n > report.TableColumns {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, reason := range reasons[1:] {
		if n := strings.Count(out.String(), reason); n != 4 {
			t.Errorf("%q stands there %d times, not 4:\n%s", reason, n, out.String())
		}
	}
	if !strings.Contains(out.String(), "\n                "+goProgram+"\n") {
		t.Errorf("not a word of Go:\n%s", out.String())
	}
	if !strings.Contains(out.String(), "  std::vector<std::...:push_back(?[2J): no unwind "+
		"information\n") || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%q", out.String())
	}
}

// A plan with a fault is reported, its routes whole, and an error.
func TestPlanWithFaults(t *testing.T) {
	proven := false
	r := &Report{Program: "prog", Verified: &proven,
		Faults: []string{"f\x1b at 4010: two probe-free routes: " + strings.Repeat("4010 -> ",
			40) + "end"}}
	var out strings.Builder
	if err := r.WriteText(&out, false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "not verified    1 fault\n") || strings.Count(out.String(),
		"4010 -> ") != 40 || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%q", out.String())
	}
	if err := r.Unproven(); err == nil || !strings.Contains(err.Error(),
		"verify the plan of prog: 1 fault: ") {
		t.Errorf("error %v", err)
	}
	r.Faults = append(r.Faults, "g at 4020: a circle without an event")
	if err := r.Unproven(); err == nil || !strings.Contains(err.Error(),
		"verify the plan of prog: 2 faults: ") {
		t.Errorf("error %v", err)
	}
	if err := (&Report{}).Unproven(); err != nil {
		t.Errorf("a plan without faults: %v", err)
	}
}

// A plan of which too many hits are single-stepped is warned of with the routine that makes most of
// them.
func TestSteppedIsWarnedOf(t *testing.T) {
	most := &plan.Routine{Routine: &cfg.Routine{ID: 1, Name: "two"}}
	var out strings.Builder
	r := &Report{stepped: 0.1, mostStepped: most}
	if err := r.WriteText(&out, false); err != nil {
		t.Fatal(err)
	}
	if want := "warning         10% of the expected hits are single-stepped, and slow, most in\n " +
		"               two: -N leaves it out\n"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}
}

// Each library that is not traced is named in whole, in lines that a terminal has room for: --lib
// takes the names.
func TestAllLibrariesAreNamed(t *testing.T) {
	list := []string{"libcrypt.so.1", "libcrypto.so.3", "libsystemd.so.0", "libstdc++.so.6",
		"libatomic.so.1", "libjemalloc.so.2", "libm.so.6"}
	got := lines("not traced without --lib: ", list, 60)
	for _, line := range got {
		if len(line) > 60 || strings.TrimSpace(line) != line {
			t.Errorf("%q", line)
		}
	}
	if want := "not traced without --lib: " + strings.Join(list, ", "); len(got) < 2 ||
		strings.Join(got, " ") != want {
		t.Errorf("%q, not %q", got, want)
	}
}
