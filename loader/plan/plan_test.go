package plan

import (
	"strings"
	"testing"

	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
)

// A plan that needs more probes than an event can name is refused, and the error says how many.
func TestTooManySites(t *testing.T) {
	program := &cfg.Program{Image: &image.Image{Name: "large"}, Routines: []*cfg.Routine{{}}}
	found := []Findings{{Blocks: make([]Block, 1)}}
	if _, err := New(program, Imports{}, found, make([]Site, MaxSites), nil); err != nil {
		t.Errorf("%d sites: %v", MaxSites, err)
	}
	const want = "plan large: 262145 probes are needed, 262144 are possible"
	if _, err := New(program, Imports{}, found, make([]Site, MaxSites+1), nil); err == nil ||
		!strings.HasPrefix(err.Error(), want) {
		t.Errorf("%d sites: error %v, want %q", MaxSites+1, err, want)
	}
}
