package figures

import (
	"testing"

	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
)

// Routines that are left out for the same cause are counted together, wherever it holds in them.
func TestPlanCountsCauses(t *testing.T) {
	var f Figures
	for _, addr := range []uint64{0x1000, 0x2000, 0x3000} {
		out := &plan.Routine{Routine: &cfg.Routine{Name: "f"}}
		out.LeftOut, out.Cause = cfg.FormatReason("may be entered in its middle at %x (address "+
			"taken)", addr)
		f.count(out)
	}
	if len(f.LeftOut) != 1 || f.LeftOut[0] != (LeftOut{"may be entered in its middle (address " +
		"taken)", 3, "f"}) {
		t.Errorf("%+v", f.LeftOut)
	}
}

// The share of single-stepped hits comes with the routine that makes most of them.
func TestSingleStepped(t *testing.T) {
	routines := []*plan.Routine{{Routine: &cfg.Routine{ID: 0, Name: "one"}},
		{Routine: &cfg.Routine{ID: 1, Name: "two"}}}
	fast, slow := plan.Site{Expected: 900}, plan.Site{Routine: 1, Expected: 30, Stepped: true}
	for _, c := range []struct {
		sites []plan.Site
		share float64
		most  *plan.Routine
	}{
		{nil, 0, nil},
		{[]plan.Site{fast}, 0, nil},
		{[]plan.Site{fast, slow, slow, {Expected: 40, Stepped: true}}, 0.1, routines[1]},
	} {
		share, most := SingleStepped(&plan.Plan{Routines: routines, Sites: c.sites})
		if share != c.share || most != c.most {
			t.Errorf("%+v: %v, %v", c.sites, share, most)
		}
	}
}
