package rules

import (
	"slices"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/query/querytest"
)

// inlinedLetters is a snapshot of a text in which the path x runs code that is inlined from a
// letter's routine.
func inlinedLetters(text, letter string) *wpp.Snapshot {
	s := querytest.Letters(text)
	s.Calls = []wpp.Call{{Name: letter}}
	block := &s.RoutineOf(querytest.Letter(s, 'x')).Blocks[0]
	block.Spans = []wpp.Span{{From: 0, To: 1, Call: 1}}
	return s
}

// TestRulesOfInlinedCopies: a verdict that calls may change which are inlined is unknown; what they
// cannot change stays.
func TestRulesOfInlinedCopies(t *testing.T) {
	for _, c := range []struct{ text, inlined, rule, want string }{
		{"xba", "a", "a before b", "unknown"},
		{"xba", "b", "a before b", "broken"},
		{"xab", "a", "a before b", "kept"},
		{"xab", "b", "a before b", "unknown"},
		{"xba", "a", "a#0 before b", "broken"},
		{"xba", "b", "every a followed by b", "unknown"},
		{"xba", "a", "every a followed by b", "broken"},
		{"xab", "b", "every a followed by b", "kept"},
		{"xab", "a", "every a followed by b", "unknown"},
		{"xabc", "c", "every a followed by b before c", "unknown"},
		{"xba", "a", "never a after b", "broken"},
		{"xab", "a", "never a after b", "unknown"},
		{"xab", "a", "a and b balanced", "unknown"},
		{"xab", "a", "never a b", "unknown"},
		{"xab", "a", "never a", "broken"},
		{"xab", "a", "always a b", "unknown"},
		{"xab", "x", "a before b", "kept"},
	} {
		r, err := Check(inlinedLetters(c.text, c.inlined), []string{c.rule})
		if err != nil {
			t.Errorf("%s: %v", c.rule, err)
			continue
		}
		got := "broken"
		switch rule := r.Rules[0]; {
		case rule.Kept:
			got = "kept"
		case rule.Inlined && len(rule.Unknown) == 1 && rule.Violations+rule.Open == 0:
			got = "unknown"
		}
		if got != c.want {
			t.Errorf("%s in %s, %s inlined into x: %s, want %s: %+v", c.rule, c.text, c.inlined,
				got, c.want, r.Rules[0])
		}
	}
}

// TestOrderOfInlinedCopies: what is inlined as well may have run before: always is said only where
// that changes nothing.
func TestOrderOfInlinedCopies(t *testing.T) {
	for _, c := range []struct {
		inlined string
		always  bool
		unknown []string
	}{{"a", true, []string{"a"}}, {"b", false, []string{"b"}}, {"x", true, nil}} {
		o, err := PathOrder(inlinedLetters("xab", c.inlined), "a", "b")
		if err != nil {
			t.Fatal(err)
		}
		if o.AlwaysP != c.always || !o.EverP || o.AlwaysQ || !slices.Equal(o.Unknown, c.unknown) ||
			o.Inlined != (c.unknown != nil) {
			t.Errorf("%s inlined into x: %+v", c.inlined, o)
		}
	}
}
