package loads

import (
	"slices"

	"wpptrace/loader/plan"
)

// A Plan is what probes read of memory. It is immutable but for Append.
type Plan struct {
	Base  *plan.Plan
	Extra []Site // probes for values alone, behind those of Base.Sites in Looks
	Looks []Look // those of Base.Sites, then those of Extra
	Steps []Step // the first is End
	// Cases are what Switch steps choose from: how many steps they choose from, then their indices.
	Cases []uint32
	After map[uint64]uint32 // by return address of a call, as Base.Calls: where programs go on
}

// FirstExtra is the number, and the cookie, of the first probe for values alone: those of the base
// plan have numbers below.
const FirstExtra = plan.MaxSites / 2

// A Site is a probe for values alone: it makes no event.
type Site struct {
	Addr      uint64
	Routine   int // index in the base plan's Routines
	Block     int
	Insn      int // index in the block
	Condition uint8
	Stepped   bool
}

// A Look is what is read at a hit.
type Look struct {
	First [2]uint32 // by outcome: index in Steps of the first step; 0: nothing is read
	// Behind is the same of what was loaded before the hit, since external code had run: it comes
	// first where the hit shows all registers.
	Behind uint32
	// Leaves says, by outcome, that traced code may be left before the next hit, whatever the
	// program finds out: all registers are kept at that one.
	Leaves [2]bool
}

// Append makes the plan of another image a part of this one, as plan.Append does that of its base,
// which it calls: it fails as that does, and changes nothing then. The other plan is this one's
// from then on.
func (p *Plan) Append(part *Plan) error {
	sites, routines := len(p.Base.Sites), len(p.Base.Routines)
	ofPart := len(part.Base.Sites)
	if err := p.Base.Append(part.Base); err != nil {
		return err
	}
	steps, cases := uint32(len(p.Steps)), uint32(len(p.Cases))
	moved := func(step uint32) uint32 {
		if step == 0 {
			return 0
		}
		return step + steps
	}
	for _, s := range part.Steps {
		if s.Op == Switch {
			s.Jump += cases
		}
		p.Steps = append(p.Steps, s)
	}
	for at := 0; at < len(part.Cases); {
		n := part.Cases[at]
		p.Cases = append(p.Cases, n)
		for _, step := range part.Cases[at+1:][:n] {
			p.Cases = append(p.Cases, moved(step))
		}
		at += 1 + int(n)
	}
	for i := range part.Looks {
		l := &part.Looks[i]
		l.First[0], l.First[1], l.Behind = moved(l.First[0]), moved(l.First[1]), moved(l.Behind)
	}
	p.Looks = slices.Insert(p.Looks, sites, part.Looks[:ofPart]...)
	p.Looks = append(p.Looks, part.Looks[ofPart:]...)
	for _, s := range part.Extra {
		s.Routine += routines
		p.Extra = append(p.Extra, s)
	}
	offset := p.Base.Parts[len(p.Base.Parts)-1].Offset
	for ra, step := range part.After {
		p.After[ra+offset] = moved(step)
	}
	return nil
}
