package rules

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"wpptrace/compress/wpp"
	"wpptrace/query/querytest"
)

// A rule that waits for a routine that never ran says so, and is not broken; what has run breaks
// any rule that forbids it.
func TestRulesOfWhatNeverRan(t *testing.T) {
	s := querytest.Letters("abab", "bb")
	s.Routines = append(s.Routines, wpp.Routine{Name: "z", Entry: 0x9000, Paths: 3})
	for rule, want := range map[string]RuleReport{
		"z before b":                       {NeverRan: []string{"z"}, Unmet: 4},
		"b before z":                       {NeverRan: []string{"z"}, Kept: true},
		"every a followed by z":            {NeverRan: []string{"z"}, Unmet: 1},
		"every a followed by z() before b": {NeverRan: []string{"z()"}, Unmet: 2},
		"a and z#1 balanced":               {NeverRan: []string{"z#1"}, Unmet: 2},
		// in the first thread
		"always z (a b)*":    {NeverRan: []string{"z"}, Unmet: 1},
		"always (a | z) b b": {NeverRan: []string{"z"}, Violations: 2},
		"never z a":          {NeverRan: []string{"z"}, Kept: true},
		"never a b | z":      {NeverRan: []string{"z"}, Violations: 2},
		"never a !z":         {NeverRan: []string{"z"}, Violations: 2},
		"a before b":         {Violations: 2},
	} {
		tids := []int{100, 101}
		if rule == "always z (a b)*" {
			tids = tids[:1]
		}
		r, err := Check(s, []string{rule}, tids...)
		if err != nil {
			t.Errorf("%s: %v", rule, err)
			continue
		}
		want.Rule, want.Witnesses = rule, nil
		r.Rules[0].Witnesses = nil
		if diff := gocmp.Diff(want, r.Rules[0]); diff != "" {
			t.Errorf("%s: %s", rule, diff)
		}
	}
}
