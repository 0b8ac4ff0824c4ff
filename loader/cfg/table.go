package cfg

import (
	"cmp"
	"slices"

	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// A table is what an indirect jump was resolved to.
type table struct {
	tail    bool  // the jump leaves the routine
	targets []int // instructions
	holes   []int // instructions that entries lead to which no index is that of
	indexed bool  // targets holds one for each index, from 0 on
	given   bool  // it is none: the targets are all labels of the routine
	loose   bool  // targets are addresses that memory holds, and not for jumps through the table alone
	check   absint.Check
	sources []uint64 // where the tables lie that it was read from, but for single words
}

// A certainty says how far the end of a table is known.
type certainty uint8

const (
	unknown certainty = iota // no table was found
	open                     // the table ends where its entries cease to make sense, or another object begins
	exact                    // the index is bounded
)

// The limits of the search for a table, over the ways that lead to its jump.
const (
	maxWay     = 12   // blocks
	maxRuns    = 1000 // ways tried for one jump: what is checked again and again has hundreds
	minEntries = 2    // of a table whose index has no bound: one could be a pointer that stands alone
)

// A resolver finds what registers hold in one routine, the targets of its indirect jumps first of
// all.
type resolver struct {
	*recovery
	machine  absint.Machine
	d        *draft
	runs     int             // left for this jump
	entry    []bool          // by block: control also comes from elsewhere (the entry, landing pads)
	throwers map[int][]int32 // by landing pad: the blocks whose calls throw to it
	wrote    []uint32        // by block: registers that it may write, and memoryBit; 0 until asked for
	known    map[extent]entries
	hides    *bool           // what hidesFrame answers; nil until asked for
	sure     search          // proves where a value comes from
	likely   search          // takes a switch to have one table: see search.guesses
	claimed  map[uint64]bool // tables that jumps are known, or taken, to go through
	adds     *bool           // what addsToLabels answers; nil until asked for
	labels   []int           // all that may be one in the routine; nil until asked for
	strays   bool            // a table that the jump may be through has an entry that leads to code of no routine, or amid another's
	own      []int           // what ownLabels answers; nil until asked for
}

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
	holes   []int // where those lead that are no index's; they are none of the targets
	skips   bool  // the targets are not one for each index from nought on: some are never taken, or begin before that
	full    bool  // there are as many as the limit lets expect
	goesOn  bool  // the next leads to what may be a cold case, or those behind it into the routine: who knows whose
	strays  bool  // the next, which the index may be that of, leads to code of no routine, or amid another's
}

// A goal is what the search for a table is for.
type goal struct {
	address func(*absint.Machine) absint.Value // to jump to, when the last block of a way has run
	jump    int                                // the indirect jump that it is for
	early   bool                               // other code runs between the last block and the jump
	guesses bool                               // the table's base may be guessed
}

// explore finds the table that the goal's address is from, reached along the way, which runs
// backwards. As long as the index is not bounded on the way, it is made longer, by each predecessor
// in turn: all of them have to lead to a table, and none around a loop, where the index could
// become another.
func (s *resolver) explore(way []int, g goal) (*table, certainty) {
	s.runs--
	t, how := s.read(way, s.run(way, g.address), g)
	if how == exact {
		return t, how
	}
	first := way[len(way)-1]
	if s.runs <= 0 || s.steps.Load() <= 0 || len(way) >= maxWay || s.entry[first] || len(s.d.preds[first]) == 0 {
		return t, how
	}
	var all *table
	worst := exact
	for _, p := range s.d.preds[first] {
		if s.addsNothing(append(way, int(p)), g) || len(way) <= mostAround && s.keepsAround(way, int(p), g) {
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

// addsNothing says whether a way that begins with a jump through a register gives the goal's jump no target that it does
// not have: a number that is no distance leads amid what another has loaded, and what comes of its address there is an
// address of no code, or that address once more, or lies where the jump itself has led.
func (s *resolver) addsNothing(way []int, g goal) bool {
	if g.early || s.insns[s.d.last(way[len(way)-1])].Kind != x86.JmpInd {
		return false
	}
	s.runs--
	first, led := way[len(way)-1], &s.d.blocks[way[len(way)-2]]
	switch v := s.run(way, g.address); {
	case v.Form == absint.Element || v.Form == absint.Target: // no table is where control goes through
		return v.Base == 0 && led.Lo <= uint64(v.Off) && uint64(v.Off) < led.Hi
	case v.Form == absint.Constant || v.Form == absint.Symbolic && v.Bits == 64 && !v.Dirty:
		bases := s.sure.constants(s.rootOf(v.Sym, first))
		return len(bases) > 0 && !slices.ContainsFunc(bases, func(base uint64) bool {
			to := base + uint64(v.Off)
			in := s.im.SectionAt(to)
			return in != nil && in.Exec && !(first == way[0] && to == led.Lo)
		})
	}
	return false
}

// mostAround is how many blocks a way may have at which a loop begins that changes nothing.
const mostAround = 2

// keepsAround says whether predecessor p of the block that a way begins with is reached through that block alone, and none of
// the registers changes meanwhile that the address comes of: it is the same in each round of the loop, as compilers have it
// that load the entry of a switch before.
func (s *resolver) keepsAround(way []int, p int, g goal) bool {
	first := way[len(way)-1]
	needed, ok := s.addressComesOf(way)
	if !ok || g.early || s.wroteAny(first, needed) {
		return false
	}
	seen, work := map[int]bool{first: true}, []int{p}
	for len(work) > 0 {
		k := work[len(work)-1]
		work = work[:len(work)-1]
		if seen[k] {
			continue
		}
		if s.steps.Add(-1-int64(len(s.d.preds[k]))) <= 0 || s.entry[k] || len(s.d.preds[k]) == 0 || s.wroteAny(k, needed) {
			return false
		}
		seen[k] = true
		for _, before := range s.d.preds[k] {
			work = append(work, int(before))
		}
	}
	return true
}

// wroteAny says whether block b may write one of some registers.
func (s *resolver) wroteAny(b int, registers x86.Set) bool {
	for reg := range int8(16) {
		if registers.Has(reg) && s.mayWrite(location{block: b, reg: reg}, b) {
			return true
		}
	}
	return false
}

// addressComesOf returns the registers, as a way begins, of which the address comes that the jump behind it goes to. ok is
// false if it comes of memory, which may change, or of anything that is not usual.
func (s *resolver) addressComesOf(way []int) (needed x86.Set, ok bool) {
	for _, b := range way {
		for k := len(s.d.blocks[b].Insns) - 1; k >= 0; k-- {
			e := s.effects(int(s.d.first[b]) + k)
			if needed, ok = comesOf(&e, needed); !ok {
				return 0, false
			}
		}
	}
	return needed, true
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
		return needed&^x86.SetOf(e.Dst.Reg) | x86.SetOf(e.Src.Reg), isWhole(e) && e.Src.Reg >= 0 && (e.Operation == x86.Mov || e.Src.Size == 4)
	}
	return 0, false
}

// isWhole says whether an instruction writes all of a register.
func isWhole(e *x86.Effects) bool { return e.Dst.Reg >= 0 && e.Dst.Size >= 4 }

// operandRegisters are those of an operand, or of its address.
func operandRegisters(o x86.Operand) x86.Set { return x86.SetOf(o.Reg, o.Base, o.Index) }

// merge returns a table that has the targets of both.
func merge(a, b *table) *table {
	if a == nil {
		return b
	}
	if slices.Equal(a.targets, b.targets) && a.indexed == b.indexed {
		if a.check != b.check {
			a.check = absint.NoCheck
		}
		a.loose = a.loose || b.loose
		a.sources = union(a.sources, b.sources)
		a.holes = union(a.holes, b.holes)
		return a
	}
	return &table{targets: union(a.targets, b.targets), holes: union(a.holes, b.holes), loose: a.loose || b.loose, check: absint.NoCheck, sources: union(a.sources, b.sources)}
}

// union returns what is in either list, sorted.
func union[T cmp.Ordered](a, b []T) []T {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// run executes the blocks of a way, the last first, and returns the address that is then to be jumped to.
func (s *resolver) run(way []int, address func(*absint.Machine) absint.Value) absint.Value {
	m := s.begin(way[len(way)-1])
	for k := len(way) - 1; k > 0; k-- {
		s.execute(way[k], len(s.d.blocks[way[k]].Insns))
		s.branch(way[k], way[k-1])
	}
	s.execute(way[0], len(s.d.blocks[way[0]].Insns))
	return address(m)
}

// begin prepares the machine to run from where block b begins. What lies in the frame survives calls and stores through
// pointers where none can point there.
func (s *resolver) begin(b int) *absint.Machine {
	s.machine.Reset(s.cfaOf(b))
	s.machine.FrameAliased = !s.hidesFrame()
	return &s.machine
}

// branch notes what it says that block b goes on to block to: of the index of a table, which a jump that is never taken
// bounds, too, or of the register that it has jumped through.
func (s *resolver) branch(b, to int) {
	bl, i := &s.d.blocks[b], s.d.last(b)
	switch s.insns[i].Kind {
	case x86.JmpInd:
		if _, rm, _ := s.operands(i); !rm.Mem {
			s.machine.Regs[rm.Reg] = absint.Number(s.d.blocks[to].Lo)
		}
		return
	case x86.Jcc:
	default:
		return
	}
	parts := bl.Succ[0] != bl.Succ[1]
	if parts || s.neverTaken(s.d, i) {
		s.machine.Branch(s.insns[i].Condition(), parts && bl.Succ[0] == to, b)
	}
}

// execute runs the first n instructions of a block, but for the jump at its end.
func (s *resolver) execute(b, n int) {
	s.steps.Add(-int64(n))
	for k := range n {
		switch q := &s.d.blocks[b].Insns[k]; q.Kind {
		case x86.Jcc, x86.Jmp, x86.JmpInd, x86.Ret, x86.Trap:
		case x86.Loop:
			s.machine.ForgetRegisters(x86.SetOf(x86.RCX), absint.Computed)
		case x86.Call, x86.CallInd, x86.Syscall:
			s.machine.Call(s.clobbers(int(s.d.first[b]) + k))
		default:
			e := s.effects(int(s.d.first[b]) + k)
			s.machine.Step(&e)
		}
	}
}

func (s *resolver) cfaOf(b int) image.CFA {
	p := &s.pieces[s.pieceOf[s.d.first[b]]]
	return cfaAt(p.Rows, s.d.blocks[b].Lo)
}

// read reads the table that v, the goal's address at the end of the way, is an element of.
func (s *resolver) read(way []int, v absint.Value, g goal) (*table, certainty) {
	switch {
	case v.Form == absint.Constant:
		if to := s.inside(s.d, s.find(uint64(v.Off))); to >= 0 {
			return &table{targets: []int{to}, loose: true, check: absint.NoCheck}, exact
		}
		return nil, unknown
	case v.IsWhole():
		return s.readWord(way, v)
	case v.Form == absint.Element && v.Size == 8, v.Form == absint.Target && (v.Size == 4 && v.Signed || v.Size == 8):
	default:
		return nil, unknown
	}
	l := s.limit(way, v, g)
	first := way[len(way)-1]
	base, anchor := s.rootOf(v.Base, first), s.rootOf(v.AnchorBase, first)
	t, how := s.readAll(v, l, &s.sure, base, anchor)
	switch {
	case how != unknown || base.none:
		return t, how
	case v.Form == absint.Element && l.frame != entryCFA: // no tail jump, but one to a label, whichever table holds it
		return s.readAll(v, unlimited(l.frame), &s.likely, base, anchor)
	case v.Form == absint.Target && g.guesses && anchor == base:
		return s.readAll(v, l, &s.likely, base, anchor)
	}
	return nil, unknown
}

// readAll reads the tables that v may be an element of, by what a search finds that their bases and
// anchors may be. Where it guesses, it passes over those that are other jumps' and those at which no
// table begins.
func (s *resolver) readAll(v absint.Value, l limit, by *search, base, anchor root) (*table, certainty) {
	var all *table
	worst := exact
	for _, pair := range by.bases(base, anchor) {
		at := v
		at.Off += int64(pair[0])
		at.Anchor += int64(pair[1])
		if by.guesses && (s.claimed[uint64(at.Off)] || !s.beginsTable(at)) {
			continue
		}
		t, how := s.readAt(at, l)
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
func (s *resolver) readWord(way []int, v absint.Value) (*table, certainty) {
	from := s.machine.Symbols[v.Sym]
	if from.Source != absint.Loaded || from.Slot.Size != 8 {
		return nil, unknown
	}
	t := &table{loose: true, check: absint.NoCheck}
	for _, pair := range s.sure.bases(s.rootOf(from.Slot.Base, way[len(way)-1]), root{none: true}) {
		addr := uint64(from.Slot.Disp + int64(pair[0]))
		n := s.entryAt(addr, absint.Value{Form: absint.Element, Size: 8})
		if !n.inside || s.isWritten(addr) {
			return nil, unknown
		}
		t.targets = append(t.targets, n.to)
	}
	if len(t.targets) == 0 {
		return nil, unknown
	}
	slices.Sort(t.targets)
	t.targets = slices.Compact(t.targets)
	return t, exact
}

// A limit is what is known of a table's length.
type limit struct {
	most      uint64    // the greatest index
	unset     uint64    // bits that no index has
	certainty certainty // exact: a comparison bounds the index; open: most is a guess, such as what its type can hold
	guess     bool      // that a table of the full length confirms
	negative  bool      // the least index may be less than nought
	reread    bool      // what was compared is memory that was read once more
	frame     image.CFA // at the jump
	check     absint.Check
}

// unlimited is the limit of a table of which no length is known.
func unlimited(frame image.CFA) limit {
	return limit{most: absint.MaxEntries - 1, certainty: open, frame: frame, check: absint.NoCheck}
}

// limit returns what is known of the length of the table that v is an element of.
func (s *resolver) limit(way []int, v absint.Value, g goal) limit {
	l := unlimited(s.frameAt(g.jump))
	if most, ok := absint.TypeBound(v.Index()); ok && most < l.most {
		l.most, l.guess = most, true
	}
	b, ok := s.machine.IndexBound(v.Index())
	if !ok || l.guess && b.Max > l.most {
		return l
	}
	l.most, l.unset, l.guess, l.negative = b.Max, b.Unset, true, b.Negative
	if b.Compared {
		l.certainty = exact
		if l.reread = s.machine.Symbols[b.Sym].Reread; !l.reread && s.isCheck(way, b.Check.Block) {
			l.check = b.Check
		}
	}
	return l
}

// isCheck says whether control reaches the way's jump only through the conditional jump of block b
// on it, without a call in between.
func (s *resolver) isCheck(way []int, b int) bool {
	at := slices.Index(way, b)
	if at < 1 {
		return false
	}
	for k := range at {
		calls := k > 0 && s.d.blocks[way[k]].CallReturns()
		if calls || s.entry[way[k]] || len(s.d.preds[way[k]]) != 1 {
			return false
		}
	}
	return s.d.blocks[b].End == Jcc
}
