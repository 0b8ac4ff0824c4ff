package jumptable

import (
	"slices"

	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/x86"
)

// Resolve finds where the indirect jumps of a routine lead, and returns what it finds by the jumps'
// instructions; a jump for which it has nothing is unresolved. Contested are instructions in other
// routines' parts that tables may lead to, or might have. Jumps are the blocks that they end. It
// resolves the tables first: a label that a switch's table holds is no reason to mistrust a tail
// jump.
func Resolve(in Input, jumps []int) (found map[int]*Table, contested []int) {
	s := New(in)
	found = make(map[int]*Table, len(jumps))
	astray := map[int]bool{}
	for _, b := range jumps {
		s.tables.leadsOutside = false
		t := s.tableFor(b, false)
		if t == nil {
			t = s.computedEarlier(b)
		}
		if astray[b] = s.tables.leadsOutside; t != nil && !s.tables.leadsOutside {
			found[s.flow.last(b)] = t
		}
	}
	jumps = slices.DeleteFunc(jumps, func(b int) bool { return astray[b] }) // these stay unresolved
	s.guessTables(jumps, found)
	labels, loose := s.mayHaveLabel(found), s.anyLoose(found)
	for _, b := range jumps {
		switch i := s.flow.last(b); {
		case found[i] != nil:
		case s.isTail(b, labels || loose && !s.throughFunctions(b)):
			found[i] = &Table{Tail: true, Check: absint.NoCheck}
		default:
			t := s.variable(b)
			if t == nil {
				t = s.anyLabel(b)
			}
			if t != nil {
				found[i] = t
			}
		}
	}
	return found, s.tables.contested
}

// tableFor returns the table of the jump that ends a block, or nil.
func (s *Resolver) tableFor(b int, guesses bool) *Table {
	t := s.exploreFrom(b, goal{address: s.flow.jumpOperand(b), jump: s.flow.last(b),
		guesses: guesses})
	if t == nil || s.dropEndless(t, s.flow.last(b)) && len(t.Targets) == 0 {
		return nil
	}
	return t
}

// dropEndless drops the targets of a jump through a register that jump through the same one, and
// says whether there are such: they would lead to themselves for ever. What lies behind a table
// looks like that by chance.
func (s *Resolver) dropEndless(t *Table, jump int) bool {
	rm := s.flow.jumpsTo(jump)
	isEndless := func(i int) bool {
		return s.flow.in.Code.Kind(i) == x86.JmpInd && !rm.Mem && s.flow.jumpsTo(i).Reg == rm.Reg
	}
	if !slices.ContainsFunc(t.Targets, isEndless) {
		return false
	}
	t.Targets, t.Indexed, t.Check = slices.DeleteFunc(union(t.Targets, nil),
		isEndless), false, absint.NoCheck
	return true
}

func (s *Resolver) exploreFrom(b int, g goal) *Table {
	s.runs = maxRuns
	t, how := s.explore([]int{b}, g)
	if how == unknown {
		return nil
	}
	s.flow.in.Steps.Add(-int64(len(t.Targets)))
	return t
}

// computedEarlier returns the table of the jump that ends a block, or nil, where the address to
// jump to, or that of the element that holds it, is computed in other blocks: compilers move that
// out of the loop around a switch on what does not change there.
func (s *Resolver) computedEarlier(b int) *Table {
	v := s.flow.run([]int{b}, s.flow.jumpOperand(b))
	if at, ok := s.sure.passed(v, b); ok {
		return s.tableBehind(s.flow.last(b), at, location.held,
			func(v absint.Value) bool {
				return v.Form == absint.Target || v.Form == absint.Element && v.Size == 8
			})
	}
	from := s.flow.machine.Symbols[v.Sym]
	if !v.IsWhole() || from.Source != absint.Loaded || from.Slot.Size != 8 || from.Slot.Disp != 0 {
		return nil
	}
	at, ok := s.flow.locationOf(from.Slot.Base, b)
	if !ok || !s.sure.isTraced(at) {
		return nil
	}
	held := func(at location, m *absint.Machine) absint.Value {
		v, _ := at.held(m).Pointee(8)
		return v
	}
	return s.tableBehind(s.flow.last(b), at, held,
		func(v absint.Value) bool { return v.Form == absint.Address })
}

// tableBehind returns the table that a jump's address is from where all that a location may hold is
// made in other blocks, maybe in other locations, and accepted: the jump may go where any of what
// they have made leads, by addr. It is nil where one is not found.
func (s *Resolver) tableBehind(jump int, at location,
	addr func(location, *absint.Machine) absint.Value,
	accept func(absint.Value) bool) (all *Table) {
	seen, ok := s.sure.origins(at,
		func(v absint.Value, block int) bool { return block != outside && accept(v) })
	if !ok {
		return nil
	}
	for from := range seen {
		blocks, _ := s.flow.before(from)
		for _, p := range blocks {
			if !s.flow.mayWrite(from, int(p)) {
				continue
			}
			if _, ok := s.sure.passed(s.sure.valueBehind(from, int(p)), int(p)); ok {
				continue
			}
			t := s.exploreFrom(int(p),
				goal{address: func(m *absint.Machine) absint.Value { return addr(from, m) },
					jump: jump, early: true})
			if t == nil {
				return nil
			}
			all = merge(all, &Table{Targets: union(t.Targets, nil), loose: t.loose,
				Check: absint.NoCheck, sources: t.sources})
		}
	}
	return all
}

// held is what a machine has in the location's register or slot.
func (at location) held(m *absint.Machine) absint.Value {
	if at.reg >= 0 {
		return m.Regs[at.reg]
	}
	return m.SlotAt(at.slot)
}

// guessTables adds tables for jumps that none is found for, by guessing their bases
// (search.guesses). Each table of a routine is some jump's own, so that those of other jumps are
// passed over: a base that is in the register by a way that is never gone, and belongs to another
// switch, is not taken. What that leaves to one jump is passed over for the others; only where it
// leaves several to each may a jump go through any of them.
func (s *Resolver) guessTables(jumps []int, found map[int]*Table) {
	s.claimed = map[uint64]bool{}
	s.claim(found)
	for {
		one, several := map[int]*Table{}, map[int]*Table{}
		for _, b := range jumps {
			i := s.flow.last(b)
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
func (s *Resolver) claim(tables map[int]*Table) {
	for _, t := range tables {
		for _, at := range t.sources {
			s.claimed[at] = true
		}
	}
}

// sufficient says whether those that share tables with t, itself among them, may have one each.
func sufficient(t *Table, all map[int]*Table) bool {
	sharers, sources := 0, t.sources
	for _, u := range all {
		if slices.ContainsFunc(u.sources,
			func(at uint64) bool { return slices.Contains(t.sources, at) }) {
			sharers++
			sources = union(sources, u.sources)
		}
	}
	return sharers <= len(sources)
}

// Same reports whether jumps were resolved to the same.
func Same(a, b map[int]*Table) bool {
	if len(a) != len(b) {
		return false
	}
	for i, t := range a {
		if u := b[i]; u == nil || t.Tail != u.Tail || !slices.Equal(t.Targets, u.Targets) {
			return false
		}
	}
	return true
}
