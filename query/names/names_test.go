package names

import (
	"slices"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/query/querytest"
)

// Routines of the same name are distinguished; others are called what they are.
func TestRoutinesOfOneName(t *testing.T) {
	s := querytest.Letters("abcabc")
	s.Routines[2].Name = "a"
	if got := Of(s).routines; !slices.Equal(got, []string{"a@1000", "b", "a@3000"}) {
		t.Errorf("names %q", got)
	}
	several := querytest.Letters("abcabc")
	several.Images = append(several.Images, wpp.Image{Name: "libb.so"})
	several.Routines[2].Name, several.Routines[2].Image = "b", 1
	n := Of(several)
	if got := n.routines; !slices.Equal(got, []string{"a", "letters:b", "libb.so:b"}) {
		t.Errorf("names %q", got)
	}
	for name, want := range map[string][]int{"b": {1, 2}, "libb.so:b": {2}, "letters:a": {0},
		"libb.so:a": nil} {
		var got []int
		for i := range several.Routines {
			if n.IsRoutine(i, name) {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s names %v, want %v", name, got, want)
		}
	}
	twins := querytest.Letters("ab")
	for i := range twins.Routines {
		twins.Routines[i].Name, twins.Routines[i].Entry = "f", 0
	}
	if got := Of(twins).routines; !slices.Equal(got, []string{"f@0", "f@0.2"}) {
		t.Errorf("names %q", got)
	}
}
