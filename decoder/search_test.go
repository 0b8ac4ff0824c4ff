package decoder

import (
	"testing"

	"wpptrace/bpf/wire"
)

// TestSearchForExternalCode: what external code has called, and which can return, has returned to
// it; what stands at its call, which cannot have returned, has not.
func TestSearchForExternalCode(t *testing.T) {
	e, _, r := emitterOf(t)
	for _, c := range []struct {
		name   string
		caller wire.Event
		from   bool // external code called it
		want   count
	}{
		{"called by external code", wire.MakeCaller(wire.Outside, 0), true, one},
		{"called by traced code", wire.MakeCaller(wire.Inside, 0x1000), false, none},
	} {
		s := &stack{hasRun: true}
		s.push(&frame{
			activation: activation{r, 0x7f00}, pos: r.AtEntry(), caller: c.caller,
			fromExternal: c.from,
		})
		g := &signals{d: e.d, stack: s}
		found := g.search(location{outside: true}).run()
		if found.ways.n != c.want {
			t.Errorf("%s: %d ways, want %d", c.name, found.ways.n, c.want)
			continue
		}
		if c.want == one && (found.frame != 0 || !found.ways.ends ||
			found.ways.way[0].kind != stepReturn) {
			t.Errorf("%s: found %+v, want its return", c.name, found)
		}
	}
}

// TestSearchBeforeTheFirstEvent: of a thread of which nothing is known, nothing is certain.
func TestSearchBeforeTheFirstEvent(t *testing.T) {
	e, _, _ := emitterOf(t)
	g := &signals{d: e.d, stack: &stack{}}
	if found := g.search(location{outside: true}).run(); found.ways.n != several ||
		found.frame != -1 {
		t.Errorf("found %+v", found)
	}
}
