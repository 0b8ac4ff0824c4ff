package jumptable

import (
	"slices"

	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/x86"
)

// MaxLabels is more labels than any routine has.
const MaxLabels = 1024

// variable finds the labels that the jump which ends block b may lead to where it goes to one of
// several that a register, or a place in a frame that no pointer leads to, was given.
func (s *Resolver) variable(b int) *Table {
	rm := s.flow.jumpsTo(s.flow.last(b))
	t := &Table{Check: absint.NoCheck}
	known := !rm.Mem && s.sure.allOrigins(rm.Reg, b, s.flow.in.Blocks[b].Count,
		func(v absint.Value, _ int) bool {
			if v.Form != absint.Constant {
				return false
			}
			to := s.flow.in.Code.Inside(s.flow.in.Code.Find(uint64(v.Off)))
			if !slices.Contains(t.Targets, to) {
				t.Targets = append(t.Targets, to)
			}
			return to >= 0
		})
	if !known {
		return nil
	}
	slices.Sort(t.Targets)
	return t
}

// anyLabel finds the labels that the jump which ends block b may lead to where it goes to one that
// memory, or who called the routine, holds, as in code that was translated to the labels of its
// operations. From within a frame it goes to no other routine, and to any of its own that something
// names.
func (s *Resolver) anyLabel(b int) *Table {
	if s.flow.isFrameless(s.flow.last(b)) || !s.isGiven(b) {
		return nil
	}
	targets := s.ownLabels()
	if len(targets) < minEntries || s.flow.in.Steps.Load() <= 0 {
		return nil
	}
	s.flow.in.Steps.Add(-int64(len(targets)))
	return &Table{Targets: targets, AnyLabel: true, loose: true, Check: absint.NoCheck}
}

// ownLabels returns all labels of the routine, none if not all may be known: where distances are
// added to one; where the routine keeps its stack pointer, it may have named one for jumps from
// elsewhere; and in a part that may be the routine's, data may have another. Shared.
func (s *Resolver) ownLabels() []int {
	if s.own == nil {
		s.own = []int{}
		if !s.keepsStack() && s.flow.in.OwnLabels &&
			(!s.tables.addsToLabels() || s.onlyStoresLabels()) {
			s.own = append(s.own, s.tables.withLabels(nil)...)
		}
	}
	return s.own
}

// isGiven says whether the address that the jump which ends block b goes to is a whole pointer from
// elsewhere.
func (s *Resolver) isGiven(b int) bool {
	rm := s.flow.jumpsTo(s.flow.last(b))
	if rm.Mem {
		return s.flow.isPointer(s.flow.run([]int{b}, s.flow.jumpOperand(b)))
	}
	return s.sure.allOrigins(rm.Reg, b, s.flow.in.Blocks[b].Count,
		func(v absint.Value, block int) bool { return block == outside || s.flow.isPointer(v) })
}

// keepsStack says whether the routine stores its stack pointer, as compilers do it for those that
// jump into it from elsewhere.
func (s *Resolver) keepsStack() bool {
	for b := range s.flow.in.Blocks {
		for k := range s.flow.in.Blocks[b].Count {
			e := s.flow.in.Code.Effects(s.flow.in.Blocks[b].First + k)
			if e.Operation == x86.Mov && e.Src.Reg == x86.RSP && e.Dst.Mem && e.Dst.Size > 1 {
				return true
			}
		}
	}
	return false
}

// onlyStoresLabels says whether code of the routine that takes the address of a label stores it at
// once: what is added to something then is added to no label, unless it is one that was loaded
// again.
func (s *Resolver) onlyStoresLabels() bool {
	for b := range s.flow.in.Blocks {
		count := s.flow.in.Blocks[b].Count
		for k := range count {
			i := s.flow.in.Blocks[b].First + k
			to := s.flow.in.Code.Inside(s.flow.in.Code.Find(s.flow.in.Code.TakenAddress(i)))
			if to < 0 || to == s.flow.in.Entry {
				continue
			}
			takes := s.flow.in.Code.Effects(i)
			if takes.Operation == x86.Mov && takes.Dst.Mem {
				continue
			}
			if k+1 == count {
				return false
			}
			if e := s.flow.in.Code.Effects(i + 1); e.Operation != x86.Mov || !e.Dst.Mem ||
				e.Src.Reg != takes.Dst.Reg {
				return false
			}
		}
	}
	return true
}

// anyLoose says whether a pointer may be a label that a table found holds as well, at which the
// frame is gone; what lies behind a table or in its unused entries may be in another that holds
// labels. Where the routine is entered is none.
func (s *Resolver) anyLoose(found map[int]*Table) bool {
	isLabel := func(i int) bool { return i != s.flow.in.Entry && s.flow.isFrameless(i) }
	for _, t := range found {
		if t.loose && slices.ContainsFunc(t.Targets, isLabel) || slices.ContainsFunc(t.Unused,
			isLabel) {
			return true
		}
	}
	return false
}

// throughFunctions says whether the jump that ends block b is one through a table that begins with
// a function, as the file has it: functions and labels share no table.
func (s *Resolver) throughFunctions(b int) bool {
	v := s.flow.run([]int{b}, s.flow.jumpOperand(b))
	if v.Form != absint.Element || v.Size != 8 {
		return false
	}
	pairs := s.sure.bases(s.flow.rootOf(v.Base, b), root{none: true})
	for _, pair := range pairs {
		if to, ok := s.tables.wordAt(uint64(v.Off)+pair[0], 8, true); !ok ||
			!s.flow.in.Code.IsEntry(s.flow.in.Code.Find(to)) {
			return false
		}
	}
	return len(pairs) > 0
}

// mayHaveLabel reports whether anything but the tables found mentions an instruction of the
// routine, other than where one is entered, at which the frame is gone: a jump through a pointer
// may go there.
func (s *Resolver) mayHaveLabel(found map[int]*Table) bool {
	known := Targets(found)
	for i := range s.flow.in.Labels {
		if !known[i] && s.flow.isFrameless(i) {
			return true
		}
	}
	return false
}

// Targets are the instructions that some tables lead to.
func Targets(found map[int]*Table) map[int]bool {
	known := map[int]bool{}
	for _, t := range found {
		for _, to := range slices.Concat(t.Targets, t.Unused) {
			known[to] = true
		}
	}
	return known
}
