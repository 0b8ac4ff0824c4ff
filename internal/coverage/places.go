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
	routine int // index in traced.Graphs.Routines
	block   int

	// Of what is new alone: no baseline has run the block, and these outcomes are to be seen,
	// however often the other one is.
	isNew bool
	wants [firsthit.Outcomes]bool
}

// isJump reports whether a conditional jump is probed.
func (s *site) isJump() bool { return s.place.Condition != x86.NoCondition }

// wantsAny reports whether any outcome is to be seen.
func (s *site) wantsAny() bool { return s.wants != [firsthit.Outcomes]bool{} }

// hasShown reports whether all outcomes that are to be seen have been.
func (s *site) hasShown(n [firsthit.Outcomes]uint64) bool {
	for o, wanted := range s.wants {
		if wanted && n[o] == 0 {
			return false
		}
	}
	return true
}

// sitesOf finds the sites of an image, by address. Blocks without are not observed: those of
// routines that are left out, and those in which no instruction may carry a probe.
func sitesOf(g *traced.Graphs) (list []site) {
	for _, r := range g.Routines {
		if g.LeftOut(r) != "" {
			continue
		}
		for i := range r.Blocks {
			if s, ok := siteIn(r, &r.Blocks[i]); ok {
				s.routine, s.block = r.ID, i
				list = append(list, s)
			}
		}
	}
	slices.SortFunc(list, func(a, b site) int {
		return cmp.Or(cmp.Compare(a.place.Addr, b.place.Addr), cmp.Compare(a.routine, b.routine))
	})
	return list
}

// siteIn chooses the instruction of a block that carries its probe: its conditional jump, whose
// outcomes are branches; else the first that the kernel emulates, or single-steps if there is none.
func siteIn(r *cfg.Routine, b *cfg.Block) (s site, ok bool) {
	last := &b.Insns[len(b.Insns)-1]
	if last.Kind == x86.Jcc && last.Class(r.Code(last)) == x86.Emulated {
		s.place = firsthit.Place{Addr: last.Addr, Condition: last.Condition()}
		return s, true
	}
	for i := range b.Insns {
		q := &b.Insns[i]
		switch q.Class(r.Code(q)) {
		case x86.Emulated:
			s.place = firsthit.Place{Addr: q.Addr, Condition: x86.NoCondition}
			return s, true
		case x86.Stepped:
			if !ok {
				s.place = firsthit.Place{Addr: q.Addr, Condition: x86.NoCondition, Dear: true}
				ok = true
			}
		}
	}
	return s, ok
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
