package rules

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	gocmp "github.com/google/go-cmp/cmp"

	"wpptrace/compress/wpp"
	"wpptrace/query/querytest"
)

// A rule, or an order, with what was not traced in it was said to be kept, broken or never.
func TestUntracedIsUnknown(t *testing.T) {
	s := querytest.Letters("aab")
	s.Routines = append(s.Routines,
		wpp.Routine{Name: "main", Entry: 0x9000, LeftOut: "not selected", Paths: 1})
	for rule, want := range map[string]RuleReport{
		"never (a | main)": {Violations: 2}, // whatever main did
		// it may have run between a and b
		"never a b | main main":             {Unknown: []string{"main"}},
		"never (!a) | main":                 {Unknown: []string{"main"}},
		"never a (!main)":                   {Unknown: []string{"main"}},
		"a before b":                        {Kept: true},
		"main before b":                     {Unknown: []string{"main"}},
		"every main() followed by b":        {Unknown: []string{"main()"}},
		"never a main":                      {Unknown: []string{"main"}},
		"a and main#0 balanced":             {Unknown: []string{"main#0"}},
		"every a followed by b before main": {Unknown: []string{"main"}},
	} {
		want.Rule, want.Witnesses = rule, []Violation{}
		r, err := Check(s, []string{rule})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Rules[0].Witnesses) > 0 != (want.Violations > 0) {
			t.Errorf("%s: %+v", rule, r.Rules[0].Witnesses)
		}
		r.Rules[0].Witnesses = []Violation{}
		if diff := gocmp.Diff(want, r.Rules[0]); diff != "" {
			t.Errorf("%s: %s", rule, diff)
		}
	}
	s.Routines[len(s.Routines)-1].Name = "b"
	if r, err := Check(s, []string{"never b after a", "a before b"}); err != nil ||
		r.Rules[0].Violations != 1 || r.Rules[1].Unknown == nil {
		t.Errorf("with another b that was not traced: %+v, %v", r, err)
	}
	s.Routines[len(s.Routines)-1].Name = "main"
	o, err := PathOrder(s, "a", "main")
	if err != nil || !slices.Equal(o.Unknown, []string{"main"}) || o.PRan != 2 || o.EverP ||
		o.EverQ {
		t.Errorf("%+v, %v", o, err)
	}
}

// What is said of a rule though not all that it names was traced is true of what ran. A stretch
// of paths was said to be there though others had run between them.
func TestVerdictsHoldWhateverRan(t *testing.T) {
	rules := []string{
		"never a", "never a | b", "never (b | c) | a", "never a b", "never a b | c c", "never a a",
		"never (!a)", "never . a", "never a{2} | b", "never a+",
		"never b after a", "never a after b", "never a after a", "a before b",
		"every a followed by b", "every a followed by b before c", "always (a|b)* c",
		"a and b balanced", "b and a balanced within 1",
	}
	const all = "abcd" // the last is another one with the name a
	nameOf := func(c rune) string { return strings.Replace(string(c), "d", "a", 1) }
	broken := func(rule, ran string, hidden rune) (violations uint64, unknown bool) {
		s := querytest.Letters(all, ran)
		for i, c := range all {
			s.Routines[i].Name = nameOf(c)
			if c == hidden {
				s.Routines[i].LeftOut = "not selected"
			}
		}
		r, err := Check(s, []string{rule}, 101)
		if err != nil {
			t.Fatal(err)
		}
		return r.Rules[0].Violations, r.Rules[0].Unknown != nil
	}
	stated := 0
	for n := range 1 << (2 * 4) { // all that four paths may be
		ran := string([]byte{all[n&3], all[n>>2&3], all[n>>4&3], all[n>>6]})
		for _, rule := range rules {
			truth, _ := broken(rule, ran, 0)
			for _, hidden := range all {
				if !slices.Contains(strings.FieldsFunc(rule,
					func(c rune) bool { return !unicode.IsLetter(c) }), nameOf(hidden)) {
					continue // the rule is not about it
				}
				violations, unknown := broken(rule, strings.ReplaceAll(ran, string(hidden), ""),
					hidden)
				if unknown {
					continue
				}
				stated++
				if (violations > 0) != (truth > 0) {
					t.Errorf("%s, where %s ran and %c is not traced: broken %d times, of %d",
						rule, ran, hidden, violations, truth)
				}
			}
		}
	}
	if stated == 0 {
		t.Error("nothing was stated")
	}
}
