package report

import (
	"fmt"

	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
	"wpptrace/query/names"
	"wpptrace/query/rules"
)

// Caveats returns what a recording does not know that bears on questions with these names in them,
// a line each; none for a recording of all that ran. A name is that of a path, or a pattern or rule
// with such names.
func Caveats(s *wpp.Snapshot, texts ...string) (list []string) {
	if f := &s.Figures; f.IsUntraced() {
		list = append(list, "nothing was recorded: no window was opened")
	} else if f.IsSampled() {
		list = append(list, fmt.Sprintf("recorded is %s of the program's own CPU time, in %s: "+
			"this is about these alone", SampledText(f), text.Count(f.Windows, "window")))
	}
	if f := &s.Figures; f.Lost > 0 {
		list = append(list, fmt.Sprintf("%s lost, in %s: this is about what was recorded",
			were(f.Lost, "event"), text.Count(f.Gaps, "place")))
	}
	known := names.Of(s)
	const most = 5
	untraced := 0
	for _, i := range rules.Named(s, texts...) {
		r := &s.Routines[i]
		if r.LeftOut == "" {
			continue
		}
		if untraced++; untraced <= most {
			list = append(list,
				fmt.Sprintf("%s was not traced (%s): whether it ran is not known",
					names.Printable(known.Routine(i)), names.Printable(r.LeftOut)))
		}
	}
	if untraced > most {
		list = append(list, fmt.Sprintf("and %d more routines with such a name were not traced",
			untraced-most))
	}
	for _, c := range rules.Inlined(s, texts...) {
		list = append(list, fmt.Sprintf("%s is also inlined into %s: calls there are not counted",
			names.Printable(c.Name), names.List(c.Into)))
	}
	return list
}

// SampledText is the interval that the share of the program's own CPU time is in that was traced,
// in per cent, or what it is at most. Old recordings have no interval.
func SampledText(f *wpp.Figures) string {
	switch {
	case f.IsUntraced():
		return "nothing"
	case f.SampledMost == 0:
		return fmt.Sprintf("some %.3g%%", 100*f.Sampled)
	case f.SampledLeast == 0:
		return fmt.Sprintf("at most %.3g%%", 100*f.SampledMost)
	}
	least, most := fmt.Sprintf("%.2g", 100*f.SampledLeast), fmt.Sprintf("%.2g", 100*f.SampledMost)
	if least == most {
		return most + "%"
	}
	return fmt.Sprintf("%s-%s%%", least, most)
}

func were(n uint64, what string) string {
	if n == 1 {
		return text.Count(n, what) + " was"
	}
	return text.Count(n, what) + " were"
}
