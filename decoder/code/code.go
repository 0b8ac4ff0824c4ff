package code

import (
	"slices"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp/callees"
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
	"wpptrace/loader/x86"
)

// Bound says where a slot of an image leads that nobody writes any more, by its link-time address:
// to a traced routine, whose address it returns less the image's bias; ok is false if that is not
// known.
type Bound func(image int, slot uint64) (to uint64, ok bool)

// Of returns the code of a plan's traced routines, those that are appended later included. Each is
// decoded when it is asked for. Calls by a stub are those of what it leads to, where that is bound;
// nil: nothing is.
func Of(p *plan.Plan, bound Bound) *wet.Code {
	return wet.NewCode(func(number int) *wet.Routine {
		if number >= len(p.Routines) || !p.Routines[number].Traced() {
			return nil
		}
		pr := p.Routines[number]
		r := &wet.Routine{Blocks: make([]wet.Block, len(pr.Blocks))}
		r.Image = slices.IndexFunc(p.Parts, func(part plan.Part) bool {
			last := len(part.Routines) - 1 // an image may have no routine
			return last >= 0 && number <= part.Routines[last].ID
		})
		for i := range r.Blocks {
			r.Blocks[i] = wet.Block{Addr: pr.Blocks[i].Lo, Insns: Block(pr.Routine, i)}
			if bound != nil {
				bind(&r.Blocks[i], r.Image, p.Parts[r.Image].Program.Image.Jumps(), bound)
			}
		}
		if cfg.HidesFrame(pr.Blocks, pr.CFA, pr.Code) {
			for i := range r.Blocks {
				r.Blocks[i].Frame = inFrame(pr.Routine, i)
			}
		}
		return r
	})
}

// bind makes the call or jump that ends a block lead to where its stub leads.
func bind(b *wet.Block, image int, jumps map[uint64]uint64, bound Bound) {
	if len(b.Insns) == 0 {
		return
	}
	last := &b.Insns[len(b.Insns)-1]
	if last.Op != machine.Call && last.Op != machine.Jump || last.Src.Class != machine.Immediate {
		return
	}
	next := b.Addr
	for i := range b.Insns {
		next += uint64(b.Insns[i].Len)
	}
	if slot, ok := jumps[next+uint64(last.Imm)]; ok {
		if to, ok := bound(image, slot); ok {
			last.Imm = int64(to - next)
		}
	}
}

// Block returns the instructions of a block of a routine whose graph is exact. Cost: some 100 ns an
// instruction.
func Block(r *cfg.Routine, block int) []machine.Insn {
	b := &r.Blocks[block]
	out := make([]machine.Insn, len(b.Insns))
	for i := range b.Insns {
		q := &b.Insns[i]
		out[i] = Insn(&q.Inst, r.Code(q))
	}
	return out
}

// inFrame lists the instructions of a block whose memory operand is in the routine's frame.
func inFrame(r *cfg.Routine, block int) (list []int) {
	b := &r.Blocks[block]
	for i := range b.Insns {
		q := &b.Insns[i]
		e := q.Effects(r.Code(q), q.End())
		o := e.Address()
		if (o.Base == x86.RSP || o.Base == x86.RBP) && e.Operation != x86.Lea &&
			r.HasPlace(o, q.Addr) {
			list = append(list, i)
		}
	}
	return list
}

// Callees returns the names of code that some routines, from number 0 on, call or jump to by a stub
// or a slot. imports has, of each image, what its file calls these.
func Callees(c *wet.Code, routines int, imports []map[uint64]string) callees.Names {
	names := callees.Names{}
	for number := range routines {
		r := c.Routine(number)
		if r == nil || r.Image >= len(imports) {
			continue
		}
		for i := range r.Blocks {
			next := r.Blocks[i].Addr
			for j := range r.Blocks[i].Insns {
				in := &r.Blocks[i].Insns[j]
				next += uint64(in.Len)
				if at, ok := in.Names(next); ok {
					if name, ok := imports[r.Image][at]; ok {
						names[callees.Address{Image: r.Image, Addr: at}] = name
					}
				}
			}
		}
	}
	return names
}
