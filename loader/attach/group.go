package attach

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/loader/guard"
	"wpptrace/loader/plan"
)

// A group is sites of one image whose probes go in and come out together.
type group struct {
	sites   []plan.Site   // in the order of their addresses
	cookies []uint64      // by which a hit names its site
	placed  *guard.Probes // nil: they are out
	last    uint64        // the address of the one that comes out last
}

func (g *group) isOut() bool { return g.placed == nil && len(g.sites) > 0 }

// Changes are probes that have gone in and come out.
type Changes struct {
	Probes int
	// Took is how long that took: each time from when the first probe was to go in, or to come out,
	// until the last one had. That is how long the process was held up at most.
	Took time.Duration
}

// Since is what has changed since then.
func (c Changes) Since(then Changes) Changes {
	return Changes{c.Probes - then.Probes, c.Took - then.Took}
}

func (c *Changes) add(list []place, took time.Duration) {
	for _, at := range list {
		c.Probes += len(at.group.sites)
	}
	c.Took += took
}

// A place is a group in its image.
type place struct {
	mapped *mapped
	group  *group
}

// A Cold is sites of a session whose probes stand between windows too: those that are hardly hit.
type Cold struct{ places []place }

// Groups are the probes of a session, in groups. They are used by one goroutine at a time, that of
// the session.
type Groups struct{ session *Session }

// Groups returns the session's groups.
func (s *Session) Groups() Groups { return Groups{s} }

// Changes are those of probes so far.
func (g Groups) Changes() Changes { return g.session.images.changes }

// PlaceCold puts the probes of some groups of sites in, which come out one by one. Sites are given
// by their indices in the plan, which ascend in each group. They stay when Pause takes the others
// out, and count their hits then (Counters.SiteHits). exe is as of Attach. Call it while the others
// are out. Whatever fails, none of them stays.
// Cost: some 3 us of the process's time a probe, far more while some are hit often.
func (g Groups) PlaceCold(exe *os.File, groups ...[]int) (list []*Cold, err error) {
	s := g.session
	defer guard.RaisePriority()()
	var places []place
	for _, sites := range groups {
		c := s.images.newCold(sites)
		list, places = append(list, c), append(places, c.places...)
	}
	if err = s.ready(exe); err == nil {
		err = s.images.placeCold(places, s.guard)
	}
	if err = s.whyFailed(exe, err); err != nil {
		return nil, fmt.Errorf("put cold probes into process %d (%s): %w", s.process.PID,
			s.process.Name, errors.Join(err, g.RemoveCold(list...)))
	}
	return list, nil
}

func (x *images) placeCold(list []place, by *guard.Guard) error {
	if err := x.check(list, (*mapped).untouched); err != nil {
		return err
	}
	if err := x.put(list, by); err != nil {
		return err
	}
	return x.check(list, (*mapped).standing)
}

// RemoveCold takes probes of PlaceCold out: they go in and out with the others from now on. Cost:
// that of uprobe.Mechanism.Removal, once.
func (g Groups) RemoveCold(list ...*Cold) error {
	defer guard.RaisePriority()()
	var places []place
	for _, c := range list {
		places = append(places, c.places...)
	}
	g.session.images.primeOut(places, g.session.guard)
	err := g.session.images.takeOut(places, g.session.guard)
	for _, at := range places {
		at.mapped.cold = slices.DeleteFunc(at.mapped.cold,
			func(g *group) bool { return g == at.group })
		at.mapped.others = nil
	}
	return err
}

// newCold makes groups of some sites.
func (x *images) newCold(sites []int) *Cold {
	c := &Cold{}
	for _, m := range x.list {
		var own []int
		for _, i := range sites {
			if i >= m.first && i < m.first+len(m.sites) {
				own = append(own, i-m.first)
			}
		}
		if len(own) > 0 {
			g := m.groupOf(own)
			m.cold = append(m.cold, g)
			m.others = nil
			c.places = append(c.places, place{m, g})
		}
	}
	return c
}

// put puts the probes of groups in. Hits wait meanwhile, each for a moment: those that stand
// already would hinder the rest.
func (x *images) put(list []place, by *guard.Guard) (err error) {
	x.prime(by)
	cpu := guard.CPUOf(x.process.PID)
	if err := x.setChanging(cpu); err != nil {
		return err
	}
	for _, at := range list {
		if err = x.probe(at, by, cpu); err != nil {
			break
		}
		if at.group.placed != nil {
			x.changes.add([]place{at}, at.group.placed.Took())
		}
	}
	return errors.Join(err, x.objects.Changing.Set(uint32(0)))
}

// staysPrimed is for how long probes that went in may come out at once: a window, as a rule.
const staysPrimed = 50 * time.Millisecond

// prime has probes go in and come out at once from now on, where that can be had: they change
// without it, too. While it waits for the kernel those that stand are hit as before.
func (x *images) prime(by *guard.Guard) {
	if x.mechanism.SupportsWindows() == nil {
		_ = by.Prime(x.mechanism, staysPrimed)
	}
}

// primeOut is prime, if probes of some places are to come out.
func (x *images) primeOut(list []place, by *guard.Guard) {
	if len(placedIn(list)) > 0 {
		x.prime(by)
	}
}

// longestChange is how long probes may change until hits wait no more: we may have been stopped.
const longestChange = 100 * time.Millisecond

// setChanging has hits wait for probes that change on a CPU; those on it do not.
func (x *images) setChanging(cpu int) error {
	const changing, changingOn = 1, 2 // as wpptrace.bpf.c has it
	v := uint32(changing)
	if cpu != guard.AnyCPU {
		v = uint32(changingOn + cpu)
	}
	until, err := clock(unix.CLOCK_MONOTONIC)
	if err == nil {
		err = x.objects.ChangingUntil.Set(until + uint64(longestChange))
	}
	if err == nil {
		err = x.objects.Changing.Set(v)
	}
	if err != nil {
		return fmt.Errorf("have hits wait: %w", err)
	}
	return nil
}

// probe puts the probes of a group in, in random order: the process is held up where the first of
// them are, and what it does when all are in must not depend on the place of that in the program.
// Where the image is not mapped, the kernel does so when it is.
func (x *images) probe(at place, by *guard.Guard, cpu int) error {
	m, g := at.mapped, at.group
	n := len(g.sites)
	if !g.isOut() {
		return nil
	}
	offsets, cookies := make([]uint64, n), make([]uint64, n)
	for k, i := range rand.Perm(n) {
		offset, ok := m.image.FileOffset(g.sites[i].Addr)
		if !ok || offset == 0 {
			return fmt.Errorf("%x has no place in the file", g.sites[i].Addr)
		}
		offsets[k], cookies[k] = offset, g.cookies[i]
		g.last = g.sites[i].Addr
	}
	m.bringTablesIn(x.process)
	var err error
	if g.placed, err = by.Probe(x.mechanism, m.file, x.objects.Hit, offsets, cookies,
		x.process.PID, cpu); err != nil {
		return fmt.Errorf("put in %d probes: %w", n, ProbeError(err))
	}
	return nil
}

// look is how often it is looked whether probes are out, longestLook for how long: another's may
// stand there.
const (
	look        = 100 * time.Microsecond
	longestLook = 200 * time.Millisecond
)

// takeOut takes the probes of groups out, which are primed. Hits wait meanwhile, as for put. The
// kernel goes on long after the last of them is out, for all that may be in a handler: the process
// does not wait for that, and awaitRemovals does.
func (x *images) takeOut(list []place, by *guard.Guard) error {
	placed := placedIn(list)
	if len(placed) == 0 {
		return nil
	}
	x.goingOn = true
	cpu := guard.CPUOf(x.process.PID)
	began := time.Now()
	err := errors.Join(x.setChanging(cpu), guard.BeginRemoval(cpu, placed...))
	stand := func() bool { return slices.ContainsFunc(list, x.stands) }
	for err == nil && stand() && time.Since(began) < longestLook {
		time.Sleep(look)
	}
	x.changes.add(list, time.Since(began))
	err = errors.Join(err, x.objects.Changing.Set(uint32(0)))
	if err == nil && stand() {
		err = by.AwaitRemovals()
	}
	for _, at := range list {
		at.group.placed = nil
	}
	return err
}

func placedIn(list []place) (placed []*guard.Probes) {
	for _, at := range list {
		if at.group.placed != nil {
			placed = append(placed, at.group.placed)
		}
	}
	return placed
}

// remove takes the probes of groups out, and waits until nobody is in a handler of theirs.
func (x *images) remove(list []place, by *guard.Guard) error {
	return errors.Join(x.takeOut(list, by), x.awaitRemovals(by))
}

// takeColdOut begins to take the probes of cold groups out, when those of the others are.
func (x *images) takeColdOut(pid int, by *guard.Guard) error {
	list := x.cold()
	if len(list) == 0 {
		return nil
	}
	var err error
	if !by.IsGone() { // they have gone with it else
		x.prime(by)
		x.goingOn = true
		err = guard.RemoveInTurn(pid, placedIn(list)...)
	}
	for _, at := range list {
		at.group.placed = nil
	}
	if err != nil {
		return fmt.Errorf("take the probes out of process %d: %w", pid, err)
	}
	return nil
}

// awaitRemovals waits until no hit goes on of probes that are out. With the guard they have gone.
func (x *images) awaitRemovals(by *guard.Guard) error {
	if !x.goingOn {
		return nil
	}
	x.goingOn = false
	select {
	case <-by.Gone():
		return nil
	default:
		return by.AwaitRemovals()
	}
}

// stands reports whether the probe of a group stands that comes out last.
func (x *images) stands(at place) bool {
	if at.group.placed == nil || at.mapped.absent {
		return false
	}
	var b [1]byte
	err := x.process.ReadMemory(b[:], at.mapped.base+at.group.last)
	return err == nil && b[0] == breakpoint
}
