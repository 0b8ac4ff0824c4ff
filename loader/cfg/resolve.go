package cfg

import (
	"slices"

	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// resolveTables resolves the indirect jumps of a routine whose blocks are built, and returns what
// it finds by the jumps' instructions. It resolves the tables first: a label that a switch's table
// holds is no reason to mistrust a tail jump. A jump that d.refused holds stays unresolved.
func (r *recovery) resolveTables(d *draft) map[int]*table {
	jumps := make([]int, 0, 8)
	for b := range d.blocks {
		if i := d.last(b); r.insns[i].Kind == x86.JmpInd && !d.refused[i] {
			jumps = append(jumps, b)
		}
	}
	if len(jumps) == 0 {
		return nil
	}
	s := r.newResolver(d)
	found := make(map[int]*table, len(jumps))
	astray := map[int]bool{}
	for _, b := range jumps {
		s.strays = false
		t := s.tableFor(b, false)
		if t == nil {
			t = s.computedEarlier(b)
		}
		if astray[b] = s.strays; t != nil && !s.strays {
			found[d.last(b)] = t
		}
	}
	jumps = slices.DeleteFunc(jumps, func(b int) bool { return astray[b] }) // these stay unresolved
	s.guessTables(jumps, found)
	_, labels := r.label(d, found, r.isFrameless)
	loose := r.anyLoose(d, found)
	for _, b := range jumps {
		switch i := d.last(b); {
		case found[i] != nil:
		case s.isTail(b, labels || loose && !s.throughFunctions(b)):
			found[i] = &table{tail: true, check: absint.NoCheck}
		default:
			t := s.variable(b)
			if t == nil {
				t = s.given(b)
			}
			if t != nil {
				found[i] = t
			}
		}
	}
	return found
}

// tableFor returns the table of the jump that ends a block, or nil.
func (s *resolver) tableFor(b int, guesses bool) *table {
	t := s.exploreFrom(b, goal{address: s.jumpOperand(b), jump: s.d.last(b), guesses: guesses})
	if t == nil || s.dropEndless(t, s.d.last(b)) && len(t.targets) == 0 {
		return nil
	}
	return t
}

// dropEndless drops the targets of a jump through a register that jump through the same one, and says whether there are such:
// they would lead to themselves for ever. What lies behind a table looks like that by chance.
func (s *resolver) dropEndless(t *table, jump int) bool {
	_, rm, _ := s.operands(jump)
	isEndless := func(i int) bool {
		_, to, _ := s.operands(i)
		return s.insns[i].Kind == x86.JmpInd && !rm.Mem && !to.Mem && to.Reg == rm.Reg
	}
	if !slices.ContainsFunc(t.targets, isEndless) {
		return false
	}
	t.targets, t.indexed, t.check = slices.DeleteFunc(union(t.targets, nil), isEndless), false, absint.NoCheck
	return true
}

// jumpOperand gives what the operand holds of the indirect jump that ends a block.
func (s *resolver) jumpOperand(b int) func(*absint.Machine) absint.Value {
	_, rm, _ := s.operands(s.d.last(b))
	return func(m *absint.Machine) absint.Value { return m.Get(rm) }
}

func (s *resolver) exploreFrom(b int, g goal) *table {
	s.runs = maxRuns
	t, how := s.explore([]int{b}, g)
	if how == unknown {
		return nil
	}
	s.steps.Add(-int64(len(t.targets)))
	return t
}

// computedEarlier returns the table of the jump that ends a block, or nil, where the address to jump to,
// or that of the element that holds it, is computed in other blocks: compilers move that out of the
// loop around a switch on what does not change there.
func (s *resolver) computedEarlier(b int) *table {
	v := s.run([]int{b}, s.jumpOperand(b))
	if at, ok := s.sure.passed(v, b); ok {
		return s.tableBehind(s.d.last(b), at, location.held, func(v absint.Value) bool { return v.Form == absint.Target || v.Form == absint.Element && v.Size == 8 })
	}
	from := s.machine.Symbols[v.Sym]
	if !v.IsWhole() || from.Source != absint.Loaded || from.Slot.Size != 8 || from.Slot.Disp != 0 {
		return nil
	}
	at, ok := s.locationOf(from.Slot.Base, b)
	if !ok || !s.sure.isTraced(at) {
		return nil
	}
	held := func(at location, m *absint.Machine) absint.Value {
		v, _ := at.held(m).Pointee(8)
		return v
	}
	return s.tableBehind(s.d.last(b), at, held, func(v absint.Value) bool { return v.Form == absint.Address })
}

// tableBehind returns the table that a jump's address is from where all that a location may hold is made in
// other blocks, maybe in other locations, and accepted: the jump may go where any of what they have made
// leads, by addr. It is nil where one is not found.
func (s *resolver) tableBehind(jump int, at location, addr func(location, *absint.Machine) absint.Value, accept func(absint.Value) bool) (all *table) {
	seen, ok := s.sure.origins(at, func(v absint.Value, block int) bool { return block != outside && accept(v) })
	if !ok {
		return nil
	}
	for from := range seen {
		blocks, _ := s.before(from)
		for _, p := range blocks {
			if !s.mayWrite(from, int(p)) {
				continue
			}
			if _, ok := s.sure.passed(s.sure.valueBehind(from, int(p)), int(p)); ok {
				continue
			}
			t := s.exploreFrom(int(p), goal{address: func(m *absint.Machine) absint.Value { return addr(from, m) }, jump: jump, early: true})
			if t == nil {
				return nil
			}
			all = merge(all, &table{targets: union(t.targets, nil), loose: t.loose, check: absint.NoCheck, sources: t.sources})
		}
	}
	return all
}

// hidesFrame reports whether the routine takes no address in its frame, as far as it is known, and calls nothing that
// returns once more when other code of the routine has run.
func (s *resolver) hidesFrame() bool {
	if s.hides == nil {
		hides := hidesFrame(s.d.blocks,
			func(addr uint64) image.CFA { return cfaAt(s.pieces[s.findPiece(addr)].Rows, addr) },
			func(q *Insn) []byte { return s.bytes(s.find(q.Addr)) }) && !s.mayCallWhatReturnsTwice(s.d)
		s.hides = &hides
	}
	return *s.hides
}

// held is what a machine has in the location's register or slot.
func (at location) held(m *absint.Machine) absint.Value {
	if at.reg >= 0 {
		return m.Regs[at.reg]
	}
	return m.SlotAt(at.slot)
}

// guessTables adds tables for jumps that none is found for, by guessing their bases (search.guesses).
// Each table of a routine is some jump's own, so that those of other jumps are passed over: a base that
// is in the register by a way that is never gone, and belongs to another switch, is not taken. What
// that leaves to one jump is passed over for the others; only where it leaves several to each may a
// jump go through any of them.
func (s *resolver) guessTables(jumps []int, found map[int]*table) {
	s.claimed = map[uint64]bool{}
	s.claim(found)
	for {
		one, several := map[int]*table{}, map[int]*table{}
		for _, b := range jumps {
			i := s.d.last(b)
			if found[i] != nil {
				continue
			}
			if t := s.tableFor(b, true); t != nil && len(t.sources) == 1 {
				one[i] = t
			} else if t != nil {
				several[i] = t
			}
		}
		guessed := one
		if len(one) == 0 {
			guessed = several
		}
		if len(guessed) == 0 {
			return
		}
		s.claim(guessed)
		for i, t := range guessed {
			if sufficient(t, guessed) {
				found[i] = t
			}
		}
	}
}

// claim notes the tables as some jump's.
func (s *resolver) claim(tables map[int]*table) {
	for _, t := range tables {
		for _, at := range t.sources {
			s.claimed[at] = true
		}
	}
}

// sufficient says whether those that share tables with t, itself among them, may have one each.
func sufficient(t *table, all map[int]*table) bool {
	sharers, sources := 0, t.sources
	for _, u := range all {
		if slices.ContainsFunc(u.sources, func(at uint64) bool { return slices.Contains(t.sources, at) }) {
			sharers++
			sources = union(sources, u.sources)
		}
	}
	return sharers <= len(sources)
}

// isFrameless says whether the frame is gone, or not there yet, at an instruction.
func (r *recovery) isFrameless(i int) bool {
	return r.frameAt(i) == entryCFA
}

// newResolver prepares the search for values in a routine whose blocks are built.
func (r *recovery) newResolver(d *draft) *resolver {
	d.linkPreds()
	s := &resolver{
		recovery: r, d: d, entry: make([]bool, len(d.blocks)), wrote: make([]uint32, len(d.blocks)),
		known: map[extent]entries{},
	}
	s.sure, s.likely = newSearch(s, hiddenSlots), newSearch(s, allSlots)
	s.likely.guesses = true
	s.entry[r.blockAt[d.entry]] = true
	for _, i := range d.others {
		s.entry[r.blockAt[i]] = true
	}
	for _, pad := range d.pads {
		s.entry[pad] = true
	}
	s.linkThrowers()
	return s
}

func sameTables(a, b map[int]*table) bool {
	if len(a) != len(b) {
		return false
	}
	for i, t := range a {
		if u := b[i]; u == nil || t.tail != u.tail || !slices.Equal(t.targets, u.targets) {
			return false
		}
	}
	return true
}
