package values_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"wpptrace/compress/wpp/variables"
	"wpptrace/query/querytest"
	"wpptrace/query/values"
)

// TestEachTaken: a variable has a value where a place of it says so, each time that it changes.
func TestEachTaken(t *testing.T) {
	s := querytest.Values()
	at, err := values.Places(s, "clip")
	if err != nil {
		t.Fatal(err)
	}
	entry := at[0]
	all := ^uint64(0)
	s.Sections = append(s.Sections, variables.Section([]variables.Variable{
		{Name: "x", Routine: entry.Routine, Size: 2, Places: []variables.Place{
			{Lo: entry.Addr + 1, Hi: all, Where: variables.Register, Base: 1}}},
		{Name: "five", Routine: variables.Global, Size: 1, Places: []variables.Place{
			{Hi: all, Where: variables.Number, Offset: 0x105}}},
		{Name: "lost", Routine: entry.Routine, Size: 8, Places: []variables.Place{{Hi: all}}},
		{Name: "none", Routine: entry.Routine, Size: 8},
	}))
	for name, want := range map[string]string{
		"clip.x":    "1: 7, 1: 5, 2: 3",
		"five":      "0: 5",
		"clip.lost": "1: -, 2: -",
		"none":      "",
	} {
		list, err := values.VariablesNamed(s, name)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		err = values.EachTaken(s, list, nil, func(x *values.Taken) error {
			value := fmt.Sprint(x.Value)
			if x.Known == 0 {
				value = "-"
			}
			got = append(got, fmt.Sprintf("%d: %s", x.Instance, value))
			return nil
		})
		if text := strings.Join(got, ", "); err != nil || text != want {
			t.Errorf("%s: got %s, %v, want %s", name, text, err, want)
		}
	}
	for _, name := range []string{"nobody", "clip.nobody", "nowhere.x"} {
		if list, err := values.VariablesNamed(s, name); err == nil {
			t.Errorf("%s: %v", name, slices.Collect(slices.Values(list)))
		}
	}
}
