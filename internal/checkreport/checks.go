package checkreport

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/samples"
	"wpptrace/internal/planreport"
	"wpptrace/internal/record"
	"wpptrace/loader/requirement"
	"wpptrace/loader/target"
	"wpptrace/loader/uprobe"
	"wpptrace/query/profile"
	"wpptrace/query/report"
)

// OfProcess are what a process is found to do: where its CPU time goes, and how it can be recorded.
// It is sampled, for a second, and a recording of it is planned; nothing is attached. percent is
// the budget that a recording has by default, explain what an error is printed as.
func OfProcess(p *target.Process, percent float64,
	explain func(error) string) []requirement.Requirement {
	const enough = time.Second
	s, notSampled, err := record.SurveyOf(p, enough, percent/100)
	time := cpuTime(p, s.CPUTime, enough)
	if notSampled != nil {
		time = "not known: " + explain(notSampled)
	}
	return []requirement.Requirement{
		{Name: "CPU time", Find: func() (string, error) { return time, nil }},
		{Name: "plan", Find: func() (string, error) {
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("%s, planned in %.1f s", planreport.Summary(s.Plan),
				s.Took.Seconds()), nil
		}, Fix: "see wpptrace plan"},
		{Name: "windows", Find: func() (string, error) {
			if err != nil {
				return "none", nil
			}
			return windows(p, s, percent), nil
		}},
	}
}

// windows says how much a recording would see with a budget.
func windows(p *target.Process, s *record.Survey, percent float64) string {
	const little, enough = 0.02, 50 // samples
	n, all, known := s.Windows(percent/100, record.DefaultMaxStall)
	switch traced := s.Traced.Value(); {
	case s.Traced.Of >= enough && traced < little:
		return fmt.Sprintf("they would show next to nothing: %.1f%% of its CPU time goes to what would be "+
			"traced%s", 100*traced, advice(p, profile.CPUTimeOf(s.CPUTime, &wpp.Snapshot{})))
	case !known:
		return "not known: there are too few samples"
	case all:
		return fmt.Sprintf("not needed: to trace all of it takes less than %v%% of its CPU time",
			percent)
	}
	return fmt.Sprintf("some %.0f a minute at --overhead %v, each of which holds it up for %v at "+
		"most", n, percent, record.DefaultMaxStall)
}

// cpuTime says where the CPU time of a process went while it was sampled, and what would show more
// of it. Nothing that it finds is in the way of a recording.
func cpuTime(p *target.Process, sampled *samples.Profile, long time.Duration) string {
	if sampled == nil {
		return ""
	}
	r := profile.CPUTimeOf(sampled, &wpp.Snapshot{})
	if r.Samples == 0 {
		return fmt.Sprintf("it has used none in %v: see what it waits for", long)
	}
	return report.TimeText(r) + advice(p, r)
}

// advice is what would show more of where the CPU time of a process goes, after a colon; "": what a
// recording without a selection traces is most of it.
func advice(p *target.Process, r *profile.TimeReport) string {
	switch largest := r.Parts[0]; {
	case largest.Kind == profile.FileTime && largest.Name != p.File &&
		!strings.HasPrefix(largest.Name, "["):
		return fmt.Sprintf(": --lib %s traces that library", largest.Name)
	case largest.Kind == profile.JITTime:
		return ": JIT code cannot be traced, but what has made it can"
	case largest.Kind == profile.KernelTime:
		return ": strace -c or perf trace show what it asks of the kernel"
	}
	return ""
}

// Limits lists what cannot be had where probes go in by that mechanism.
func Limits(m uprobe.Mechanism) string {
	var list []string
	for _, limit := range []struct {
		flags string
		err   error
	}{{"--overhead, plan --canary", m.SupportsWindows()}, {"--lib", m.SupportsLibraries()},
		{"--follow-fork", m.SupportsFollow()}} {
		if limit.err != nil {
			list = append(list, fmt.Sprintf("no %s (%v)", limit.flags, limit.err))
		}
	}
	return cmp.Or(strings.Join(list, "; "), "none")
}
