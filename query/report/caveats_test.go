package report

import (
	"slices"
	"strings"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/query/querytest"
	"wpptrace/query/rules"
)

func TestCaveats(t *testing.T) {
	s := &wpp.Snapshot{
		Images: []wpp.Image{{Name: "/usr/bin/p"}},
		Routines: []wpp.Routine{
			{Name: "work", Entry: 0x1000}, {Name: "main", Entry: 0x2000, LeftOut: "not selected"},
			{Name: "f(int)", Entry: 0x3000, LeftOut: "no unwind information"},
		},
	}
	const mainLeftOut = "main was not traced (not selected): whether it ran is not known"
	for _, c := range []struct {
		names   []string
		figures wpp.Figures
		want    []string
	}{
		{[]string{"work", "never work work"}, wpp.Figures{}, nil},
		{[]string{"never main"}, wpp.Figures{}, []string{mainLeftOut}},
		{[]string{"work * main()", "main#3 before work"}, wpp.Figures{}, []string{mainLeftOut}},
		{[]string{"'f(int)'#1"}, wpp.Figures{}, []string{"f(int) was not traced (no unwind " +
			"information): whether it ran is not known"}},
		{nil, wpp.Figures{Lost: 1, Gaps: 1}, []string{"1 event was lost, in 1 place: this is " +
			"about what was recorded"}},
		{[]string{"main"}, wpp.Figures{Lost: 70, Gaps: 2, Windows: 3, Sampled: 0.00123}, []string{
			"recorded is some 0.123% of the program's own CPU time, in 3 windows: this is about " +
				"these alone",
			"70 events were lost, in 2 places: this is about what was recorded", mainLeftOut}},
		{nil, wpp.Figures{Windows: 1, Sampled: 0.00123, SampledMost: 0.02}, []string{
			"recorded is at most 2% of the program's own CPU time, in 1 window: this is about " +
				"these alone"}},
		{nil, wpp.Figures{Windows: 15, Sampled: 0.0123, SampledLeast: 0.011, SampledMost: 0.0141},
			[]string{"recorded is 1.1-1.4% of the program's own CPU time, in 15 windows: this is " +
				"about these alone"}},
	} {
		s.Figures = c.figures
		if got := Caveats(s, c.names...); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.names, got, c.want)
		}
	}
}

// Of a routine that is inlined as well, its own paths alone count: text says so, and JSON.
func TestInlinedCopiesAreNotCounted(t *testing.T) {
	s := querytest.InlinedCompressor()
	s.Routines[2].Name = "next_block"
	want := "next_block is also inlined into main: calls there are not counted"
	for _, question := range []string{"next_block", "next_block()", "main ** next_block",
		"next_block before main", "'next_block' main"} {
		if got := Caveats(s, question); !slices.Contains(got, want) {
			t.Errorf("%s: %q", question, got)
		}
	}
	if got := Caveats(s, "main", "next_block#0"); slices.Contains(got, want) {
		t.Errorf("%q, though a path is asked for", got)
	}
	found, err := rules.Find(s, rules.FindQuery{Pattern: "next_block", First: 1, Top: 1})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := WriteFindJSON(&out, s, found); err != nil || !strings.Contains(out.String(),
		`"also_inlined":[{"name":"next_block","into":["main"]}]`) {
		t.Errorf("%s, %v", &out, err)
	}
}
