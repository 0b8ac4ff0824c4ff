package rules

import (
	"maps"
	"slices"

	"wpptrace/compress/wpp"
	"wpptrace/query/names"
)

// Named returns the numbers of the routines, in rising order, whose names are in some texts: names,
// patterns or rules, be they right or wrong.
func Named(s *wpp.Snapshot, texts ...string) []int {
	known, routines := names.Of(s), map[int]bool{}
	for _, text := range texts {
		found, _ := known.Split(text)
		maps.Copy(routines, found)
		words, _ := tokens(text) // whoever reads the pattern reports what is wrong with it
		for _, w := range words {
			if w.name {
				found, _ := known.Split(w.text)
				maps.Copy(routines, found)
			}
		}
	}
	return slices.Sorted(maps.Keys(routines))
}
