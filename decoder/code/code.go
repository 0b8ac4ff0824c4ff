package code

import (
	"wpptrace/compress/wet/machine"
	"wpptrace/loader/cfg"
)

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
