package report

import (
	"bytes"
	"strings"
	"testing"

	"wpptrace/query"
	"wpptrace/query/querytest"
)

// Wherever a path jumps to, its place goes from the lowest address or line to the highest.
func TestPlacesRunForwards(t *testing.T) {
	s := querytest.Compressor()
	const backwards = 3 // blocks 0, 2, 1 of longest_match
	l := labelOf(s, "f", backwards)
	if got := l.Where(); got != "match.c:105-118" {
		t.Errorf("lines %s", got)
	}
	for i := range s.Routines[1].Blocks {
		s.Routines[1].Blocks[i].Line, s.Routines[1].Blocks[i].Last = 0, 0
	}
	l = labelOf(s, "f", backwards)
	if got := l.Where(); got != "squeeze 2000-200b" || l.Last != "2004" {
		t.Errorf("addresses %s, the last that runs %s", got, l.Last)
	}
}

// Routines of the same name are distinguished in every table and dump.
func TestRoutinesOfOneNameAreDistinguished(t *testing.T) {
	s := querytest.Letters("abcabc")
	s.Routines[2].Name = "a"
	var out bytes.Buffer
	report, err := query.Hot(s, query.DefaultHotQuery())
	if err != nil {
		t.Fatal(err)
	}
	for _, write := range []error{WriteHot(&out, s, report), Dump(&out, s, Paths, Whole()),
		Dump(&out, s, Ops, Whole()), Dump(&out, s, Grammar, Whole())} {
		if write != nil {
			t.Fatal(write)
		}
	}
	for _, want := range []string{"  a@1000#0 ", "  a@3000#0 ", "100\ta@3000\t0\t",
		"\nEnterRoutine a@3000\n", "# 2: a@3000#0 "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
