package plan

import (
	"cmp"
	"slices"

	"wpptrace/loader/cfg"
)

// A Part is the share that an image has in a plan. To it, the other images are external
// code.
type Part struct {
	Program *cfg.Program
	// what makes of a link-time address of the image one that no other image of the plan has
	Offset   uint64
	Routines []*Routine
	Sites    []Site // in the order of their addresses
	First    int    // the index in Plan.Sites of the first
}

// spacing is what lies at least between images: the code of one does not refer so far beyond its
// end.
const spacing = 1 << 20

// Append makes another image's plan a part of this one, behind all that it has: what has a number
// keeps it. The other plan is this one's from then on. It fails, and changes nothing, if there
// would be too many sites.
func (p *Plan) Append(q *Plan) error {
	if len(p.Sites)+len(q.Sites) > p.most {
		return p.tooMany(len(p.Sites) + len(q.Sites))
	}
	last := p.Parts[len(p.Parts)-1]
	q.offset = (last.Offset + end(last.Program) + 2*spacing - 1) &^ (spacing - 1)
	for _, r := range q.Routines {
		r.ID += len(p.Routines)
	}
	for i := range q.Sites {
		q.Sites[i].Routine += len(p.Routines)
	}
	for ra, c := range q.Calls {
		if c.Caller > 0 {
			c.Caller += q.offset
		}
		p.Calls[ra+q.offset] = c
	}
	p.Parts = append(p.Parts, Part{Program: q.Program, Offset: q.offset, Routines: q.Routines,
		Sites: q.Sites, First: len(p.Sites)})
	p.Routines = append(p.Routines, q.Routines...)
	p.Sites = append(p.Sites, q.Sites...)
	return nil
}

// end is where the image of a program ends, a link-time address.
func end(p *cfg.Program) (end uint64) {
	for _, s := range p.Image.Segments {
		end = max(end, s.Addr+s.MemLen)
	}
	for _, s := range p.Image.Sections {
		end = max(end, s.Addr+uint64(len(s.Data)))
	}
	return end
}

// Containing returns the routine that covers an address of the plan, or nil.
func (p *Plan) Containing(addr uint64) *Routine {
	i, ok := slices.BinarySearchFunc(p.Parts, addr,
		func(part Part, addr uint64) int { return cmp.Compare(part.Offset, addr) })
	if !ok {
		i--
	}
	part := &p.Parts[i] // the first begins at 0
	if c := part.Program.Containing(addr - part.Offset); c != nil {
		return part.Routines[c.ID]
	}
	return nil
}
