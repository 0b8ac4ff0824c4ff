package values

import (
	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
)

// mostBackwards is how many instructions a recovery goes back at most.
const mostBackwards = 256

// recover finds out what registers hold at a place where external code has returned, by what the
// next hit has seen of all of them: known has a bit for each that is found out.
func (o *oracle) recover(at wet.Place) (values [16]uint64, known uint16) {
	insns, s := o.behind(at)
	if s == nil || !s.Whole {
		return values, 0
	}
	b := backwards{known: 0xffff}
	copy(b.values[:], s.Registers)
	for i := len(insns) - 1; i >= 0; i-- {
		b.undo(insns[i], o.recorder.scratch)
	}
	return b.values, b.known
}

// behind returns the instructions from a place to the next site, and what was seen there; nil: that
// is not known, or other code may run before.
func (o *oracle) behind(at wet.Place) (insns []*machine.Insn, s *wire.State) {
	if len(o.ahead) == 0 {
		return nil, nil
	}
	for i := range o.ahead {
		p := o.ahead[i].path
		if p == nil || i > 0 && !o.follows(insns, p) {
			return nil, nil
		}
		code, err := o.recorder.routine(p.Routine)
		if err != nil {
			return nil, nil
		}
		if i == 0 && (at.Block != p.Blocks[0] || at.Insn != p.Skip || at.Routine != p.Routine) {
			return nil, nil
		}
		for j, n := range p.Blocks {
			b := &code.Blocks[n]
			lo, hi := 0, len(b.Insns)
			if j == 0 {
				lo = p.Skip
			}
			if j == len(p.Blocks)-1 {
				hi -= p.Cut
			}
			sites := b.Sites
			for ; lo < hi; lo++ {
				for len(sites) > 0 && sites[0].Insn < lo {
					sites = sites[1:]
				}
				if len(sites) > 0 && sites[0].Insn == lo {
					return insns, o.seen(sites[0].Number)
				}
				insns = append(insns, &b.Insns[lo])
			}
		}
		if len(insns) > mostBackwards || o.ahead[i].times > 1 {
			return nil, nil
		}
	}
	return nil, nil
}

// seen is the state of the next hit, which is of a probe; nil: it is not there.
func (o *oracle) seen(number int) *wire.State {
	if number >= FirstExtra {
		return o.next(number, 0)
	}
	return o.next(number, 1)
}

// follows reports whether a path surely follows instructions directly.
func (o *oracle) follows(insns []*machine.Insn, p *path) bool {
	if len(insns) == 0 {
		return false
	}
	switch last := insns[len(insns)-1]; last.Op {
	case machine.JumpIf, machine.Jump:
		return p.Start == ops.StartLoop || p.Start == ops.StartExtra
	}
	return false
}

// A backwards is what registers hold before instructions, by what they hold behind.
type backwards struct {
	values [16]uint64
	known  uint16
}

func (b *backwards) knows(n uint8) bool { return b.known>>n&1 != 0 }

func (b *backwards) set(n uint8, v uint64) {
	b.values[n&15] = v
	b.known |= 1 << (n & 15)
}

// undo goes back behind an instruction: what it writes is not known before it, unless it follows
// from what it has made of it.
func (b *backwards) undo(in *machine.Insn, scratch *machine.Machine) {
	after := *b
	scratch.Forget(machine.Set{General: 0xffff, Flags: machine.AllFlags, Vectors: 0xffff})
	scratch.Step(in, 0, nothing{})
	b.known &^= scratch.Written()
	if in.Op == machine.Opaque {
		return
	}
	b.derive(in, &after)
}

// derive finds what an instruction has written, or read, of what it has made of it.
func (b *backwards) derive(in *machine.Insn, after *backwards) {
	dst, src := in.Dst.Reg&15, in.Src.Reg&15
	isReg := in.Dst.Class == machine.General && in.Dst.Size == 8
	known := isReg && after.knows(dst)
	v := after.values[dst]
	other, otherKnown := uint64(in.Imm), in.Src.Class == machine.Immediate
	if in.Src.Class == machine.General && in.Src.Size == 8 && src != dst {
		other, otherKnown = after.values[src], after.knows(src)
	}
	switch in.Op {
	case machine.Mov:
		if known && in.Src.Class == machine.General && in.Src.Size == 8 {
			b.set(src, v)
		}
	case machine.Lea:
		o := &in.Src
		if known && o.Reg < 16 && o.Index == machine.Zero && o.Segment == machine.Zero && !o.Short {
			b.set(o.Reg, v-uint64(o.Disp))
		}
	case machine.Add:
		if known && otherKnown {
			b.set(dst, v-other)
		}
	case machine.Sub:
		if known && otherKnown {
			b.set(dst, v+other)
		}
	case machine.Xor:
		if known && otherKnown {
			b.set(dst, v^other)
		}
	case machine.Inc:
		if known {
			b.set(dst, v-1)
		}
	case machine.Dec:
		if known {
			b.set(dst, v+1)
		}
	case machine.Not:
		if known {
			b.set(dst, ^v)
		}
	case machine.Neg:
		if known {
			b.set(dst, -v)
		}
	case machine.Push:
		if after.knows(machine.RSP) {
			b.set(machine.RSP, after.values[machine.RSP]+uint64(in.Size))
		}
	case machine.Pop:
		if after.knows(machine.RSP) && !(isReg && dst == machine.RSP) {
			b.set(machine.RSP, after.values[machine.RSP]-uint64(in.Size))
		}
	case machine.Leave:
		if after.knows(machine.RSP) {
			b.set(machine.RBP, after.values[machine.RSP]-8)
		}
	}
}

// nothing is a memory of which nothing is known.
type nothing struct{}

func (nothing) Load(uint64, []byte) machine.Knowledge   { return machine.Unknown }
func (nothing) Store(uint64, []byte, machine.Knowledge) {}
