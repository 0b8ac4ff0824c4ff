package coverage

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"wpptrace/compress/ops"
	"wpptrace/internal/text"
	"wpptrace/internal/traced"
	"wpptrace/loader/attach"
	"wpptrace/loader/cfg"
	"wpptrace/loader/firsthit"
	"wpptrace/loader/paths"
)

// An edge is an outcome of the conditional jump that ends a block.
type edge struct {
	block   uint64 // its address
	outcome int
}

// An ending is how paths ended behind a block.
type ending struct {
	block uint64 // its address
	how   ops.End
}

// takes reports whether no file has taken an edge of a routine that has such paths; known: they say
// so. Two outcomes that lead to the same place are no edges.
func (m *ranBefore) takes(r *cfg.Routine, n *paths.Numbering, block, outcome int) (isNew,
	known bool) {
	b := &r.Blocks[block]
	to, other := leadsTo(b, outcome), leadsTo(b, 1-outcome)
	e := edge{b.Lo, outcome}
	if m.took[e] || to == other || to >= 0 && m.steps[[2]uint64{b.Lo, r.Blocks[to].Lo}] {
		return false, true
	}
	if how, ends := endOf(n, block, to); ends && m.ends[ending{b.Lo, how}] {
		if also, ends := endOf(n, block, other); !ends || also != how {
			return false, true
		}
		return true, false // one of the two was taken
	}
	return true, !m.untold[e] && (!m.covered || m.jumps[b.Lo])
}

// endOf is how a path ends that takes an edge; -1 is out of the routine.
func endOf(n *paths.Numbering, block, to int) (how ops.End, ends bool) {
	if to < 0 {
		return ops.EndTail, true
	}
	_, ends, end, _ := n.Step(block, to)
	return ops.End(end), ends
}

// A lost block is one behind which a recording may have lost the end of a path, where a fault or a
// handler cut it off: how it went on is known by the event after it, if there is one.
type lost struct {
	ran   bool // it has run itself: it is not known where it led
	begun bool // it may have been begun
}

// lostOf are the blocks of a routine that may have run as the end of a path that was cut off.
func (m *ranBefore) lostOf(r *cfg.Routine) (map[int]lost, error) {
	list := map[int]lost{}
	var next []int
	for i := range r.Blocks {
		if m.ends[ending{r.Blocks[i].Lo, ops.EndCut}] {
			list[i] = lost{ran: true}
			next = append(next, i)
		}
	}
	if next == nil {
		return nil, nil
	}
	n, err := paths.Number(r)
	if err != nil {
		return nil, err
	}
	for len(next) > 0 {
		b := next[len(next)-1]
		next = next[:len(next)-1]
		for _, to := range r.Blocks[b].Succ {
			if to < 0 || list[to].begun {
				continue
			}
			if _, ends, _, _ := n.Step(b, to); ends {
				continue
			}
			list[to] = lost{list[to].ran, true}
			next = append(next, to)
		}
	}
	return list, nil
}

// An edgeChooser finds the edges of an image that no baseline has taken, and that nothing but a
// probe on their jump shows.
type edgeChooser struct {
	residual *residual
	graphs   *traced.Graphs
	before   *ranBefore
	alone    []bool // by site and outcome
	paths    map[int]*paths.Numbering
}

// choose sets which outcomes of a site are watched, and counts them. isLost says that the baselines
// may have lost where its block led.
func (c *edgeChooser) choose(i int, s *site, isLost bool) error {
	r := c.graphs.Routines[s.routine]
	n := c.paths[s.routine]
	if n == nil {
		var err error
		if n, err = paths.Number(r); err != nil {
			return err
		}
		c.paths[s.routine] = n
	}
	result := &c.residual.result
	for o := range s.wants {
		if !c.alone[i*firsthit.Outcomes+o] {
			continue
		}
		isNew, known := c.before.takes(r, n, s.block, o)
		switch {
		case !isNew, c.residual.met[met{c.graphs.Image.BuildID, r.Blocks[s.block].Lo, o}]:
		case !known, isLost:
			result.EdgesNotWatched++
		default:
			s.wants[o] = true
			result.EdgesWatched++
		}
	}
	for o := range s.wants {
		s.place.Quiet[o] = !s.isNew && !s.wants[o]
	}
	if !s.isNew && s.wantsAny() {
		c.residual.jumpsRan += c.before.runs[r.Blocks[s.block].Lo]
	}
	return nil
}

// edgesNotice says what edges cost.
func (r *residual) edgesNotice(sites []site) string {
	jumps := 0
	for i := range sites {
		if !sites[i].isNew {
			jumps++
		}
	}
	line := fmt.Sprintf("edges of %s that ran one way are watched", text.Count(jumps, "jump"))
	b := r.options.Baseline
	if len(b.blocks) > 0 || b.paths == 0 {
		return line + "; how often they are hit is not known, for a coverage has no counts"
	}
	return line + fmt.Sprintf(", %.2f hits for each path by the baselines",
		float64(r.jumpsRan)/float64(b.paths))
}

// targetOf is where an outcome of a conditional jump leads.
func targetOf(jump *cfg.Insn, outcome int) uint64 {
	if outcome == 0 {
		return jump.End()
	}
	return jump.Target()
}

// An edgeWatch gives those jumps up that are hit too often.
type edgeWatch struct {
	sites   []int    // whose probes are hit while nothing is new
	hits    []uint64 // of each, when it was last looked
	cpu     time.Duration
	weighed time.Time
}

func newEdgeWatch(x *observation) *edgeWatch {
	e := &edgeWatch{}
	for i := range x.watch.sites {
		if s := &x.watch.sites[i]; s.wantsAny() {
			e.sites = append(e.sites, i)
		}
	}
	e.hits = make([]uint64, len(e.sites))
	return e
}

// weigh has those probes of edges go that are hit most often, where all of them take too much of
// the CPU time of a process that is attached to.
func (e *edgeWatch) weigh(x *observation) error {
	const often = 200 * time.Millisecond
	const least = 10 * time.Millisecond // the clock's resolution is of no matter then
	if e == nil || x.options.Child != nil || time.Since(e.weighed) < often {
		return nil
	}
	t, err := x.process.Times()
	if err != nil { // it is over
		return nil
	}
	used, isFirst := t.CPU-e.cpu, e.weighed.IsZero()
	if !isFirst && used < least {
		return nil
	}
	e.cpu, e.weighed = t.CPU, time.Now()
	each := attach.TypicalCost().Emulated
	type costly struct {
		site int
		cost time.Duration
	}
	var list []costly
	total := time.Duration(0)
	for k, i := range e.sites {
		n, err := x.session.PassagesOf(i)
		if err != nil {
			return err
		}
		hits := n[0] + n[1]
		cost := time.Duration(hits-e.hits[k]) * each
		e.hits[k] = hits
		if cost > 0 && x.watch.in[i] != nil { // else it is hit no more
			total += cost
			list = append(list, costly{i, cost})
		}
	}
	r := x.options.residual
	most := time.Duration(r.options.Overhead * float64(used))
	if isFirst || total <= most {
		return nil
	}
	share := total.Seconds() / used.Seconds()
	slices.SortFunc(list, func(a, b costly) int { return cmp.Compare(b.cost, a.cost) })
	var gone []int
	for _, c := range list {
		if total > most {
			total -= c.cost
			gone = append(gone, c.site)
		}
	}
	r.result.JumpsGivenUp += len(gone)
	r.options.Remark(fmt.Sprintf("edges of %s are not watched any more: hits took some %.0f%% of "+
		"the process's CPU time, of %g%% allowed", text.Count(len(gone), "jump"), 100*share,
		100*r.options.Overhead))
	return x.watch.giveUp(gone)
}
