package query

import (
	"fmt"
	"maps"
	"slices"

	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
	"wpptrace/query/names"
)

// Caveats returns what a recording does not know that bears on questions with these names in them,
// a line each; none for a recording of all that ran. A name is that of a path, or a pattern or rule
// with such names.
func Caveats(s *wpp.Snapshot, texts ...string) (list []string) {
	if f := &s.Figures; f.IsSampled() {
		list = append(list, fmt.Sprintf("recorded is %s of the program's own CPU time, in %s: this is about these alone", f.TellSampled(), text.Count(f.Windows, "window")))
	}
	if f := &s.Figures; f.Lost > 0 {
		list = append(list, fmt.Sprintf("%s lost, in %s: this is about what was recorded", were(f.Lost, "event"), text.Count(f.Gaps, "place")))
	}
	a := newAtoms(s)
	const most = 5
	unobserved := 0
	for _, i := range slices.Sorted(maps.Keys(a.named(texts))) {
		r := &s.Routines[i]
		if r.LeftOut == "" {
			continue
		}
		if unobserved++; unobserved <= most {
			list = append(list, fmt.Sprintf("%s was not observed (%s): whether it ran is not known", names.Printable(a.known.Routine(i)), names.Printable(r.LeftOut)))
		}
	}
	if unobserved > most {
		list = append(list, fmt.Sprintf("and %d more routines with such a name were not observed", unobserved-most))
	}
	return list
}

func were(n uint64, what string) string {
	if n == 1 {
		return text.Count(n, what) + " was"
	}
	return text.Count(n, what) + " were"
}

// named returns the routines of names, and of the names in patterns.
func (a *atoms) named(texts []string) map[int]bool {
	routines := map[int]bool{}
	for _, text := range texts {
		found, _ := a.known.Split(text)
		maps.Copy(routines, found)
		words, _ := tokens(text) // what is no pattern has been told of
		for _, w := range words {
			if w.name {
				found, _ := a.known.Split(w.text)
				maps.Copy(routines, found)
			}
		}
	}
	return routines
}
