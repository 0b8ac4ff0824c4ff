package jumptable

import (
	"cmp"
	"slices"

	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// A certainty says how far the end of a table is known.
type certainty uint8

const (
	unknown certainty = iota // no table was found
	// the table ends where its entries cease to make sense, or another object begins
	open
	exact // the index is bounded
)

// The limits of the search for a table, over the ways that lead to its jump.
const (
	maxWay  = 12   // blocks
	maxRuns = 1000 // ways tried for one jump: what is checked again and again has hundreds
	// of a table whose index has no bound: one could be a pointer that stands alone
	minEntries = 2
)

// An extent is a table as far as reading it goes: many jumps may use the same.
type extent struct {
	form         absint.Form
	scale, size  uint8
	addr, anchor int64
	limit
}

// Entries are where those of a table lead.
type entries struct {
	targets []int
	unused  []int // where those lead that are no index's; they are none of the targets
	// the targets are not one for each index from 0 on: some are never taken, or begin before that
	skips bool
	full  bool // there are as many as the limit lets expect
	// the next leads to what may be a cold case, or those behind it into the routine: who knows
	// whose
	goesOn bool
	// the next, which the index may be that of, leads to code of no routine, or amid another's
	leadsOutside bool
}

// A goal is what the search for a table is for.
type goal struct {
	address func(*absint.Machine) absint.Value // to jump to, when the last block of a way has run
	jump    int                                // the indirect jump that it is for
	// other code runs between the last block and the jump
	early   bool
	guesses bool // the table's base may be guessed
}

// explore finds the table that the goal's address is from, reached along the way, which runs
// backwards. As long as the index is not bounded on the way, it is made longer, by each predecessor
// in turn: all of them have to lead to a table, and none around a loop, where the index could
// become another.
func (s *Resolver) explore(way []int, g goal) (*Table, certainty) {
	s.runs--
	t, how := s.read(way, s.flow.run(way, g.address), g)
	if how == exact {
		return t, how
	}
	first := way[len(way)-1]
	if s.runs <= 0 || s.flow.in.Steps.Load() <= 0 || len(way) >= maxWay || s.flow.entry[first] ||
		len(s.flow.in.Blocks[first].Preds) == 0 {
		return t, how
	}
	var all *Table
	worst := exact
	for _, p := range s.flow.in.Blocks[first].Preds {
		if s.addsNothing(append(way, int(p)), g) || len(way) <= mostAround && s.keepsAround(way,
			int(p), g) {
			continue
		}
		if slices.Contains(way, int(p)) {
			return t, how
		}
		u, h := s.explore(append(way, int(p)), g)
		if h <= how {
			return t, how
		}
		worst = min(worst, h)
		all = merge(all, u)
	}
	if all == nil {
		return t, how
	}
	return all, worst
}

// addsNothing says whether a way that begins with a jump through a register gives the goal's jump
// no target that it does not have: a number that is no distance leads amid what another has loaded,
// and what comes of its address there is an address of no code, or that address once more, or lies
// where the jump itself has led.
func (s *Resolver) addsNothing(way []int, g goal) bool {
	if g.early || s.flow.in.Code.Kind(s.flow.last(way[len(way)-1])) != x86.JmpInd {
		return false
	}
	s.runs--
	first, led := way[len(way)-1], &s.flow.in.Blocks[way[len(way)-2]]
	switch v := s.flow.run(way, g.address); {
	case v.Form == absint.Element || v.Form == absint.Target:
		// no table is where control goes through
		return v.Base == 0 && led.Lo <= uint64(v.Off) && uint64(v.Off) < led.Hi
	case v.Form == absint.Constant || v.Form == absint.Symbolic && v.Bits == 64 && !v.Dirty:
		bases := s.sure.constants(s.flow.rootOf(v.Sym, first))
		return len(bases) > 0 && !slices.ContainsFunc(bases, func(base uint64) bool {
			to := base + uint64(v.Off)
			in := s.flow.in.Image.SectionAt(to)
			return in != nil && in.Exec && !(first == way[0] && to == led.Lo)
		})
	}
	return false
}

// mostAround is how many blocks a way may have at which a loop begins that changes nothing.
const mostAround = 2

// keepsAround says whether predecessor p of the block that a way begins with is reached through
// that block alone, and none of the registers changes meanwhile that the address comes of: it is
// the same in each round of the loop, as compilers have it that load the entry of a switch before.
func (s *Resolver) keepsAround(way []int, p int, g goal) bool {
	first := way[len(way)-1]
	needed, ok := s.flow.addressComesOf(way)
	if !ok || g.early || s.flow.wroteAny(first, needed) {
		return false
	}
	seen, work := map[int]bool{first: true}, []int{p}
	for len(work) > 0 {
		k := work[len(work)-1]
		work = work[:len(work)-1]
		if seen[k] {
			continue
		}
		if s.flow.in.Steps.Add(-1-int64(len(s.flow.in.Blocks[k].Preds))) <= 0 || s.flow.entry[k] ||
			len(s.flow.in.Blocks[k].Preds) == 0 || s.flow.wroteAny(k, needed) {
			return false
		}
		seen[k] = true
		for _, before := range s.flow.in.Blocks[k].Preds {
			work = append(work, int(before))
		}
	}
	return true
}

// comesOf returns of which registers some come that an instruction may have set.
func comesOf(e *x86.Effects, needed x86.Set) (before x86.Set, ok bool) {
	switch {
	case e.Kind == x86.Jmp, e.Kind == x86.Jcc, e.Kind == x86.Other && e.Written()&needed == 0:
		return needed, true
	case e.Kind != x86.JmpInd && e.Kind != x86.Other:
		return 0, false
	}
	switch e.Operation {
	case x86.Jump: // that of the goal: of another nothing but the target it led to is known
		return x86.SetOf(e.Src.Reg), needed == 0 && !e.Src.Mem
	case x86.Lea:
		return needed&^x86.SetOf(e.Dst.Reg) | operandRegisters(e.Src), true
	case x86.Add:
		return needed | operandRegisters(e.Src) | x86.SetOf(e.Dst.Reg), isWhole(e) && e.Src.Reg >= 0
	case x86.Mov, x86.MovSX:
		return needed&^x86.SetOf(e.Dst.Reg) | x86.SetOf(e.Src.Reg), isWhole(e) && e.Src.Reg >= 0 &&
			(e.Operation == x86.Mov || e.Src.Size == 4)
	}
	return 0, false
}

// isWhole says whether an instruction writes all of a register.
func isWhole(e *x86.Effects) bool { return e.Dst.Reg >= 0 && e.Dst.Size >= 4 }

// operandRegisters are those of an operand, or of its address.
func operandRegisters(o x86.Operand) x86.Set { return x86.SetOf(o.Reg, o.Base, o.Index) }

// merge returns a table that has the targets of both.
func merge(a, b *Table) *Table {
	if a == nil {
		return b
	}
	if slices.Equal(a.Targets, b.Targets) && a.Indexed == b.Indexed {
		if a.Check != b.Check {
			a.Check = absint.NoCheck
		}
		a.loose = a.loose || b.loose
		a.sources = union(a.sources, b.sources)
		a.Unused = union(a.Unused, b.Unused)
		return a
	}
	return &Table{Targets: union(a.Targets, b.Targets), Unused: union(a.Unused, b.Unused),
		loose: a.loose || b.loose, Check: absint.NoCheck, sources: union(a.sources, b.sources)}
}

// union returns what is in either list, sorted.
func union[T cmp.Ordered](a, b []T) []T {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// read reads the table that v, the goal's address at the end of the way, is an element of.
func (s *Resolver) read(way []int, v absint.Value, g goal) (*Table, certainty) {
	switch {
	case v.Form == absint.Constant:
		if to := s.flow.in.Code.Inside(s.flow.in.Code.Find(uint64(v.Off))); to >= 0 {
			return &Table{Targets: []int{to}, loose: true, Check: absint.NoCheck}, exact
		}
		return nil, unknown
	case v.IsWhole():
		return s.readWord(way, v)
	case v.Form == absint.Element && v.Size == 8, v.Form == absint.Target &&
		(v.Size == 4 && v.Signed || v.Size == 8):
	default:
		return nil, unknown
	}
	l := s.limit(way, v, g)
	first := way[len(way)-1]
	base, anchor := s.flow.rootOf(v.Base, first), s.flow.rootOf(v.AnchorBase, first)
	t, how := s.readAll(v, l, &s.sure, base, anchor)
	switch {
	case how != unknown || base.none:
		return t, how
	case v.Form == absint.Element && l.frame != absint.EntryCFA:
		// no tail jump, but one to a label, whichever table holds it
		return s.readAll(v, unlimited(l.frame), &s.likely, base, anchor)
	case v.Form == absint.Target && g.guesses && anchor == base:
		return s.readAll(v, l, &s.likely, base, anchor)
	}
	return nil, unknown
}

// readAll reads the tables that v may be an element of, by what a search finds that their bases and
// anchors may be. Where it guesses, it passes over those that are other jumps' and those at which
// no table begins.
func (s *Resolver) readAll(v absint.Value, l limit, by *search, base,
	anchor root) (*Table, certainty) {
	var all *Table
	worst := exact
	for _, pair := range by.bases(base, anchor) {
		at := v
		at.Off += int64(pair[0])
		at.Anchor += int64(pair[1])
		if by.guesses && (s.claimed[uint64(at.Off)] || !s.tables.beginsTable(at)) {
			continue
		}
		t, how := s.tables.readAt(at, l)
		if how == unknown {
			return nil, unknown
		}
		worst = min(worst, how)
		all = merge(all, t)
	}
	if all == nil {
		return nil, unknown
	}
	return all, worst
}

// readWord reads v where it is one word that the program cannot write: an element of a table whose
// index is known.
func (s *Resolver) readWord(way []int, v absint.Value) (*Table, certainty) {
	from := s.flow.machine.Symbols[v.Sym]
	if from.Source != absint.Loaded || from.Slot.Size != 8 {
		return nil, unknown
	}
	t := &Table{loose: true, Check: absint.NoCheck}
	for _, pair := range s.sure.bases(s.flow.rootOf(from.Slot.Base, way[len(way)-1]),
		root{none: true}) {
		addr := uint64(from.Slot.Disp + int64(pair[0]))
		n := s.tables.entryAt(addr, absint.Value{Form: absint.Element, Size: 8})
		if !n.inside || s.tables.isWritten(addr) {
			return nil, unknown
		}
		t.Targets = append(t.Targets, n.to)
	}
	if len(t.Targets) == 0 {
		return nil, unknown
	}
	slices.Sort(t.Targets)
	t.Targets = slices.Compact(t.Targets)
	return t, exact
}

// A limit is what is known of a table's length.
type limit struct {
	most  uint64 // the greatest index
	unset uint64 // bits that no index has
	// exact: a comparison bounds the index; open: most is a guess, such as what its type can hold
	certainty certainty
	guess     bool      // that a table of the full length confirms
	negative  bool      // the least index may be less than 0
	reread    bool      // what was compared is memory that was read once more
	frame     image.CFA // at the jump
	check     absint.Check
}

// unlimited is the limit of a table of which no length is known.
func unlimited(frame image.CFA) limit {
	return limit{most: absint.MaxEntries - 1, certainty: open, frame: frame, check: absint.NoCheck}
}

// limit returns what is known of the length of the table that v is an element of.
func (s *Resolver) limit(way []int, v absint.Value, g goal) limit {
	l := unlimited(s.flow.in.Code.CFA(g.jump))
	if most, ok := absint.TypeBound(v.Index()); ok && most < l.most {
		l.most, l.guess = most, true
	}
	b, ok := s.flow.machine.IndexBound(v.Index())
	if !ok || l.guess && b.Max > l.most {
		return l
	}
	l.most, l.unset, l.guess, l.negative = b.Max, b.Unset, true, b.Negative
	if b.Compared {
		l.certainty = exact
		if l.reread = s.flow.machine.Symbols[b.Sym].Reread; !l.reread && s.isCheck(way,
			b.Check.Block) {
			l.check = b.Check
		}
	}
	return l
}

// isCheck says whether control reaches the way's jump only through the conditional jump of block b
// on it, without a call in between.
func (s *Resolver) isCheck(way []int, b int) bool {
	at := slices.Index(way, b)
	if at < 1 {
		return false
	}
	for k := range at {
		calls := k > 0 && s.flow.in.Blocks[way[k]].Returns
		if calls || s.flow.entry[way[k]] || len(s.flow.in.Blocks[way[k]].Preds) != 1 {
			return false
		}
	}
	return s.flow.in.Blocks[b].Conditional
}
