package values_test

import (
	"fmt"
	"strings"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/variables"
	"wpptrace/internal/location"
	"wpptrace/query/querytest"
	"wpptrace/query/values"
)

// inMemory is querytest.Values with variables where its routine stores: all, global; some of it,
// local, where a register says; and none, in a register alone.
func inMemory() *wpp.Snapshot {
	s := querytest.Values()
	all := ^uint64(0)
	s.Sections = append(s.Sections, variables.Section(&variables.Table{
		Types: []variables.Type{{Kind: variables.Unsigned, Size: 8, Of: variables.NoType},
			{Kind: variables.Unsigned, Size: 2, Of: variables.NoType}},
		Variables: []variables.Variable{
			{Name: "all", Routine: variables.Global, Places: []variables.Place{
				{Hi: all, Expression: []byte{location.Addr, 0, 0x70, 0, 0, 0, 0, 0, 0}}}},
			{Name: "some", Type: 1, Places: []variables.Place{
				{Hi: all, Expression: []byte{location.Breg0 + 1, 4}}}},
			{Name: "none", Places: []variables.Place{
				{Hi: all, Expression: []byte{location.Reg0 + 5}}}},
		},
	}))
	return s
}

// TestWatchVariables: a variable is watched wherever it is in memory, and each activation has its
// own.
func TestWatchVariables(t *testing.T) {
	s := inMemory()
	for name, want := range map[string]string{
		"all":       "0: w7000 of 0, 1: w7000 of 0; true",
		"clip.some": "0: w7000 of 1, 1: w7000 of 2; true",
		"clip.none": "; false",
	} {
		list, err := values.VariablesNamed(s, name)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		var missed values.Missed
		q := values.WatchQuery{Variables: list, WritesOnly: true}
		for x, err := range values.Watch(s, q, &missed) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%d: w%x of %d", x.Executed.Symbol, x.Access.Addr,
				x.Instance))
		}
		text := fmt.Sprintf("%s; %v", strings.Join(got, ", "), missed.WasInMemory)
		if text != want {
			t.Errorf("%s: got %s, want %s", name, text, want)
		}
	}
	q := values.WatchQuery{Size: 1, Addr: 0x7000}
	var missed values.Missed
	for range values.Watch(s, q, &missed) {
		break // ends it
	}
}
