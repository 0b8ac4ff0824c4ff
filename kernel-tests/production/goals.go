package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// A goal is what the median of a server's runs is to be.
type goal struct {
	what    string
	unit    string
	of      func(*run) float64
	atLeast float64
	atMost  float64         // 0: no limit
	servers string          // those that it is for, with blanks around; "": all
	beside  string          // it is about the run beside this tool; "": about those without any
	is      func(*run) bool // whether it is measured in a run; nil: in all
}

// goals are those of a production server, for ten seconds at the default budget.
var goals = []goal{
	{what: "exit status", of: func(r *run) float64 { return float64(r.Exit) }},
	{what: "first window", unit: " s", of: func(r *run) float64 {
		if r.FirstWindow == 0 {
			return r.Took // and still none
		}
		return r.FirstWindow
	}, atMost: 2},
	{what: "windows", of: func(r *run) float64 { return float64(r.Windows) }, atLeast: 15,
		servers: " redis "},
	{what: "paths", of: func(r *run) float64 { return float64(r.Paths) }, atLeast: 100_000,
		servers: " redis "},
	{what: "paths", of: func(r *run) float64 { return float64(r.Paths) }, atLeast: 50_000,
		servers: " postgres nginx memcached "},
	{what: "overhead by its own account", unit: " %", atLeast: 2.5, atMost: 7.5,
		is: func(r *run) bool { return r.Overhead >= 0 },
		of: func(r *run) float64 { return 100 * r.Overhead }},
	{what: "hold-up above that without tracing", unit: " ms", atMost: 30,
		of: func(r *run) float64 {
			return float64(r.Traced.Longest-r.Untraced()) / float64(time.Millisecond)
		}},
	{what: "throughput lost", unit: " %", of: func(r *run) float64 { return 100 * r.Loss() },
		atMost: 8},
	{what: "memory", unit: " MB", of: func(r *run) float64 { return float64(r.PeakRSS) / 1e6 },
		atMost: 500},
	{what: "shares beside perf's", unit: " points", of: func(r *run) float64 { return r.SharesOff },
		is: func(r *run) bool { return r.Shares != nil }, atMost: 3, beside: "perf"},
	{what: "of ten counts that are printed, bpftrace's is in the interval of",
		of: func(r *run) float64 {
			n, _ := held(r.Counts)
			return 10 * ratio(float64(n), float64(len(estimated(r.Counts))))
		},
		is:      func(r *run) bool { return len(estimated(r.Counts)) > 0 },
		atLeast: 10, beside: "bpftrace"},
	{what: "widest of these intervals", unit: " times as much at most as at least",
		of: func(r *run) float64 {
			_, widest := held(r.Counts)
			return widest
		},
		is: func(r *run) bool { return r.Counts != nil }, atMost: 1.5, beside: "bpftrace"},
	{what: "of the ten hottest subpaths found", of: func(r *run) float64 {
		return 10 * ratio(float64(r.TopFound), float64(r.Top))
	}, is: func(r *run) bool { return r.Top > 0 }, atLeast: 9, beside: inFull},
}

// missed says which goals a server's runs miss.
func missed(g *group) (list []string) {
	for _, goal := range goals {
		if goal.servers != "" && !strings.Contains(goal.servers, " "+g.name+" ") {
			continue
		}
		var runs []*run
		for _, r := range g.all() {
			if r.Beside == goal.beside && (goal.is == nil || goal.is(r)) {
				runs = append(runs, r)
			}
		}
		if len(runs) == 0 {
			continue
		}
		x := median(runs, goal.of)
		switch {
		case goal.atLeast > 0 && x < goal.atLeast:
			list = append(list, fmt.Sprintf("%s: %.4g%s, not %.6g or more", goal.what, x, goal.unit,
				goal.atLeast))
		case x > goal.atMost && (goal.atMost > 0 || goal.atLeast == 0):
			list = append(list, fmt.Sprintf("%s: %.4g%s, not %.6g or less", goal.what, x, goal.unit,
				goal.atMost))
		}
	}
	return list
}

// writeMissed prints which goals are missed.
func writeMissed(w io.Writer, runs []*run) error {
	for _, g := range byServer(runs) {
		for _, m := range missed(g) {
			if _, err := fmt.Fprintf(w, "missed by %s: %s\n", g.name, m); err != nil {
				return err
			}
		}
	}
	return nil
}
