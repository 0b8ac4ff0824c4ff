package soundness

import (
	"slices"
	"testing"
)

// TestCheckOrder: the checks stand in an order that has each behind those that it builds on.
func TestCheckOrder(t *testing.T) {
	var routine, program, linkage []string
	for _, c := range routineChecks {
		routine = append(routine, c.name)
	}
	for _, c := range programChecks {
		program = append(program, c.name)
	}
	for _, c := range linkageChecks {
		linkage = append(linkage, c.name)
	}
	all := slices.Concat(routine, program, linkage)
	slices.Sort(all)
	if n := len(all); len(slices.Compact(all)) != n {
		t.Error("two checks have one name")
	}
	for _, o := range checkOrder {
		found := false
		for _, list := range [][]string{routine, program, linkage} {
			first, then := slices.Index(list, o.first), slices.Index(list, o.then)
			found = found || first >= 0 && then >= 0
			if first >= 0 && then >= 0 && first >= then {
				t.Errorf("%q stands behind %q: %s", o.first, o.then, o.why)
			}
		}
		if !found || o.why == "" {
			t.Errorf("no list has both %q and %q, or there is no reason", o.first, o.then)
		}
	}
}
