package query

import "testing"

// Wherever a path jumps to, its place goes from the lowest address or line to the highest.
func TestPlacesRunForwards(t *testing.T) {
	s := compressor()
	const backwards = 3 // blocks 0, 2, 1 of longest_match
	l := labelOf(s, backwards)
	if got := l.where(); got != "match.c:105-118" {
		t.Errorf("lines %s", got)
	}
	for i := range s.Routines[1].Blocks {
		s.Routines[1].Blocks[i].Line, s.Routines[1].Blocks[i].Last = 0, 0
	}
	l = labelOf(s, backwards)
	if got := l.where(); got != "squeeze 2000-200b" || l.Last != "2004" {
		t.Errorf("addresses %s, the last that runs %s", got, l.Last)
	}
}
