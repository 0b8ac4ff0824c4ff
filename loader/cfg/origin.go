package cfg

import (
	"slices"

	"wpptrace/loader/x86"
)

// A location is a register, or a slot of the frame, at the start of a block.
type location struct {
	block int
	reg   int8 // -1 for a slot
	slot  slot
}

// A holding asks for the constants that a location holds.
type holding struct {
	location
	ofDistances bool
}

// memoryBit is the bit of resolver.wrote that says that a block may write the frame's memory.
const memoryBit = 1 << 16

// maxLocations bounds the search for the origins of one value.
const maxLocations = 1 << 14

// origins visits every value that the location at may hold: what the instructions that reach it
// wrote, or ok = false at the routine's entry. It answers false when visit does, or when the search
// was given up, and returns the locations that it came through.
func (s *resolver) origins(at location, visit func(v value, written bool) bool) (seen map[location]bool, ok bool) {
	seen = map[location]bool{at: true}
	queue := []location{at}
	for len(queue) > 0 {
		at, queue = queue[0], queue[1:]
		before, known := s.before(at)
		if len(seen) > maxLocations || s.steps.Load() <= 0 || !known && !visit(value{}, false) {
			return nil, false
		}
		s.steps.Add(-1)
		for _, p := range before {
			from := at
			from.block = int(p)
			if !s.mayWrite(at, int(p)) {
				queue = from.enqueue(queue, seen)
				continue
			}
			passed, ok := s.choices(s.valueBehind(at, int(p)), int(p), visit)
			if !ok {
				return nil, false
			}
			for _, from := range passed {
				queue = from.enqueue(queue, seen)
			}
		}
	}
	return seen, true
}

// enqueue adds a location that was not seen yet to those whose values are looked for.
func (at location) enqueue(queue []location, seen map[location]bool) []location {
	if seen[at] {
		return queue
	}
	seen[at] = true
	return append(queue, at)
}

// choices visits what a value is that block b has made, each of those that it was chosen from, but
// for what was only moved from where it was when the block began: it returns those places.
func (s *resolver) choices(v value, b int, visit func(v value, written bool) bool) (passed []location, ok bool) {
	values := []value{v}
	for i := 0; i < len(values); i++ {
		s.steps.Add(-int64(len(values)))
		v := values[i]
		if at, ok := s.passed(v, b); ok {
			passed = append(passed, at)
			continue
		}
		from := &s.machine.symbols[v.sym]
		if from.source != chosen || !v.isWhole() {
			if !visit(v, true) {
				return nil, false
			}
			continue
		}
		for _, one := range [...]value{from.value, from.other} {
			if !slices.Contains(values, one) {
				values = append(values, one)
			}
		}
	}
	return passed, s.steps.Load() > 0
}

// before lists the blocks that a location's value comes out of. It reports false if it may come
// from elsewhere as well. What throws to a landing pad leaves the frame and the registers that
// belong to the caller as they were at the call.
func (s *resolver) before(at location) (blocks []int32, known bool) {
	const callersOwn = 1<<3 | 1<<5 | 0xf<<12 // rbx, rbp, r12 to r15
	preds := s.d.preds[at.block]
	if s.ofDistances {
		preds = s.likely(preds)
	}
	switch {
	case !s.entry[at.block]:
		return preds, true
	case at.reg >= 0 && callersOwn>>at.reg&1 == 0:
		return preds, false
	case s.ofDistances && (s.unthrown[at.block] || at.reg >= 0 && at.block == int(s.blockAt[s.d.entry])):
		return preds, true
	}
	return slices.Concat(preds, s.throwers[at.block]), len(s.throwers[at.block]) > 0
}

// likely leaves out blocks that end in a call from which control hardly comes back.
func (s *resolver) likely(blocks []int32) []int32 {
	return slices.DeleteFunc(slices.Clone(blocks), func(b int32) bool {
		end := s.d.blocks[b].End
		return (end == Call || end == CallInd) && oftenEnds(s.imported(s.d.last(int(b))))
	})
}

// linkThrowers finds the calls that each landing pad belongs to. A label that a nested function
// jumps to has none: it finds the registers as they may be.
func (s *resolver) linkThrowers() {
	s.throwers = make(map[int][]int32)
	for b := range s.d.blocks {
		for _, pad := range s.d.blocks[b].Pads {
			if !slices.Contains(s.d.labels, int(s.d.first[pad])) {
				s.throwers[pad] = append(s.throwers[pad], int32(b))
			}
		}
	}
	s.unthrown = make(map[int]bool)
	for _, pad := range s.d.pads {
		if len(s.throwers[pad]) == 0 && !slices.Contains(s.d.labels, int(s.d.first[pad])) {
			s.unthrown[pad] = true
		}
	}
	for _, i := range append([]int{s.d.entry}, s.d.others...) {
		delete(s.throwers, int(s.blockAt[i]))
		delete(s.unthrown, int(s.blockAt[i]))
	}
}

// valueBehind returns what the location's register or slot holds when block b has run.
func (s *resolver) valueBehind(at location, b int) value {
	n := len(s.d.blocks[b].Insns)
	if at.reg >= 0 {
		return s.registerAfter(at.reg, b, n)
	}
	m := &s.machine
	m.reset(s.cfaOf(b))
	m.slotAt(at.slot)
	s.execute(b, n)
	for _, c := range m.memory {
		if c.slot == at.slot {
			return c.value
		}
	}
	return m.fresh(computed)
}

// registerAfter returns what a register holds when the first n instructions of block b have run.
func (s *resolver) registerAfter(reg int8, b, n int) value {
	s.machine.reset(s.cfaOf(b))
	s.execute(b, n)
	return s.machine.regs[reg]
}

// passed tells a value that block b only moved from where it was when the block began.
func (s *resolver) passed(v value, b int) (location, bool) {
	if !v.isWhole() {
		return location{}, false
	}
	at, ok := s.locationOf(v.sym, b)
	return at, ok && (at.reg >= 0 || !s.inRegisters)
}

// locationOf returns where the number that a symbol stands for lay when block b began, the machine
// having run from there.
func (s *resolver) locationOf(sym int32, b int) (location, bool) {
	switch from := &s.machine.symbols[sym]; {
	case from.source == initial:
		return location{block: b, reg: from.reg}, true
	case from.source == loaded && from.slot.base == frameSymbol:
		return location{block: b, reg: -1, slot: from.slot}, true
	}
	return location{}, false
}

// mayWrite says whether block b may write the location's register or slot.
func (s *resolver) mayWrite(at location, b int) bool {
	if s.wrote[b] == 0 {
		s.wrote[b] = 1<<31 | s.writes(b)
	}
	if at.reg < 0 {
		return s.wrote[b]&memoryBit != 0
	}
	return s.wrote[b]>>at.reg&1 != 0
}

// writes returns the registers that block b may write, and memoryBit if it may write memory.
func (s *resolver) writes(b int) (out uint32) {
	bl := &s.d.blocks[b]
	for k := range bl.Insns {
		q := &bl.Insns[k]
		i := int(s.d.first[b]) + k
		if q.Kind == x86.Call || q.Kind == x86.CallInd || q.Kind == x86.Syscall {
			out |= uint32(s.clobbers(i))
			continue
		}
		op := newOperation(q, s.bytes(i))
		out |= uint32(writtenRegisters(&op))
		if op.rm.Mem && writesMemory(&op) || pushes(&q.Inst) {
			out |= memoryBit
		}
	}
	return out
}

// pushes says whether an instruction stores what it names in front of the stack.
func pushes(in *x86.Inst) bool {
	return in.Map == 0 && (in.Op&0xf8 == 0x50 || in.Op == 0x68 || in.Op == 0x6a)
}

// bases returns the constants that the symbols of a table's base and anchor, 0 for none, may stand
// for, in pairs: the machine has run from the start of block first. It returns nil when not all
// their origins are constants.
func (s *resolver) bases(first int, base, anchor int32) (pairs [][2]uint64) {
	// The search for origins uses the machine, and its symbols are gone then.
	baseAt, baseKnown := s.locationOf(base, first)
	anchorAt, anchorKnown := s.locationOf(anchor, first)
	bases := []uint64{0}
	if base != 0 {
		s.ofDistances = anchor == base
		bases = s.constants(baseAt, baseKnown)
		s.ofDistances = false
	}
	if anchor == base {
		for _, c := range bases {
			pairs = append(pairs, [2]uint64{c, c})
		}
		return pairs
	}
	anchors := []uint64{0}
	if anchor != 0 {
		anchors = s.constants(anchorAt, anchorKnown)
	}
	if len(bases) != 1 || len(anchors) != 1 {
		return nil
	}
	return [][2]uint64{{bases[0], anchors[0]}}
}

// constants returns the constants that a location, if known, may hold; nil when it may hold
// anything else.
func (s *resolver) constants(at location, known bool) []uint64 {
	if !known {
		return nil
	}
	if out, ok := s.held[holding{at, s.ofDistances}]; ok {
		return out
	}
	var out []uint64
	seen, ok := s.origins(at, func(v value, written bool) bool {
		if !written || v.form != constant {
			return false
		}
		if !slices.Contains(out, uint64(v.off)) {
			out = append(out, uint64(v.off))
		}
		return true
	})
	if !ok {
		out = nil
	}
	s.held[holding{at, s.ofDistances}] = out
	if len(out) == 1 { // then what the search came through holds the same
		for passed := range seen {
			s.held[holding{passed, s.ofDistances}] = out
		}
	}
	return out
}

// isTail says whether the unresolved indirect jump that ends block b leaves the routine: the frame
// is gone, and its target is a pointer that came as an argument, out of memory or from a call, or a
// routine's address, or one of several such, not the sum that an element of a relative table is
// part of. Where labels of the routine are mentioned at which the frame is gone as well, any
// pointer might be one.
func (s *resolver) isTail(b int, labels bool) bool {
	i := s.d.last(b)
	if labels || !s.isFrameless(i) {
		return false
	}
	_, rm, _ := s.operands(i)
	if rm.Mem {
		return true
	}
	return s.allOrigins(rm.Reg, b, len(s.d.blocks[b].Insns), func(v value, written bool) bool { return !written || s.isPointer(v) })
}

// allOrigins says whether a register, when the first n instructions of block b have run, holds
// nothing but what accept accepts, wherever it comes from; written is false for what it held when
// the routine was entered.
func (s *resolver) allOrigins(reg int8, b, n int, accept func(v value, written bool) bool) bool {
	places, ok := s.choices(s.registerAfter(reg, b, n), b, accept)
	for _, at := range places {
		if ok {
			_, ok = s.origins(at, accept)
		}
	}
	return ok
}

// isPointer says whether a value is a whole pointer from elsewhere.
func (s *resolver) isPointer(v value) bool {
	switch v.form {
	case symbolic:
		from := s.machine.symbols[v.sym].source
		return v.isWhole() && (from == loaded || from == result || from == initial)
	case element:
		return v.size == 8
	case constant:
		return s.inside(s.d, s.find(uint64(v.off))) < 0
	}
	return false
}
