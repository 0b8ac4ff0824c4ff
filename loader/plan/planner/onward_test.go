package planner_test

import (
	"testing"

	"wpptrace/loader/plan"
	"wpptrace/loader/plan/planner"
)

const callersSource = `
	int (*volatile kept)(int);
	#define ALONE static __attribute__((noipa))
	ALONE int once(int n) { if (n & 4) kept = 0; return n + 7; }
	ALONE int twice(int n) { if (n & 2) kept = 0; return n + 7; }
	ALONE int taken(int n) { if (n & 8) kept = 0; return n + 7; }
	ALONE int jumped(int n) { if (n & 16) kept = 0; return n + 7; }
	ALONE int jumps(int n) { return jumped(n + 1); }
	int main(int argc, char **argv)
	{
		int sum = jumps(argc);
		if (argc > 5)
			kept = taken;
		for (int i = 0; i < argc; i++) {
			sum += once(i) + taken(i);
			if (sum & 1)
				kept = 0;
			sum += twice(i);
			if (sum & 2)
				sum += twice(sum);
		}
		return sum;
	}`

// TestOnlyCallers (rule 14): a routine has one where one call, no jump and no other code enters it.
func TestOnlyCallers(t *testing.T) {
	p := planned(t, compile(t, callersSource, "-xc", "-O2"), planner.Options{})
	prove(t, p)
	for _, c := range []struct {
		name string
		only bool
	}{
		{"once", true}, {"jumps", true}, {"twice", false}, {"taken", false}, {"jumped", false},
		{"main", false},
	} {
		r := routine(t, p, c.name)
		for b := range r.Blocks {
			s := r.Site(b)
			if s == nil {
				continue
			}
			if s.Caller > 0 != c.only {
				t.Errorf("%s: the only call is taken to be that before %x", c.name, s.Caller)
			}
			if _, ok := p.Calls[s.Caller]; c.only && !ok {
				t.Errorf("%s: no call is known before %x", c.name, s.Caller)
			}
		}
	}
}

// TestNextCalls (rule 15): behind a branch that has a probe the next call is known.
func TestNextCalls(t *testing.T) {
	p := planned(t, compile(t, callersSource, "-xc", "-O2"), planner.Options{})
	prove(t, p)
	called := map[string]bool{}
	for i := range p.Sites {
		for _, ra := range p.Sites[i].NextCall {
			for _, r := range p.Routines {
				for b := range r.Blocks {
					if ra > 0 && r.Blocks[b].Hi == ra && r.Blocks[b].IsCall() {
						if kind, to := r.Callee(b); kind != plan.Known ||
							r.ID != p.Sites[i].Routine {
							t.Errorf("the next call of the probe at %x is that of %s before %x",
								p.Sites[i].Addr, r.Name, ra)
						} else {
							called[to.Name] = true
						}
					}
				}
			}
		}
	}
	if !called["twice"] {
		t.Errorf("next calls are known of %v, and not of twice", called)
	}
}
