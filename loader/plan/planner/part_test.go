package planner_test

import (
	"testing"

	"wpptrace/loader/plan/planner"
)

// What is appended gets numbers and addresses of its own, and keeps its link-time addresses where
// its part is known; what was there keeps its own.
func TestAppend(t *testing.T) {
	const source = `
		int twice(int x) { return x % 3 ? 2 * x : x; }
		int sum(int n) { int s = 0; for (int i = 0; i < n; i++) s += twice(i); return s; }
		int main(int c, char **v) { return sum(c); }`
	p, q := planned(t, compile(t, source), planner.Options{}), planned(t, compile(t, source, "-O0"),
		planner.Options{Distrust: true})
	routines, sites, calls := len(p.Routines), len(p.Sites), len(p.Calls)
	first, more := p.Sites[0], len(q.Calls)
	if err := p.Append(q); err != nil {
		t.Fatal(err)
	}
	if p.Sites[0] != first || len(p.Calls) != calls+more || len(p.Parts) != 2 ||
		p.Parts[1].First != sites {
		t.Errorf("first site %+v, not %+v; %d calls, not %d and %d; %d parts", p.Sites[0], first,
			len(p.Calls), calls, more, len(p.Parts))
	}
	for i, r := range p.Routines {
		offset := p.Parts[0].Offset
		if i >= routines {
			offset = p.Parts[1].Offset
		}
		if r.ID != i || r.Offset() != offset || p.Containing(r.Addr+offset) != r {
			t.Errorf("%s: number %d, not %d; offset %x, not %x", r.Name, r.ID, i, r.Offset(),
				offset)
		}
	}
	for i, s := range p.Sites {
		r := p.Routines[s.Routine]
		if own := r.Site(s.Block); own == nil || own.Addr != s.Addr ||
			(i >= sites) != (s.Routine >= routines) {
			t.Errorf("site %d at %x of routine %d: the routine's is %v", i, s.Addr, s.Routine, own)
		}
	}
	if p.Containing(p.Parts[1].Offset-1) != nil {
		t.Error("a routine lies between the images")
	}
}
