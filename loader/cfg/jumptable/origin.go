package jumptable

import (
	"slices"

	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/x86"
)

// A location is a register, or a slot of the frame, at the start of a block.
type location struct {
	block int
	reg   int8 // -1 for a slot
	slot  absint.Slot
}

// A search finds where what registers and slots hold comes from, and the constants that it may be,
// and remembers its answers.
type search struct {
	flow  *flow
	slots trust
	// guesses takes the constants that are found for all that a location may hold. That is so with
	// the base of a table of distances from it, for a switch has one table: what else seems to be
	// there comes by a way that is never gone, as behind a call that does not return, or is the
	// base all the same, in a register that a callee spares, though it need not. So it is where a
	// table has addresses: then all labels are taken for its entries.
	guesses bool
	held    map[location][]uint64
	depth   int // of the sums of sums that are looked into
}

func newSearch(f *flow, slots trust) search {
	return search{flow: f, slots: slots, held: map[location][]uint64{}}
}

// A trust says which slots of the frame a search takes to hold what was stored there last.
type trust uint8

const (
	hiddenSlots trust = iota // those of a frame that no pointer leads to
	allSlots                 // what compilers put there for a while no pointer leads to
)

// memoryBit is the bit of resolver.wrote that says that a block may write the frame's memory.
const memoryBit = 1 << 16

// maxLocations bounds the search for the origins of one value.
const maxLocations = 1 << 14

// A visitor gets a value, and the block that has made it; outside for what was there at the
// routine's entry. It does not get what is only moved. It says whether to go on.
type visitor func(v absint.Value, block int) bool

const outside = -1

// origins visits every value that the location at may hold. It answers false when visit does, or
// when the search was given up, and returns the locations that it came through.
func (s *search) origins(at location, visit visitor) (seen map[location]bool, ok bool) {
	seen = map[location]bool{at: true}
	queue := []location{at}
	for len(queue) > 0 {
		at, queue = queue[0], queue[1:]
		blocks, known := s.flow.before(at)
		if len(seen) > maxLocations || s.flow.in.Steps.Load() <= 0 ||
			!known && !visit(absint.Value{},
				outside) {
			return nil, false
		}
		s.flow.in.Steps.Add(-1)
		for _, p := range blocks {
			from := at
			from.block = int(p)
			if !s.flow.mayWrite(at, int(p)) {
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
func (s *search) choices(v absint.Value, b int, visit visitor) (passed []location, ok bool) {
	values := []absint.Value{v}
	for i := 0; i < len(values); i++ {
		s.flow.in.Steps.Add(-int64(len(values)))
		v := values[i]
		if at, ok := s.passed(v, b); ok {
			passed = append(passed, at)
			continue
		}
		from := &s.flow.machine.Symbols[v.Sym]
		if from.Source != absint.Chosen || !v.IsWhole() {
			if !visit(v, b) {
				return nil, false
			}
			continue
		}
		for _, one := range [...]absint.Value{from.Value, from.Other} {
			if !slices.Contains(values, one) {
				values = append(values, one)
			}
		}
	}
	return passed, s.flow.in.Steps.Load() > 0
}

// keepsCallers says whether a location's value is the caller's where a routine begins, and at a
// landing pad that of the call that has thrown: a slot of the frame, or a register that belongs to
// the caller.
func (at location) keepsCallers() bool {
	return at.reg < 0 || x86.CalleeSaved.Has(at.reg)
}

// beginTrusting prepares the machine to run from where block b begins, as the search trusts what
// lies in the frame.
func (s *search) beginTrusting(b int) *absint.Machine {
	m := s.flow.begin(b)
	m.Memory.FrameAliased = m.Memory.FrameAliased && s.slots != allSlots
	return m
}

// valueBehind returns what the location's register or slot holds when block b has run.
func (s *search) valueBehind(at location, b int) absint.Value {
	n := s.flow.in.Blocks[b].Count
	if at.reg >= 0 {
		return s.registerAfter(at.reg, b, n)
	}
	m := s.beginTrusting(b)
	m.SlotAt(at.slot)
	s.flow.execute(b, n)
	for _, c := range m.Memory.Cells {
		if c.At == at.slot {
			return c.Value
		}
	}
	return m.Symbols.Fresh(absint.Computed)
}

// registerAfter returns what a register holds when the first n instructions of block b have run.
func (s *search) registerAfter(reg int8, b, n int) absint.Value {
	m := s.beginTrusting(b)
	s.flow.execute(b, n)
	return m.Regs[reg]
}

// passed recognises a value that block b only moved from where it was when the block began.
func (s *search) passed(v absint.Value, b int) (location, bool) {
	if !v.IsWhole() {
		return location{}, false
	}
	at, ok := s.flow.locationOf(v.Sym, b)
	return at, ok && s.isTraced(at)
}

// isTraced says whether the search goes on through a location.
func (s *search) isTraced(at location) bool {
	return at.reg >= 0 || s.slots == allSlots || s.flow.hidesFrame()
}

// A root is what a symbol of a table's base or anchor stands for.
type root struct {
	none  bool // there is no symbol
	at    location
	known bool // where it lay when the first block of the way to the table's jump began
}

// bases returns the constants that a table's base and anchor may stand for, in pairs, or nil when
// not all that the search comes to are constants. The machine's symbols are gone then.
func (s *search) bases(base, anchor root) (pairs [][2]uint64) {
	bases := s.constants(base)
	if anchor == base {
		for _, c := range bases {
			pairs = append(pairs, [2]uint64{c, c})
		}
		return pairs
	}
	anchors := s.constants(anchor)
	if len(bases) != 1 || len(anchors) != 1 {
		return nil
	}
	return [][2]uint64{{bases[0], anchors[0]}}
}

// maxSums bounds the constants that a sum may stand for, and how deep sums are made of sums.
const (
	maxSums     = 64
	maxSumDepth = 8
)

// constants returns the constants that a root may stand for; nil when that may be anything else.
// Those that are made of a constant and a number added elsewhere are among them, but for a search
// that guesses.
func (s *search) constants(r root) []uint64 {
	if r.none {
		return []uint64{0}
	}
	at := r.at
	if !r.known || !s.isTraced(at) {
		return nil
	}
	if out, ok := s.held[at]; ok {
		return out
	}
	s.held[at] = nil // what is made of itself may be anything
	var sums []sum
	var out []uint64
	guessed := false
	seen, ok := s.origins(at, func(v absint.Value, block int) bool {
		if block != outside && v.Form == absint.Constant {
			out = append(out, uint64(v.Off))
			return true
		}
		if s.guesses {
			guessed = true
			return true
		}
		part, ok := s.flow.sumOf(v, block)
		if ok {
			sums = append(sums, part)
		}
		return ok
	})
	if ok && len(sums) > 0 {
		seen = nil
		out, ok = s.addSums(out, sums)
	}
	if out = union(out, nil); !ok {
		out = nil
	}
	s.held[at] = out
	if len(out) == 1 && !guessed { // then what the search came through holds the same
		for passed := range seen {
			s.held[passed] = out
		}
	}
	return out
}

// addSums adds to a list the constants that sums may stand for. It answers false if one may be
// anything else, or there are too many.
func (s *search) addSums(out []uint64, sums []sum) ([]uint64, bool) {
	if s.depth == maxSumDepth {
		return nil, false
	}
	s.depth++
	defer func() { s.depth-- }()
	for _, part := range sums {
		bases := s.constants(root{at: part.at, known: true})
		s.flow.in.Steps.Add(-int64(len(bases)))
		if len(bases) == 0 || len(out)+len(bases) > maxSums {
			return nil, false
		}
		for _, base := range bases {
			out = append(out, base+part.off)
		}
	}
	return out, true
}

// A sum is what a location held, plus off.
type sum struct {
	at  location
	off uint64
}

// isTail says whether the unresolved indirect jump that ends block b leaves the routine: the frame
// is gone, and its target is a pointer that came as an argument, out of memory or from a call, or a
// routine's address, or one of several such, not the sum that an element of a relative table is
// part of. Where labels of the routine are mentioned at which the frame is gone as well, any
// pointer might be one.
func (s *Resolver) isTail(b int, labels bool) bool {
	i := s.flow.last(b)
	if labels || !s.flow.isFrameless(i) {
		return false
	}
	rm := s.flow.jumpsTo(i)
	if rm.Mem {
		in := s.flow.in.Image.SectionAt(uint64(rm.Disp))
		isConstantTable := rm.Base < 0 && rm.Index >= 0 && (in == nil || !in.Writable)
		return !isConstantTable || s.throughFunctions(b)
	}
	return s.sure.allOrigins(rm.Reg, b, s.flow.in.Blocks[b].Count,
		func(v absint.Value, block int) bool { return block == outside || s.flow.isPointer(v) })
}

// allOrigins says whether a register, when the first n instructions of block b have run, holds
// nothing but what accept accepts, wherever it comes from.
func (s *search) allOrigins(reg int8, b, n int, accept visitor) bool {
	places, ok := s.choices(s.registerAfter(reg, b, n), b, accept)
	for _, at := range places {
		if ok {
			_, ok = s.origins(at, accept)
		}
	}
	return ok
}
