package overhead

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
)

// planOf is a plan of routines with a block and a site each.
func planOf(routines int) *plan.Plan {
	p := &plan.Plan{}
	for i := range routines {
		r := &cfg.Routine{ID: i, Blocks: []cfg.Block{{End: cfg.Ret}}}
		r.Blocks[0].Insns = make([]cfg.Insn, 1)
		r.Blocks[0].Insns[0].Addr = uint64(0x1000 + i)
		p.Routines = append(p.Routines, &plan.Routine{Routine: r, ID: i})
		p.Sites = append(p.Sites, plan.Site{Routine: i, Addr: uint64(0x1000 + i)})
	}
	p.Parts = []plan.Part{{Sites: p.Sites}}
	return p
}

// One site of each routine is chosen: one that is hit once a call before others, and
// none that is single-stepped or that windows have hardly come to.
func TestControlsAreChosen(t *testing.T) {
	p := planOf(4)
	r := p.Routines[1]
	r.Blocks = append(r.Blocks, r.Blocks[0], r.Blocks[0])
	r.Blocks[0].End, r.Blocks[0].Succ = cfg.Jcc, []int{1, 2}
	p.Sites = []plan.Site{{Routine: 0}, {Routine: 1, Block: 1}, {Routine: 1, Block: 0},
		{Routine: 2, Stepped: true}, {Routine: 3}, {Routine: 1, Block: 2, First: true}}
	p.Parts[0].Sites = p.Sites
	for _, c := range []struct {
		name   string
		within []uint64
		want   []int
	}{
		{"nothing is known", []uint64{0, 0, 0, 0, 0, 0}, nil},
		{"the entry", []uint64{50, 5000, 100, 900, 0, 200}, []int{2, 0}},
		{"the first", []uint64{50, 5000, 0, 900, 100, 20}, []int{4, 0, 5}},
		{"few calls", []uint64{50, leastOfSite - 1, 0, 900, 1, 0}, []int{0, 4}},
		{"any", []uint64{0, 5000, 0, 900, 0, 0}, []int{1}},
	} {
		x := NewControls(p)
		for site, n := range c.within {
			x.Count(site, n)
		}
		x.Count(len(p.Sites), 1000) // of a library
		x.choose()
		x.choose() // nothing more
		var got []int
		for _, control := range x.list {
			got = append(got, control.site)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Sites that would slow the process down too much are not counted together, each is counted in its
// turn, and counting ends where it has cost enough.
func TestControlsTakeTurns(t *testing.T) {
	const hit = time.Microsecond
	x := NewControls(planOf(5))
	for site, n := range []uint64{100_000, 400, 500, 600, 100} {
		x.Count(site, n)
	}
	x.choose()
	rates := []float64{1e-2, 1e-4, 1e-4, 1e-4, 2e-5} // for each ns
	counted := map[int]int{}
	for range 12 {
		sites, long := x.due(time.Second, hit)
		expected := 0.0
		var hits []uint64
		cost := time.Duration(0)
		for _, site := range sites {
			expected += rates[site]
			n := rates[site] * float64(long)
			hits, cost = append(hits, uint64(n)), cost+time.Duration(n)*hit
			counted[site]++
		}
		// of which nobody knew
		first := slices.Equal(sites, []int{0}) && counted[0] == 1 && long == shortSlot
		if len(sites) == 0 || !first && expected > costliest/float64(hit) {
			t.Fatalf("%v are counted together", sites)
		}
		x.add(sites, hits, long+cost, cost, 0)
	}
	if counted[0] != 1 || counted[4] < 4 || counted[1] < 3 || counted[2] < 3 || counted[3] < 3 {
		t.Errorf("counted %v", counted)
	}
	if sites, _ := x.due(0, hit); sites != nil {
		t.Errorf("%v, though counting has cost %v", sites, x.spent)
	}
	if sites, _ := (*Controls)(nil).due(time.Second, hit); sites != nil {
		t.Error("of none")
	}
}

// TestOwnTimeHolds: of a process whose own time in windows is known, at least 93 % of the intervals
// have it: the process does the same in windows as between them, but for chance.
func TestOwnTimeHolds(t *testing.T) {
	const runs, sites, own = 1000, 6, 9e6 // ns in windows
	r := rand.New(rand.NewPCG(5, 5))
	held, wide := 0, 0.0
	for range runs {
		x := NewControls(planOf(sites))
		rates := make([]float64, sites)
		list := make([]int, sites)
		for i := range sites {
			list[i] = i
			rates[i] = math.Exp(-9 - 2*r.Float64())
			x.Count(i, uint64(max(0, rates[i]*own*(1+0.1*r.NormFloat64()))))
		}
		x.choose()
		for range 12 {
			time := (1 + 0.08*r.NormFloat64()) * float64(slotTime) // the clock is not
			var hits []uint64
			for _, rate := range rates {
				n := rate * time
				hits = append(hits, uint64(max(0, n+math.Sqrt(n)*r.NormFloat64())))
			}
			x.add(list, hits, slotTime, 0, 0)
		}
		f := x.ownTime()
		lo, hi := f.Interval()
		if lo <= own && own <= hi {
			held++
		}
		wide += math.Log(hi / lo)
	}
	t.Logf("%d of %d hold, %.2f wide", held, runs, math.Exp(wide/runs))
	if held < runs*93/100 {
		t.Errorf("%d of %d intervals hold", held, runs)
	}
}

// Slots that are many are put together, and say the same.
func TestManySlots(t *testing.T) {
	x := NewControls(planOf(2))
	x.Count(0, 500)
	x.Count(1, 100)
	x.choose()
	for range 10 * mostSlots {
		x.add([]int{0}, []uint64{10}, time.Millisecond, 0, 0)
	}
	hits, own, _ := x.list[0].sums()
	if len(x.list[0].slots) > mostSlots || hits != 100*mostSlots ||
		own != 10*mostSlots*time.Millisecond {
		t.Errorf("%d slots, %d hits, %v", len(x.list[0].slots), hits, own)
	}
	c := x.Counts(time.Second)
	if len(c.Sites) != 1 || c.Sites[0].Routine != 0 || c.Sites[0].Addr != 0x1000 {
		t.Errorf("%+v", c)
	}
	if f := x.ownTime(); f.IsKnown() {
		t.Errorf("by one site: %+v", f)
	}
	if (*Controls)(nil).Counts(1) != nil || NewControls(planOf(1)).Counts(1) != nil {
		t.Error("counts of nothing")
	}
}
