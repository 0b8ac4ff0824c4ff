package code

import (
	"slices"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
)

// Of returns the code of a plan's traced routines, those that are appended later included. Each is
// decoded when it is asked for.
func Of(p *plan.Plan) *wet.Code {
	return wet.NewCode(func(number int) *wet.Routine {
		if number >= len(p.Routines) || !p.Routines[number].Traced() {
			return nil
		}
		pr := p.Routines[number]
		r := &wet.Routine{Blocks: make([]wet.Block, len(pr.Blocks))}
		r.Image = slices.IndexFunc(p.Parts, func(part plan.Part) bool {
			return number <= part.Routines[len(part.Routines)-1].ID
		})
		for i := range r.Blocks {
			r.Blocks[i] = wet.Block{Addr: pr.Blocks[i].Lo, Insns: Block(pr.Routine, i)}
		}
		return r
	})
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
