package coverage

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"

	"wpptrace/compress/wpp/covered"
	"wpptrace/internal/traced"
	"wpptrace/loader/cfg"
	"wpptrace/loader/firsthit"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// observed is what is known of the sites of an image.
type observed struct {
	sites    []site
	passages []uint64 // firsthit.Outcomes for each
	stands   []bool   // its probe does, so that it would have been hit
	fallen   []bool   // its probe does not stand, and it is not known since when
}

// A collector makes an image's coverage of what was observed.
type collector struct {
	graphs *traced.Graphs
	lines  *image.Lines // nil: there are none
	seen   *observed

	to     covered.Image
	fileAt map[string]int
	siteAt []map[int]int // by routine: the site of each block
}

// collect returns the coverage of an image. It fails where its build id is no hex.
func collect(g *traced.Graphs, lines *image.Lines, seen *observed) (*covered.Image, error) {
	c := &collector{graphs: g, lines: lines, seen: seen, fileAt: map[string]int{},
		siteAt: make([]map[int]int, len(g.Routines))}
	id, err := hex.DecodeString(g.Image.BuildID)
	if err != nil {
		return nil, fmt.Errorf("read the build id of %s: %w", g.Image.Name, err)
	}
	c.to = covered.Image{Name: g.Image.Name, BuildID: id}
	for i, s := range seen.sites {
		if c.siteAt[s.routine] == nil {
			c.siteAt[s.routine] = map[int]int{}
		}
		c.siteAt[s.routine][s.block] = i
	}
	for _, r := range g.Routines {
		c.addRoutine(r)
	}
	for _, x := range g.Outside {
		c.addUnknown(x, -1)
	}
	slices.SortStableFunc(c.to.Blocks,
		func(a, b covered.Block) int { return cmp.Compare(a.Addr, b.Addr) })
	return &c.to, nil
}

func (c *collector) addRoutine(r *cfg.Routine) {
	n := len(c.to.Routines)
	to := covered.Routine{Name: r.Name, Symbol: r.Symbol, Addr: r.Addr}
	if l, ok := c.lineAt(r.Addr); ok {
		to.Place = l
	}
	c.to.Routines = append(c.to.Routines, to)
	if c.graphs.LeftOut(r) != "" {
		for _, x := range r.Ranges {
			c.addUnknown(x, n)
		}
		return
	}
	ways := entered(r)
	for i := range r.Blocks {
		b := &r.Blocks[i]
		to := covered.Block{Addr: b.Lo, Routine: n, Ran: c.state(r, i)}
		for k := range b.Insns {
			if l, ok := c.lineAt(b.Insns[k].Addr); ok && !slices.Contains(to.Lines, l) {
				to.Lines = append(to.Lines, l)
			}
		}
		if b.Insns[len(b.Insns)-1].Kind == x86.Jcc {
			to.Jump = c.jump(r, i, ways)
		}
		c.to.Blocks = append(c.to.Blocks, to)
	}
}

// addUnknown adds code that was not observed.
func (c *collector) addUnknown(x [2]uint64, routine int) {
	to := covered.Block{Addr: x[0], Routine: routine, Ran: covered.Unknown}
	if c.lines != nil {
		c.lines.Each(x[0], x[1], func(file string, line int) {
			if l := (covered.Line{File: c.file(file), Line: line}); !slices.Contains(to.Lines, l) {
				to.Lines = append(to.Lines, l)
			}
		})
	}
	c.to.Blocks = append(c.to.Blocks, to)
}

func (c *collector) lineAt(addr uint64) (l covered.Line, ok bool) {
	if c.lines == nil {
		return l, false
	}
	file, line, ok := c.lines.At(addr)
	if !ok {
		return l, false
	}
	return covered.Line{File: c.file(file), Line: line}, true
}

func (c *collector) file(name string) int {
	i, ok := c.fileAt[name]
	if !ok {
		i = len(c.to.Files)
		c.fileAt[name] = i
		c.to.Files = append(c.to.Files, name)
	}
	return i
}

// state is that of a block.
func (c *collector) state(r *cfg.Routine, block int) covered.State {
	i, ok := c.siteAt[r.ID][block]
	switch {
	case !ok:
		return covered.Unknown
	case c.passages(i) > 0:
		return covered.Run
	case c.seen.fallen[i]:
		return covered.Unknown
	}
	return covered.NotRun
}

func (c *collector) passages(i int) (n uint64) {
	for o := range firsthit.Outcomes {
		n += c.seen.passages[i*firsthit.Outcomes+o]
	}
	return n
}

// jump is what is known of the conditional jump that ends a block; nil: it was not observed.
func (c *collector) jump(r *cfg.Routine, block int, ways []int) *covered.Jump {
	i, ok := c.siteAt[r.ID][block]
	if !ok || !c.seen.sites[i].isJump() {
		return nil
	}
	j := &covered.Jump{}
	b := &r.Blocks[block]
	if l, ok := c.lineAt(b.Insns[len(b.Insns)-1].Addr); ok {
		j.Place = l
	}
	for o := range j.Outcomes {
		j.Outcomes[o] = c.outcome(r, i, o, ways)
	}
	return j
}

// outcome is the state of an outcome of a site's jump. Where its probe went before it was seen, it
// is that of the block to which it leads, if no other way leads there, or if that has not run. In
// the graph, an outcome that cannot be leads where the other one does.
func (c *collector) outcome(r *cfg.Routine, i, o int, ways []int) covered.State {
	s := &c.seen.sites[i]
	switch {
	case c.seen.passages[i*firsthit.Outcomes+o] > 0:
		return covered.Run
	case c.seen.fallen[i]:
		return covered.Unknown
	case c.seen.stands[i], c.passages(i) == 0:
		return covered.NotRun
	}
	b := &r.Blocks[s.block]
	to := leadsTo(b, o)
	if to < 0 || r.Blocks[to].Lo != targetOf(&b.Insns[len(b.Insns)-1], o) {
		return covered.Unknown
	}
	switch state := c.state(r, to); {
	case state == covered.Run && ways[to] > 1:
		return covered.Unknown
	default:
		return state
	}
}

// leadsTo is the block that an outcome of the jump leads to which ends a block; -1: out of the
// routine.
func leadsTo(b *cfg.Block, outcome int) int { return b.Succ[1-outcome] }

// shownAlone says of each outcome of the sites of an image that nothing but its probe shows it.
func shownAlone(g *traced.Graphs, sites []site) []bool {
	list := make([]bool, len(sites)*firsthit.Outcomes)
	has := map[[2]int]bool{}
	for _, s := range sites {
		has[[2]int{s.routine, s.block}] = true
	}
	ways := map[int][]int{}
	for i, s := range sites {
		if !s.isJump() {
			continue
		}
		r := g.Routines[s.routine]
		if ways[s.routine] == nil {
			ways[s.routine] = entered(r)
		}
		for o := range firsthit.Outcomes {
			to := leadsTo(&r.Blocks[s.block], o)
			list[i*firsthit.Outcomes+o] = to < 0 || ways[s.routine][to] > 1 ||
				!has[[2]int{s.routine, to}]
		}
	}
	return list
}
