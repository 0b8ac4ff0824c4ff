package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"wpptrace/compress/wpp"
	"wpptrace/internal/record"
	"wpptrace/loader/requirement"
	"wpptrace/loader/target"
	"wpptrace/loader/uprobe"
	"wpptrace/query"
	"wpptrace/query/report"
)

func checkCommand() *cobra.Command {
	var pid int
	var asJSON bool
	c := &cobra.Command{
		Use:   "check [--json] [-p PID]",
		Short: "Check the kernel, the privileges and a process: each ok, or missing with the fix",
		Example: `  wpptrace check           can this machine trace at all?
  wpptrace check -p 4711   and process 4711?`,
		Long: "Nothing is attached. Without privileges, some requirements cannot be checked: " +
			"they are unknown then.\nThe exit status is 1 unless all is ok.",
		Args: exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			r := checkReport{SchemaVersion: report.SchemaVersion, OK: true, Checks: []checked{}}
			r.add(requirement.OfMachine()...)
			r.add(requirement.Requirement{Name: "limits", Find: func() (string, error) {
				return limitsOf(uprobe.Detect()), nil
			}})
			if c.Flags().Changed("pid") {
				requirement.OfProcess(pid, func(q requirement.Requirement) { r.add(q) })
				if p, err := target.Open(pid); err == nil {
					defer p.Close()
					r.add(requirement.Requirement{Name: "CPU time", Find: func() (string, error) {
						return cpuTimeOf(p), nil
					}})
				}
			}
			if err := r.write(c.OutOrStdout(), asJSON); err != nil {
				return err
			}
			if !r.OK {
				return exitStatus(exitError)
			}
			return nil
		},
	}
	c.Flags().IntVarP(&pid, "pid", "p", 0, "check process `PID` too")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// cpuTimeOf says where the CPU time of a process goes, and what would show more of it. Nothing that
// it finds is in the way of a recording.
func cpuTimeOf(p *target.Process) string {
	const enough = time.Second
	profile, err := record.SampleFor(p, enough)
	if err != nil {
		return "not known: " + oneLine(err)
	}
	r := query.CPUTimeOf(profile, &wpp.Snapshot{})
	if r.Samples == 0 {
		return fmt.Sprintf("it has used none in %v: see what it waits for", enough)
	}
	text := report.TimeText(r)
	switch largest := r.Parts[0]; {
	case largest.Kind == query.FileTime && largest.Name != p.File &&
		!strings.HasPrefix(largest.Name, "["):
		text += fmt.Sprintf(": --lib %s traces that library", largest.Name)
	case largest.Kind == query.JITTime:
		text += ": JIT code cannot be traced, but what has made it can"
	case largest.Kind == query.KernelTime:
		text += ": strace -c or perf trace show what it asks of the kernel"
	}
	return text
}

// limitsOf lists what cannot be had where probes go in by that mechanism.
func limitsOf(m uprobe.Mechanism) string {
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

// checked is the outcome of a check.
type checked struct {
	Name    string `json:"name"`              // of the check
	OK      bool   `json:"ok"`                // false too where it is unknown
	Unknown bool   `json:"unknown,omitempty"` // it may be ok
	Found   string `json:"found"`             // what there is, or what is wrong
	Fix     string `json:"fix,omitempty"`     // what to do about it
}

func (c *checked) state() string {
	switch {
	case c.OK:
		return "ok"
	case c.Unknown:
		return "unknown"
	}
	return "missing"
}

// A checkReport is the outcome of all. Its JSON form grows, within a version, by new members only.
type checkReport struct {
	SchemaVersion int       `json:"schema_version"`
	OK            bool      `json:"ok"`     // all are
	Checks        []checked `json:"checks"` // in the order in which they are printed
}

// add adds the outcome of requirements.
func (r *checkReport) add(list ...requirement.Requirement) {
	for _, q := range list {
		found, err := q.Find()
		k := checked{Name: q.Name, OK: err == nil, Unknown: errors.Is(err, requirement.ErrUnknown),
			Found: found}
		if err != nil {
			k.Found, r.OK = errorText(err), false
		}
		if !k.OK && !k.Unknown {
			k.Fix = q.Fix
		}
		r.Checks = append(r.Checks, k)
	}
}

func (r *checkReport) write(w io.Writer, asJSON bool) error {
	if asJSON {
		return report.WriteJSON(w, r, "checks")
	}
	for _, c := range r.Checks {
		text := c.Found
		if c.Fix != "" {
			text += ": " + c.Fix
		}
		if _, err := fmt.Fprintf(w, "%-8s %-16s %s\n", c.state(), c.Name, text); err != nil {
			return fmt.Errorf("write checks: %w", err)
		}
	}
	return nil
}
