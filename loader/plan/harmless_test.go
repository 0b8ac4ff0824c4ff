package plan

import (
	"testing"

	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
)

// Allocators that are libraries of their own call hooks, which may be the program's.
func TestAllocatorsHaveHooks(t *testing.T) {
	for _, c := range []struct {
		needed []string
		want   bool
	}{
		{[]string{"libm.so.6", "libc.so.6"}, true},
		{[]string{"libtcmalloc_minimal.so.4", "libc.so.6"}, false},
		{[]string{"libc.so.6", "libjemalloc.so.2"}, false},
	} {
		p := ImportsOf(&cfg.Program{Image: &image.Image{Needed: c.needed}}, false)
		if got := p.IsHarmless("malloc"); got != c.want || !p.IsHarmless("strlen") {
			t.Errorf("with %q: malloc is harmless: %v, want %v; strlen: %v", c.needed, got, c.want,
				p.IsHarmless("strlen"))
		}
	}
}
