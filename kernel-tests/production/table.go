package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"wpptrace/internal/text"
	"wpptrace/kernel-tests/production/load"
)

// columns explains the table.
const columns = `
Medians of the runs, from the command to its end. FIRST: from the command to the first window.
SAID: what tracing took, by wpptrace's account; CPU: how much more CPU time the process took for
each answer. HELD, FREE: the longest gap between two answers of a connection, traced and untraced,
and how long gaps of 10 ms or more were together. THROUGHPUT: by how much it changed, of the
answers a second untraced. SHARES: by how many points the share of a routine differs from perf's at
most. COUNTS: of how many counts that wpptrace prints that of bpftrace is in the interval, of all
runs, and by which factor the widest of these is wide. TOP: how many of the ten hottest subpaths
of a full trace were found.

`

// writeTable prints a line for each server.
func writeTable(w io.Writer, runs []*run) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "SERVER\tRUNS\tFIRST\tCOMMAND\tPROBES\tWINDOWS\tPATHS\tSAID\tCPU\tHELD\t"+
		"FREE\tTHROUGHPUT\tANSWERS/S\tRSS\tSHARES\tCOUNTS\tTOP\tEXIT\t")
	for _, group := range byServer(runs) {
		alone, with := group.alone, group.beside
		if len(alone) == 0 {
			alone = with[:1] // that beside perf disturbs least
		}
		fmt.Fprintln(out, strings.Join([]string{
			group.name,
			fmt.Sprint(len(alone)),
			unless(0, median(alone, func(r *run) float64 { return r.FirstWindow }), "%.1fs"),
			fmt.Sprintf("%.1fs", median(alone, func(r *run) float64 { return r.Took })),
			fmt.Sprintf("%.0f", median(alone, func(r *run) float64 { return float64(r.Probes) })),
			fmt.Sprintf("%.0f", median(alone, func(r *run) float64 { return float64(r.Windows) })),
			fmt.Sprintf("%.0f", median(alone, func(r *run) float64 { return float64(r.Paths) })),
			unless(-100, median(alone, func(r *run) float64 { return 100 * r.Overhead }), "%.1f%%"),
			fmt.Sprintf("%+.1f%%", median(alone, func(r *run) float64 { return 100 * r.CPUMore() })),
			holdUps(alone, func(r *run) load.Figures { return r.Traced }),
			holdUps(alone, func(r *run) load.Figures { return r.Before }),
			fmt.Sprintf("%+.1f%%", median(alone, func(r *run) float64 { return 100 * (0 - r.Loss()) })),
			text.Short(median(alone, func(r *run) float64 { return r.untracedRate() })),
			fmt.Sprintf("%.0fM", median(alone, func(r *run) float64 {
				return float64(r.PeakRSS) / 1e6
			})),
			comparison(with, "%.1f", func(r *run) (float64, bool) {
				return r.SharesOff, r.Shares != nil
			}),
			countsText(with),
			topText(with),
			exits(group.all()),
		}, "\t")+"\t")
	}
	if err := out.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, columns)
	return err
}

// A group is the runs of one server.
type group struct {
	name          string
	alone, beside []*run // without another tool, and with one
}

func (g *group) all() []*run { return append(slices.Clone(g.alone), g.beside...) }

// byServer sorts runs by their servers, in the order of these.
func byServer(runs []*run) (list []*group) {
	for _, r := range runs {
		i := slices.IndexFunc(list, func(g *group) bool { return g.name == r.Server })
		if i < 0 {
			i = len(list)
			list = append(list, &group{name: r.Server})
		}
		if r.Beside != "" {
			list[i].beside = append(list[i].beside, r)
		} else {
			list[i].alone = append(list[i].alone, r)
		}
	}
	return list
}

func median(runs []*run, of func(*run) float64) float64 {
	var list []float64
	for _, r := range runs {
		list = append(list, of(r))
	}
	slices.Sort(list)
	n := len(list)
	return (list[(n-1)/2] + list[n/2]) / 2
}

// unless prints a number, but for one that stands for none.
func unless(none, x float64, format string) string {
	if x == none {
		return "-"
	}
	return fmt.Sprintf(format, x)
}

func comparison(runs []*run, format string, of func(*run) (float64, bool)) string {
	for _, r := range runs {
		if x, ok := of(r); ok {
			return fmt.Sprintf(format, x)
		}
	}
	return "-"
}

// countsText says how many intervals of counts hold, of all runs, and how wide they are.
func countsText(runs []*run) string {
	hold, all, most := 0, 0, 0.0
	for _, r := range runs {
		n, widest := held(r.Counts)
		hold, all, most = hold+n, all+len(estimated(r.Counts)), max(most, widest)
	}
	if all == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d,x%.2f", hold, all, most)
}

// topText says how many of the hottest subpaths of a full trace were found.
func topText(runs []*run) string {
	for _, r := range runs {
		if r.Top > 0 {
			return fmt.Sprintf("%d/%d", r.TopFound, r.Top)
		}
	}
	return "-"
}

// holdUps is the longest hold-up, and how long all were together.
func holdUps(runs []*run, of func(*run) load.Figures) string {
	longest := median(runs, func(r *run) float64 { return of(r).Longest.Seconds() })
	together := median(runs, func(r *run) float64 { return of(r).HoldUpTime.Seconds() })
	return fmt.Sprintf("%.3g/%.3gms", 1000*longest, 1000*together)
}

// exits are the exit statuses, each once.
func exits(runs []*run) string {
	var list []string
	for _, r := range runs {
		list = append(list, fmt.Sprint(r.Exit))
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), ",")
}

// writeDetails prints what the table has no room for: messages, and where perf has found the
// process.
func writeDetails(w io.Writer, runs []*run) error {
	var b strings.Builder
	for _, r := range runs {
		what := "traced"
		if r.Beside == inFull {
			what = "traced in full"
		} else if r.Beside != "" {
			what = "traced, beside " + r.Beside
		}
		fmt.Fprintf(&b, "\n%s, %s: held up %d times for %.0f ms, answers in %v, 99.9%% in %v, "+
			"untraced in %v, 99.9%% in %v\n", r.Server, what, r.Traced.HoldUps,
			r.Traced.HoldUpTime.Seconds()*1000, r.Traced.Median, r.Traced.P999, r.Before.Median,
			r.Before.P999)
		for _, m := range r.Messages {
			fmt.Fprintf(&b, "\t%s\n", m)
		}
		if len(r.Where) > 0 {
			fmt.Fprintf(&b, "  perf: %s\n", whereText(r.Where))
		}
		if len(r.WhereEstimated) > 0 {
			fmt.Fprintf(&b, "  wpptrace: %s\n", whereText(r.WhereEstimated))
		}
		for _, x := range r.Shares {
			fmt.Fprintf(&b, "  %-40.40s  perf %5.1f%%  wpptrace %5.1f%%\n", x.Routine, 100*x.Perf,
				100*x.Estimated)
		}
		for _, x := range r.Counts {
			fmt.Fprintf(&b, "  %-40.40s  entered for each answer: bpftrace %.3g, wpptrace ", x.Routine,
				x.Bpftrace)
			if x.Estimated == 0 {
				b.WriteString("does not know\n")
				continue
			}
			fmt.Fprintf(&b, "%.3g (%.3g-%.3g)%s\n", x.Estimated, x.Least, x.Most,
				map[bool]string{false: ": it is not in there"}[x.holds()])
		}
		for _, m := range r.Unmeasured {
			fmt.Fprintf(&b, "  not measured: %s\n", m)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// whereText lists places with 1 % of the samples or more, the largest first.
func whereText(where map[string]float64) string {
	var places []string
	for place := range where {
		places = append(places, place)
	}
	slices.SortFunc(places, func(a, b string) int {
		return cmp.Or(cmp.Compare(where[b], where[a]), cmp.Compare(a, b))
	})
	var list []string
	for _, place := range places {
		if where[place] >= 0.01 {
			list = append(list, fmt.Sprintf("%s %s", place, text.Share(where[place])))
		}
	}
	return strings.Join(list, ", ")
}
