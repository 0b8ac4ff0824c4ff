package planner_test

import (
	"testing"

	"wpptrace/loader/plan"
	"wpptrace/loader/plan/planner"
)

// TestLimit: what is appended has room in what a plan is limited to, or is refused and changes
// nothing; what was there stays.
func TestLimit(t *testing.T) {
	program := compile(t, `
		int twice(int x) { return x % 3 ? 2 * x : x; }
		int main(int c, char **v) { return twice(c); }`)
	own := len(planned(t, program, planner.Options{}).Sites)
	for name, c := range map[string]struct{ limit, most, sites int }{
		"none":                 {plan.MaxSites + 1, plan.MaxSites, 2 * own},
		"enough":               {2 * own, 2 * own, 2 * own},
		"too few":              {2*own - 1, 2*own - 1, own},
		"fewer than there are": {0, own, own},
	} {
		p := planned(t, program, planner.Options{})
		if most := p.Limit(c.limit); most != c.most {
			t.Errorf("%s: at most %d sites, want %d", name, most, c.most)
		}
		err := p.Append(planned(t, program, planner.Options{}))
		if len(p.Sites) != c.sites || (err == nil) != (c.sites > own) {
			t.Errorf("%s: %d sites, want %d; %v", name, len(p.Sites), c.sites, err)
		}
	}
}
