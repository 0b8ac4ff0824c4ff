package coverage

import (
	"errors"
	"maps"
	"os"
	"slices"
	"time"

	"wpptrace/loader/firsthit"
)

// A tier is sites that are alike, which go in together.
type tier struct {
	size int           // of a group
	rest time.Duration // behind each group of a process that runs: what is hit often goes
}

// The tiers, in their order: code that samples were not in, instructions there that the kernel
// single-steps, which cost twenty times as much as others if they are hit, and the same two of code
// that samples were in.
const (
	cold = iota
	stepped
	hot
	hotStepped
)

var tiers = []tier{cold: {256, 3 * time.Millisecond}, stepped: {64, 3 * time.Millisecond},
	hot: {24, 6 * time.Millisecond}, hotStepped: {8, 6 * time.Millisecond}}

// A watch has probes in a process, and takes those out that were hit.
type watch struct {
	session *firsthit.Session
	sites   []site // of all images, by number
	// alone says of each outcome of each site that only its probe shows it: firsthit.Outcomes each
	alone  []bool
	in     []*firsthit.Group // by site: the group that has its probe; nil: it is out
	groups map[*firsthit.Group]bool
	primed time.Time              // until then probes change at once
	each   func(firsthit.Passage) // is called for what is reported; nil: nothing is
	sweeps sweeps
	woken  bool // the end has come: nothing is waited for any more

	givenUp  map[int]bool // sites that are hit too often
	replaced int          // groups
}

func newWatch(s *firsthit.Session, sites []site, alone []bool) *watch {
	return &watch{session: s, sites: sites, alone: alone, in: make([]*firsthit.Group, len(sites)),
		groups: map[*firsthit.Group]bool{}, givenUp: map[int]bool{}}
}

// prime has probes change at once for a while: for long only while there is much to change, for it
// takes CPU time.
func (w *watch) prime() {
	stay := time.Second
	if w.sweeps.begun() {
		stay = 10 * time.Millisecond
	}
	if time.Until(w.primed) < stay/2 {
		_ = w.session.Prime(stay) // they change without it, too
		w.primed = time.Now().Add(stay)
	}
}

// put puts sites in that are out.
func (w *watch) put(sites []int) error {
	w.prime()
	g, err := w.session.Put(sites)
	if err != nil {
		return err
	}
	w.groups[g] = true
	for _, i := range sites {
		w.in[i] = g
	}
	return nil
}

// isDone reports whether the probe of a site has shown what it can, or costs too much.
func (w *watch) isDone(i int, n [firsthit.Outcomes]uint64) bool {
	switch passages := n[0] + n[1]; {
	case passages == 0:
		return false
	case !w.sites[i].isJump(), n[0] > 0 && n[1] > 0, w.givenUp[i]:
		return true
	case w.sites[i].wantsAny():
		return w.sites[i].hasShown(n)
	case n[0] == 0 && w.alone[2*i], n[1] == 0 && w.alone[2*i+1]:
		return passages >= w.sweeps.patience()
	}
	return true
}

// replace has a group replaced by one of its sites that are not done; with few that are, it stays.
func (w *watch) replace(g *firsthit.Group) error {
	var rest []int
	for _, i := range g.Places {
		n, err := w.session.PassagesOf(i)
		if err != nil {
			return err
		}
		if !w.isDone(i, n) {
			rest = append(rest, i)
		}
	}
	if len(rest) == len(g.Places) {
		return nil
	}
	w.prime()
	for _, i := range g.Places {
		w.in[i] = nil
	}
	if len(rest) > 0 {
		if err := w.put(rest); err != nil {
			return err
		}
	}
	delete(w.groups, g)
	delete(w.sweeps.vain, g)
	w.replaced++
	return w.session.Remove(g)
}

// giveUp has the probes of sites go, whatever they have not shown.
func (w *watch) giveUp(sites []int) error {
	for _, i := range sites {
		w.givenUp[i] = true
	}
	for _, i := range sites {
		if g := w.in[i]; g != nil {
			if err := w.replace(g); err != nil {
				return err
			}
		}
	}
	return nil
}

// attend deals with what is hit often until about a time, or until it is woken, and at least with
// what has been reported.
func (w *watch) attend(until time.Time) error {
	var often []*firsthit.Group
	for {
		deadline := until
		if len(often) > 0 || w.woken {
			deadline = time.Time{}.Add(1) // what there is already
		}
		p, err := w.session.Next(deadline)
		w.woken = w.woken || errors.Is(err, firsthit.ErrWoken)
		switch {
		case errors.Is(err, firsthit.ErrWoken), errors.Is(err, os.ErrDeadlineExceeded):
			for _, g := range often {
				if err := w.replace(g); err != nil {
					return err
				}
			}
			if len(often) == 0 || w.woken || !time.Now().Before(until) {
				return nil
			}
			often = often[:0]
			continue
		case err != nil:
			return err
		}
		if w.each != nil {
			w.each(p)
		}
		s := &w.sites[p.Place]
		isJump := s.wants[p.Outcome] && !s.isNew // of a new edge, hit on and on
		costs := p.Passages >= firsthit.DearOften && s.place.Dear ||
			p.Passages >= firsthit.Often || isJump
		if g := w.in[p.Place]; g != nil && costs && !slices.Contains(often, g) {
			often = append(often, g)
		}
	}
}

// placeAll puts all sites in, those of isHot last. running says that the process runs meanwhile.
func (w *watch) placeAll(isHot []bool, running bool) error {
	parts := make([][]int, len(tiers))
	for i := range w.sites {
		of := cold
		switch {
		case isHot[i] && w.sites[i].place.Dear:
			of = hotStepped
		case isHot[i]:
			of = hot
		case w.sites[i].place.Dear && running:
			of = stepped
		}
		parts[of] = append(parts[of], i)
	}
	for k, t := range tiers {
		for sites := range slices.Chunk(parts[k], t.size) {
			if err := w.putEach(sites); err != nil {
				return err
			}
			until := time.Now()
			if running {
				until = until.Add(t.rest)
			}
			if err := w.attend(until); err != nil {
				return err
			}
		}
	}
	return nil
}

// add puts sites in that come behind the others.
func (w *watch) add(sites []site, alone []bool) error {
	first := len(w.sites)
	w.sites, w.alone = append(w.sites, sites...), append(w.alone, alone...)
	w.in = append(w.in, make([]*firsthit.Group, len(sites))...)
	var all []int
	for i := range sites {
		all = append(all, first+i)
	}
	for some := range slices.Chunk(all, tiers[cold].size) {
		if err := w.put(some); err != nil {
			return err
		}
		if err := w.attend(time.Now()); err != nil {
			return err
		}
	}
	return nil
}

// putEach puts sites in, those of each image by themselves.
func (w *watch) putEach(sites []int) error {
	for len(sites) > 0 {
		n := w.session.SameImage(sites)
		if err := w.put(sites[:n]); err != nil {
			return err
		}
		sites = sites[n:]
	}
	return nil
}

// standing is how many probes there are.
func (w *watch) standing() (n int) {
	for g := range w.groups {
		n += len(g.Places)
	}
	return n
}

// removeAll takes all probes out, by and by: the process goes on meanwhile.
func (w *watch) removeAll() error {
	list := slices.Collect(maps.Keys(w.groups))
	clear(w.groups)
	if err := w.session.RemoveInTurn(list...); err != nil {
		return err
	}
	return w.session.AwaitRemovals()
}

// fallen lists the sites whose probes are thought to stand, and do not, though they have not shown
// all: where the process's first thread has ended, a kernel may take out what is to stay.
func (w *watch) fallen() ([]int, error) {
	var standing []int
	for i, g := range w.in {
		if g != nil {
			standing = append(standing, i)
		}
	}
	return w.session.Standing(standing)
}
