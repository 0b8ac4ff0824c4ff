package jumptable

import (
	"slices"

	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// A flow follows values through the blocks of one routine.
type flow struct {
	in      Input
	machine absint.Machine
	// by block: control also comes from elsewhere (the entry, landing pads)
	entry    []bool
	throwers map[int][]int32 // by landing pad: the blocks whose calls throw to it
	// by block: registers that it may write, and memoryBit; 0 until asked for
	wrote      []uint32
	hidesFrame func() bool // in.HidesFrame, asked once
}

// A reader reads tables that the file holds.
type reader struct {
	flow  *flow
	known map[extent]entries
	// a table that the jump may be through has an entry that leads to code of no routine, or amid
	// another's
	leadsOutside bool
	adds         *bool // what addsToLabels answers; nil until asked for
	labels       []int // all that may be one in the routine; nil until asked for
	// instructions in others' parts that tables may lead to, or might have
	contested []int
}

// last is the last instruction of a block.
func (s *flow) last(b int) int { return s.in.Blocks[b].First + s.in.Blocks[b].Count - 1 }

// jumpsTo is the operand of an indirect jump.
func (s *flow) jumpsTo(jump int) x86.Operand { return s.in.Code.Effects(jump).Src }

// wroteAny says whether block b may write one of some registers.
func (s *flow) wroteAny(b int, registers x86.Set) bool {
	for reg := range int8(16) {
		if registers.Has(reg) && s.mayWrite(location{block: b, reg: reg}, b) {
			return true
		}
	}
	return false
}

// addressComesOf returns the registers, as a way begins, of which the address comes that the jump
// behind it goes to. ok is false if it comes of memory, which may change, or of anything that is
// not usual.
func (s *flow) addressComesOf(way []int) (needed x86.Set, ok bool) {
	for _, b := range way {
		for k := s.in.Blocks[b].Count - 1; k >= 0; k-- {
			e := s.in.Code.Effects(s.in.Blocks[b].First + k)
			if needed, ok = comesOf(&e, needed); !ok {
				return 0, false
			}
		}
	}
	return needed, true
}

// run executes the blocks of a way, the last first, and returns the address that is then to be
// jumped to.
func (s *flow) run(way []int, address func(*absint.Machine) absint.Value) absint.Value {
	m := s.begin(way[len(way)-1])
	for k := len(way) - 1; k > 0; k-- {
		s.execute(way[k], s.in.Blocks[way[k]].Count)
		s.branch(way[k], way[k-1])
	}
	s.execute(way[0], s.in.Blocks[way[0]].Count)
	return address(m)
}

// begin prepares the machine to run from where block b begins. What lies in the frame survives
// calls and stores through pointers where none can point there.
func (s *flow) begin(b int) *absint.Machine {
	s.machine.Reset(s.cfaOf(b))
	s.machine.Memory.FrameAliased = !s.hidesFrame()
	return &s.machine
}

// branch notes what it says that block b goes on to block to: of the index of a table, which a jump
// that is never taken bounds, too, or of the register that it has jumped through.
func (s *flow) branch(b, to int) {
	bl, i := &s.in.Blocks[b], s.last(b)
	switch s.in.Code.Kind(i) {
	case x86.JmpInd:
		if rm := s.jumpsTo(i); !rm.Mem {
			s.machine.Regs[rm.Reg] = absint.Number(s.in.Blocks[to].Lo)
		}
		return
	case x86.Jcc:
	default:
		return
	}
	parts := bl.Succ[0] != bl.Succ[1]
	if parts || bl.NeverTaken {
		s.machine.Branch(s.in.Code.Effects(i).Condition, parts && bl.Succ[0] == to, b)
	}
}

// execute runs the first n instructions of a block, but for the jump at its end.
func (s *flow) execute(b, n int) {
	s.in.Steps.Add(-int64(n))
	for k := range n {
		i := s.in.Blocks[b].First + k
		switch s.in.Code.Kind(i) {
		case x86.Jcc, x86.Jmp, x86.JmpInd, x86.Ret, x86.Trap:
		case x86.Loop:
			s.machine.ForgetRegisters(x86.SetOf(x86.RCX), absint.Computed)
		case x86.Call, x86.CallInd, x86.Syscall:
			s.machine.Call(s.in.Code.Clobbers(i))
		default:
			e := s.in.Code.Effects(i)
			s.machine.Step(&e)
		}
	}
}

func (s *flow) cfaOf(b int) image.CFA {
	return s.in.Code.CFA(s.in.Blocks[b].First)
}

// jumpOperand gives what the operand holds of the indirect jump that ends a block.
func (s *flow) jumpOperand(b int) func(*absint.Machine) absint.Value {
	rm := s.jumpsTo(s.last(b))
	return func(m *absint.Machine) absint.Value { return m.Get(rm) }
}

// isFrameless says whether the frame is gone, or not there yet, at an instruction.
func (s *flow) isFrameless(insn int) bool { return s.in.Code.CFA(insn) == absint.EntryCFA }

// before has the edges of the control flow graph, and those from what throws to a landing pad.
func (s *flow) before(at location) (blocks []int32, known bool) {
	preds := s.in.Blocks[at.block].Preds
	switch {
	case !s.entry[at.block]:
		return preds, true
	case !at.keepsCallers():
		return preds, false
	}
	return slices.Concat(preds, s.throwers[at.block]), len(s.throwers[at.block]) > 0
}

// linkThrowers finds the calls that each landing pad belongs to. A label that a nested function
// jumps to has none: it finds the registers as they may be.
func (s *flow) linkThrowers() {
	s.throwers = make(map[int][]int32)
	for b := range s.in.Blocks {
		for _, pad := range s.in.Blocks[b].Pads {
			if !slices.Contains(s.in.Receivers, s.in.Blocks[pad].First) {
				s.throwers[pad] = append(s.throwers[pad], int32(b))
			}
		}
	}
	for _, b := range s.in.Entries {
		delete(s.throwers, b)
	}

}

// locationOf returns where the number that a symbol stands for lay when block b began, the machine
// having run from there.
func (s *flow) locationOf(sym int32, b int) (location, bool) {
	switch from := &s.machine.Symbols[sym]; {
	case from.Source == absint.Initial:
		return location{block: b, reg: from.Reg}, true
	case from.Source == absint.Loaded && from.Slot.Base == absint.FrameSymbol && !from.Stored:
		return location{block: b, reg: -1, slot: from.Slot}, true
	}
	return location{}, false
}

// mayWrite says whether block b may write the location's register or slot.
func (s *flow) mayWrite(at location, b int) bool {
	if s.wrote[b] == 0 {
		s.wrote[b] = 1<<31 | s.writes(b)
	}
	if at.reg < 0 {
		return s.wrote[b]&memoryBit != 0
	}
	return s.wrote[b]>>at.reg&1 != 0
}

// writes returns the registers that block b may write, and memoryBit if it may write memory.
func (s *flow) writes(b int) (out uint32) {
	bl := &s.in.Blocks[b]
	for i := bl.First; i < bl.First+bl.Count; i++ {
		switch s.in.Code.Kind(i) {
		case x86.Call, x86.CallInd, x86.Syscall:
			out |= uint32(s.in.Code.Clobbers(i))
			continue
		case x86.Jmp, x86.Jcc, x86.JmpInd:
			continue
		}
		e := s.in.Code.Effects(i)
		out |= uint32(e.Written())
		if _, _, stores := e.Stores(); stores || e.Operation == x86.Push {
			out |= memoryBit
		}
	}
	return out
}

func (s *flow) rootOf(sym int32, first int) (r root) {
	if sym == 0 {
		return root{none: true}
	}
	r.at, r.known = s.locationOf(sym, first)
	return r
}

// sumOf recognises a value that block b made of what a location held when it began, and of a
// number.
func (s *flow) sumOf(v absint.Value, b int) (sum, bool) {
	if b == outside || v.Form != absint.Symbolic || v.Bits != 64 || v.Dirty {
		return sum{}, false
	}
	at, ok := s.locationOf(v.Sym, b)
	return sum{at, uint64(v.Off)}, ok
}

// isPointer says whether a value is a whole pointer from elsewhere, or to the routine itself.
func (s *flow) isPointer(v absint.Value) bool {
	switch v.Form {
	case absint.Symbolic:
		from := s.machine.Symbols[v.Sym].Source
		return v.IsWhole() && (from == absint.Loaded || from == absint.Result ||
			from == absint.Initial)
	case absint.Element:
		return v.Size == 8
	case absint.Constant:
		to := s.in.Code.Inside(s.in.Code.Find(uint64(v.Off)))
		return to < 0 || to == s.in.Entry
	}
	return false
}
