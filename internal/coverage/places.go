package coverage

import (
	"cmp"
	"slices"

	"wpptrace/internal/traced"
	"wpptrace/loader/cfg"
	"wpptrace/loader/firsthit"
	"wpptrace/loader/x86"
)

// A site is a block with its probe.
type site struct {
	place   firsthit.Place
	routine int // index in Program.Routines
	block   int
}

// critical reports whether an outcome of the site's jump is known by its probe alone: where it
// leads, other ways lead too.
func (s *site) isJump() bool { return s.place.Condition != x86.NoCondition }

// sitesOf finds the sites of an image, by address. Blocks without are not observed: those of
// routines that are left out, and those in which no instruction may carry a probe.
func sitesOf(g *traced.Graphs) (list []site) {
	for _, r := range g.Routines {
		if g.LeftOut(r) != "" {
			continue
		}
		for i := range r.Blocks {
			if at, ok := placeIn(r, &r.Blocks[i]); ok {
				list = append(list, site{at, r.ID, i})
			}
		}
	}
	slices.SortFunc(list, func(a, b site) int {
		return cmp.Or(cmp.Compare(a.place.Addr, b.place.Addr), cmp.Compare(a.routine, b.routine))
	})
	return list
}

// placeIn chooses the instruction of a block that carries its probe: its conditional jump, whose
// outcomes are branches; else the first that the kernel emulates, or single-steps if there is none.
func placeIn(r *cfg.Routine, b *cfg.Block) (at firsthit.Place, ok bool) {
	last := &b.Insns[len(b.Insns)-1]
	if last.Kind == x86.Jcc && last.Class(r.Code(last)) == x86.Emulated {
		return firsthit.Place{Addr: last.Addr, Condition: last.Condition()}, true
	}
	for i := range b.Insns {
		q := &b.Insns[i]
		switch q.Class(r.Code(q)) {
		case x86.Emulated:
			return firsthit.Place{Addr: q.Addr, Condition: x86.NoCondition}, true
		case x86.Stepped:
			if !ok {
				at, ok = firsthit.Place{Addr: q.Addr, Condition: x86.NoCondition}, true
			}
		}
	}
	return at, ok
}

// entered counts the ways into each block of a routine: edges within it, and entries, landing pads
// and the like, which count as two.
func entered(r *cfg.Routine) []int {
	n := make([]int, len(r.Blocks))
	for _, i := range append(append([]int{r.Entry}, r.Others...), r.Pads...) {
		n[i] += 2
	}
	for i := range r.Blocks {
		b := &r.Blocks[i]
		for k, to := range b.Succ {
			if to >= 0 && !slices.Contains(b.Succ[:k], to) {
				n[to]++
			}
		}
		for _, to := range b.Pads {
			n[to]++
		}
	}
	return n
}
