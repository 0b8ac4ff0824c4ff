package query

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"wpptrace/compress/wpp"
)

// Wherever a path jumps to, its place goes from the lowest address or line to the highest.
func TestPlacesRunForwards(t *testing.T) {
	s := compressor()
	const backwards = 3 // blocks 0, 2, 1 of longest_match
	l := labelOf(s, "f", backwards)
	if got := l.where(); got != "match.c:105-118" {
		t.Errorf("lines %s", got)
	}
	for i := range s.Routines[1].Blocks {
		s.Routines[1].Blocks[i].Line, s.Routines[1].Blocks[i].Last = 0, 0
	}
	l = labelOf(s, "f", backwards)
	if got := l.where(); got != "squeeze 2000-200b" || l.Last != "2004" {
		t.Errorf("addresses %s, the last that runs %s", got, l.Last)
	}
}

// Routines of the same name are told apart, in every table and dump; others are called what they
// are.
func TestRoutinesOfOneName(t *testing.T) {
	s := letters("abcabc")
	s.Routines[2].Name = "a"
	if got := routineNames(s); !slices.Equal(got, []string{"a@1000", "b", "a@3000"}) {
		t.Errorf("names %q", got)
	}
	several := letters("abcabc")
	several.Images = append(several.Images, wpp.Image{Name: "libb.so"})
	several.Routines[2].Name, several.Routines[2].Image = "b", 1
	if got := routineNames(several); !slices.Equal(got, []string{"a", "letters:b", "libb.so:b"}) {
		t.Errorf("names %q", got)
	}
	l := newLabels(several)
	for name, want := range map[string][]int{"b": {1, 2}, "libb.so:b": {2}, "letters:a": {0}, "libb.so:a": nil} {
		var got []int
		for i := range several.Routines {
			if l.isNamed(i, name) {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s names %v, want %v", name, got, want)
		}
	}
	var out bytes.Buffer
	report, err := Hot(s, DefaultHotQuery())
	if err != nil {
		t.Fatal(err)
	}
	for _, write := range []error{WriteHot(&out, s, report), Dump(&out, s, Paths), Dump(&out, s, Ops), Dump(&out, s, Grammar)} {
		if write != nil {
			t.Fatal(write)
		}
	}
	for _, want := range []string{"  a@1000#0 ", "  a@3000#0 ", "100\ta@3000\t0\t", "\nEnterRoutine a@3000\n", "# 2: a@3000#0 "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
