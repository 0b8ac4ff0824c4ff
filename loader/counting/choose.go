package counting

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"wpptrace/loader/cfg"
	"wpptrace/loader/paths"
)

// A Site is an instruction that can carry a probe.
type Site struct {
	Stepped bool // the kernel single-steps it
	Jump    bool // it is the conditional jump that ends the block: its outcome is known
}

// A Question is which paths of a routine are to be counted.
type Question struct {
	Routine   *cfg.Routine
	Numbering *paths.Numbering
	Paths     []uint64 // the interesting ones, by their numbers
	Rest      bool     // all others are counted, too: together, if each can have a hit
	// Site returns the site of a block; false: it can have none.
	Site func(block int) (Site, bool)
	// Cost is what the probe of a block is expected to cost, in any unit.
	Cost func(block int, s Site) float64
	// Twice reports whether the call that ends a block may return more than once.
	Twice func(block int) bool
}

// An Answer is how to count paths of a routine.
type Answer struct {
	Machine *Machine
	Paths   []uint64 // those that Machine.Paths are of: all but Unclear, in their order
	Unclear []uint64 // no sites tell these from others
}

// Choose finds cheap sites that tell the interesting paths of a routine from each other and from
// all others, and how to count by them. Sites go one after the other, the dearest first, and many
// at once where that does, as long as check proves what is left. It fails where nothing can be
// counted. Cost: proofs, of which there are so many that they look at some millions of places at
// most.
func Choose(q Question) (*Answer, error) {
	if q.Routine.Faulty {
		return nil, errors.New("a fault may end its paths anywhere")
	}
	c := &chooser{Question: q, g: newGraph(q.Routine, q.Numbering)}
	c.sites = make([]bool, len(q.Routine.Blocks))
	var order []int
	costs := make([]float64, len(c.sites))
	for b := range c.sites {
		s, ok := q.Site(b)
		if !ok {
			continue
		}
		if !s.Jump {
			c.g.hideOutcome(b)
		}
		c.sites[b], costs[b] = true, q.Cost(b, s)
		order = append(order, b)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(costs[b], costs[a]) })
	a := &Answer{}
	for _, number := range slices.Sorted(slices.Values(q.Paths)) {
		p, err := q.Numbering.Decode(number)
		if err != nil {
			return nil, err
		}
		c.list = append(c.list, p)
		a.Paths = append(a.Paths, number)
	}
	for {
		wrong, err := c.try()
		if err == nil {
			break
		}
		if wrong == restPath && c.Rest {
			c.Rest = false
			continue
		}
		if wrong == restPath {
			return nil, err
		}
		a.Unclear = append(a.Unclear, a.Paths[wrong])
		a.Paths = slices.Delete(a.Paths, wrong, wrong+1)
		c.list = slices.Delete(c.list, wrong, wrong+1)
		if len(c.list) == 0 {
			return nil, fmt.Errorf("none of its paths can be told from others: %w", err)
		}
	}
	c.thin(order)
	a.Machine = c.good.finish()
	steps := func(row int) []Step { return a.Machine.Rows[row].Steps }
	if _, err := c.g.check(a.Machine, steps, c.list, c.Twice, &c.work); err != nil {
		return nil, err
	}
	return a, nil
}

type chooser struct {
	Question
	g     *graph
	list  []paths.Path
	sites []bool // by block
	good  *builder
	work  int // places that proofs have looked at
}

// mostWork is how many places are looked at before no more sites are left out.
const mostWork = 2_000_000

// try makes a machine of the sites, and proves it.
func (c *chooser) try() (wrong int, err error) {
	m, wrong, err := c.g.build(c.sites, c.list, c.Rest)
	if err != nil {
		return wrong, err
	}
	wrong, err = c.g.check(m.m, m.steps, c.list, c.Twice, &c.work)
	if err == nil {
		c.good = m
	}
	return wrong, err
}

// thin leaves out sites of a list, from its beginning on, that are not needed.
func (c *chooser) thin(list []int) {
	if len(list) == 0 || c.work > mostWork {
		return
	}
	for _, b := range list {
		c.sites[b] = false
	}
	if _, err := c.try(); err == nil {
		return
	}
	for _, b := range list {
		c.sites[b] = true
	}
	if len(list) > 1 {
		c.thin(list[:len(list)/2])
		c.thin(list[len(list)/2:])
	}
}
