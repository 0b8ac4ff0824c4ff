package wet

import (
	"fmt"
	"math"
	"slices"

	"wpptrace/compress/ops"
	"wpptrace/compress/wet/machine"
)

// End returns what is known at the end of the segment, before the marks that the thread's stream
// ends with: as Before does behind the last instruction.
func (g *Segment) End() (*Before, error) {
	w, err := g.atEnd()
	if err != nil {
		return nil, err
	}
	w.before.walker = w
	return &w.before, nil
}

func (g *Segment) atEnd() (*Walker, error) {
	return g.walk(math.MaxUint64, math.MaxUint64, g.to(), nil)
}

// to is the position behind the last path of the segment's thread.
func (g *Segment) to() uint64 {
	grammar := g.snapshot.Threads[g.thread].Grammar
	to := grammar.Length(0)
	for ; to > g.First(); to-- {
		for sym := range expand(grammar, to-1) {
			s := &g.snapshot.Symbols[sym]
			if !s.IsMark || s.Mark != ops.Cut && s.Mark != ops.Unwind {
				return to
			}
			break
		}
	}
	return to
}

// Begun returns an instruction that the thread began behind the last one of the segment, and that
// did not come to its end: it has written nothing, and what it would have read and written is not
// known. Where that is, is known if the last one leads there. It is as new as what Executed gives
// an observer, and stays good. It fails where there is no such instruction.
func (g *Segment) Begun(routine int, addr uint64) (*Executed, error) {
	w, err := g.atEnd()
	if err != nil {
		return nil, err
	}
	r := g.code.Routine(routine)
	if r == nil {
		return nil, fmt.Errorf("there are no instructions of routine %d", routine)
	}
	for i := range r.Blocks {
		at := r.Blocks[i].Addr
		for k := range r.Blocks[i].Insns {
			in := &r.Blocks[i].Insns[k]
			if at != addr {
				at += uint64(in.Len)
				continue
			}
			next := addr + g.code.Bias(r.Image) + uint64(in.Len)
			if known := w.leads.Way != machine.Faults && w.leads.Way != machine.Unsure; !known ||
				w.leads.To != next-uint64(in.Len) {
				w.forget()
			}
			w.machine.Step(in, next, nowhere{})
			e := &Executed{Place: Place{Symbol: g.to(), Routine: routine, Block: i, Insn: k},
				TID: g.snapshot.Threads[g.thread].TID, Addr: addr, Code: in,
				Accesses: slices.Clone(w.machine.Accesses()), FlagsUsed: w.machine.FlagsUsed(),
				walker: w}
			for j := range e.Accesses {
				e.Accesses[j].Known = machine.Unknown
			}
			return e, nil
		}
	}
	return nil, fmt.Errorf("routine %d has no instruction at %#x", routine, addr)
}

// nowhere is the memory of an instruction that reads and writes nothing.
type nowhere struct{}

func (nowhere) Load(uint64, []byte) machine.Knowledge   { return machine.Unknown }
func (nowhere) Store(uint64, []byte, machine.Knowledge) {}
