package checkreport

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"wpptrace/compress/wpp"
	"wpptrace/internal/record"
	"wpptrace/loader/target"
	"wpptrace/loader/uprobe"
	"wpptrace/query/profile"
	"wpptrace/query/report"
)

// CPUTime says where the CPU time of a process goes, and what would show more of it. Nothing that
// it finds is in the way of a recording. It samples the process, for a second. explain is what an
// error is printed as.
func CPUTime(p *target.Process, explain func(error) string) string {
	const enough = time.Second
	sampled, err := record.SampleFor(p, enough)
	if err != nil {
		return "not known: " + explain(err)
	}
	r := profile.CPUTimeOf(sampled, &wpp.Snapshot{})
	if r.Samples == 0 {
		return fmt.Sprintf("it has used none in %v: see what it waits for", enough)
	}
	text := report.TimeText(r)
	switch largest := r.Parts[0]; {
	case largest.Kind == profile.FileTime && largest.Name != p.File &&
		!strings.HasPrefix(largest.Name, "["):
		text += fmt.Sprintf(": --lib %s traces that library", largest.Name)
	case largest.Kind == profile.JITTime:
		text += ": JIT code cannot be traced, but what has made it can"
	case largest.Kind == profile.KernelTime:
		text += ": strace -c or perf trace show what it asks of the kernel"
	}
	return text
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
