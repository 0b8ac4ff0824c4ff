package names

import (
	"maps"
	"slices"
)

// InlinedInto returns the routines, by name and without repetitions, in whose paths code ran that
// is inlined from the routine of a name, as far as debug information says so. How often such a copy
// was called is not known: compilers mix its instructions with those around it, and leave out,
// repeat and join copies, so that none of them stands for a call. It takes time in proportion to
// the alphabet's paths.
func (n *Names) InlinedInto(name string) (routines []string) {
	// by number: the call, or one it is in, is of the name
	is := make([]bool, 1+len(n.snapshot.Calls))
	matches := map[string]bool{"": false}
	for i := range n.snapshot.Calls {
		c := &n.snapshot.Calls[i]
		if _, known := matches[c.Name]; !known {
			matches[c.Name] = Matches(name, Printable(c.Name))
		}
		is[i+1] = is[c.In] || matches[c.Name]
	}
	if !slices.Contains(is, true) {
		return nil
	}
	into := map[int]bool{}
	for sym := range n.snapshot.Symbols {
		if p := &n.snapshot.Symbols[sym]; !p.IsMark && !into[p.Routine] && n.runs(uint32(sym), is) {
			into[p.Routine] = true
		}
	}
	for _, r := range slices.Sorted(maps.Keys(into)) {
		routines = append(routines, n.routines[r])
	}
	return routines
}

// runs reports whether a path runs code of some calls.
func (n *Names) runs(sym uint32, calls []bool) bool {
	for piece := range n.snapshot.Pieces(sym) {
		for span := range piece.Spans() {
			if calls[span.Call] {
				return true
			}
		}
	}
	return false
}
