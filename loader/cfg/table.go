package cfg

import (
	"encoding/binary"
	"slices"
	"strings"

	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// A table is what an indirect jump was resolved to.
type table struct {
	tail    bool  // the jump leaves the routine
	targets []int // instructions
	indexed bool  // targets holds one for each index, from 0 on
	check   check
}

// A check is a bounds check and where the index lies at its conditional jump: position = index +
// bias.
type check struct {
	block int // -1 for none
	index x86.Operand
	bias  int64
}

var noCheck = check{block: -1}

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
	maxRuns    = 120  // ways tried for one jump
	maxEntries = 4096 // of a table whose index has no bound
	minEntries = 2    // of a table whose index has no bound: one could be a pointer that stands alone
)

// A resolver finds what registers hold in one routine, the targets of its indirect jumps first of
// all.
type resolver struct {
	*recovery
	d        *draft
	runs     int             // left for this jump
	entry    []bool          // by block: control also comes from elsewhere (the entry, landing pads)
	throwers map[int][]int32 // by landing pad: the blocks whose calls throw to it
	wrote    []uint32        // by block: registers that it may write, and memoryBit; 0 until asked for
	known    map[extent][]int
	held     map[location][]uint64 // the answers of constants
	labels   []int                 // all that may be one in the routine; nil until asked for

	inRegisters bool // the search for origins does not go through memory
}

// An extent is a table as far as reading it goes: many jumps may use the same.
type extent struct {
	form         form
	scale, size  uint8
	addr, anchor int64
	most         uint64
	certainty    certainty
}

// resolveTables resolves the indirect jumps of a routine whose blocks are built, and returns what
// it finds by the jumps' instructions. It resolves the tables first: a label that a table holds is
// no reason to mistrust a tail jump. A jump that d.refused holds stays unresolved.
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
	for _, b := range jumps {
		s.runs = maxRuns
		if t, how := s.explore([]int{b}); how != unknown {
			s.steps -= len(t.targets)
			found[d.last(b)] = t
		}
	}
	_, labels := r.label(d, found, r.isFrameless)
	for _, b := range jumps {
		switch i := d.last(b); {
		case found[i] != nil:
		case s.isTail(b, labels):
			found[i] = &table{tail: true, check: noCheck}
		default:
			if t := s.variable(b); t != nil {
				found[i] = t
			}
		}
	}
	return found
}

// isFrameless says whether the frame is gone, or not there yet, at an instruction.
func (r *recovery) isFrameless(i int) bool {
	return cfaAt(r.pieces[r.pieceOf[i]].Rows, r.insns[i].Addr) == entryCFA
}

// newResolver prepares the search for values in a routine whose blocks are built.
func (r *recovery) newResolver(d *draft) *resolver {
	d.linkPreds()
	s := &resolver{
		recovery: r, d: d, entry: make([]bool, len(d.blocks)), wrote: make([]uint32, len(d.blocks)),
		known: map[extent][]int{}, held: map[location][]uint64{},
	}
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

// explore finds the table of the jump that ends block way[0], reached along the way, which runs
// backwards. As long as the index is not bounded on the way, it is made longer, by each predecessor
// in turn: all of them have to lead to a table, and none around a loop, where the index could
// become another.
func (s *resolver) explore(way []int) (*table, certainty) {
	s.runs--
	t, how := s.read(way, s.run(way))
	if how == exact {
		return t, how
	}
	first := way[len(way)-1]
	if s.runs <= 0 || s.steps <= 0 || len(way) >= maxWay || s.entry[first] || len(s.d.preds[first]) == 0 {
		return t, how
	}
	var all *table
	worst := exact
	for _, p := range s.d.preds[first] {
		if slices.Contains(way, int(p)) {
			return t, how
		}
		u, h := s.explore(append(way, int(p)))
		if h <= how {
			return t, how
		}
		worst = min(worst, h)
		all = merge(all, u)
	}
	return all, worst
}

// merge returns a table that has the targets of both.
func merge(a, b *table) *table {
	if a == nil {
		return b
	}
	if slices.Equal(a.targets, b.targets) && a.indexed == b.indexed {
		if a.check != b.check {
			a.check = noCheck
		}
		return a
	}
	t := &table{targets: slices.Concat(a.targets, b.targets), check: noCheck}
	slices.Sort(t.targets)
	t.targets = slices.Compact(t.targets)
	return t
}

// run executes the blocks of a way, the last first, and returns the operand of the jump at its end.
// What a compiler keeps in the frame, it knows to survive calls and stores through pointers; a
// pointer to jump to that a program keeps there may have been changed by them.
func (s *resolver) run(way []int) value {
	v := s.follow(way)
	if !s.machine.stale || v.form == symbolic {
		return v
	}
	s.machine.wary = true
	w := s.follow(way)
	s.machine.wary = false
	if w.form != v.form {
		return w
	}
	return s.follow(way)
}

// follow is run, whatever may have changed the frame's memory.
func (s *resolver) follow(way []int) value {
	m := &s.machine
	m.reset(s.cfaOf(way[len(way)-1]))
	for k := len(way) - 1; k > 0; k-- {
		s.execute(way[k], len(s.d.blocks[way[k]].Insns))
		bl := &s.d.blocks[way[k]]
		if q := &bl.Insns[len(bl.Insns)-1]; q.Kind == x86.Jcc && bl.Succ[0] != bl.Succ[1] {
			m.branch(q.Op, bl.Succ[0] == way[k-1], way[k])
		}
	}
	s.execute(way[0], len(s.d.blocks[way[0]].Insns))
	_, rm, _ := s.operands(s.d.last(way[0]))
	return m.get(rm, 8, 0)
}

// execute runs the first n instructions of a block, but for the jump at its end.
func (s *resolver) execute(b, n int) {
	s.steps -= n
	for k := range n {
		switch q := &s.d.blocks[b].Insns[k]; q.Kind {
		case x86.Jcc, x86.Jmp, x86.JmpInd, x86.Ret, x86.Loop, x86.Trap:
		case x86.Call, x86.CallInd, x86.Syscall:
			s.machine.call(s.clobbers(int(s.d.first[b]) + k))
		default:
			s.machine.step(q, s.bytes(int(s.d.first[b])+k))
		}
	}
}

func (s *resolver) cfaOf(b int) image.CFA {
	p := &s.pieces[s.pieceOf[s.d.first[b]]]
	return cfaAt(p.Rows, s.d.blocks[b].Lo)
}

// read reads the table that v, the jump's operand at the end of the way, is an element of.
func (s *resolver) read(way []int, v value) (*table, certainty) {
	switch {
	case v.form == constant:
		if to := s.inside(s.d, s.find(uint64(v.off))); to >= 0 {
			return &table{targets: []int{to}, check: noCheck}, exact
		}
		return nil, unknown
	case v.form == element && v.size == 8, v.form == target && (v.size == 4 && v.signed || v.size == 8):
	default:
		return nil, unknown
	}
	l := s.limit(way, v)
	var all *table
	worst := exact
	for _, pair := range s.bases(way[len(way)-1], v.base, v.anchorBase) {
		at := v
		at.off += int64(pair[0])
		at.anchor += int64(pair[1])
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

// A limit is what is known of a table's length.
type limit struct {
	most      uint64    // the greatest index
	certainty certainty // exact: a comparison bounds the index; open: most is a guess, such as what its type can hold
	guess     bool      // that a table of the full length confirms
	check     check
}

// limit returns what is known of the length of the table that v is an element of.
func (s *resolver) limit(way []int, v value) limit {
	l := limit{most: maxEntries - 1, certainty: open, check: noCheck}
	if most, ok := typeBound(v.index()); ok && most < l.most {
		l.most, l.guess = most, true
	}
	b, ok := s.machine.boundOf(v.index())
	if !ok || b.max > l.most {
		return l
	}
	l.most, l.guess = b.max, true
	if b.compared {
		l.certainty = exact
		if s.isCheck(way, b.check.block) {
			l.check = b.check
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
		isCall := k > 0 && (s.d.blocks[way[k]].End == Call || s.d.blocks[way[k]].End == CallInd)
		if isCall || s.entry[way[k]] || len(s.d.preds[way[k]]) != 1 {
			return false
		}
	}
	return s.d.blocks[b].End == Jcc
}

// readAt reads the entries of the table at v.off.
func (s *resolver) readAt(v value, l limit) (*table, certainty) {
	e := extent{v.form, v.scale, v.size, v.off, v.anchor, l.most, l.certainty}
	targets, ok := s.known[e]
	if !ok {
		targets = s.readEntries(v, l)
		s.known[e] = targets
	}
	t, least := &table{indexed: true, targets: targets, check: l.check}, minEntries
	if len(targets) > 0 && s.isWritten(uint64(v.off)) {
		// It is read up to where code names one of its entries, be it the second.
		t, least = s.withLabels(targets), 1
	}
	switch n := len(targets); {
	case t == nil:
	case uint64(n) == l.most+1 && l.guess:
		return t, exact
	case l.certainty == open && n >= least:
		return t, open
	}
	return nil, unknown
}

// isWritten says whether the program can write where the table lies: it may hold other labels then
// than those that the file has there.
func (s *resolver) isWritten(addr uint64) bool {
	in := s.im.SectionAt(addr)
	return in != nil && in.Writable && !strings.HasPrefix(in.Name, ".data.rel.ro") // which the loader protects
}

// withLabels returns a table of some targets and all that may be a label of the routine; nil, if
// those are more than any routine has.
func (s *resolver) withLabels(targets []int) *table {
	const most = 1024
	if s.labels == nil {
		s.labels = []int{}
		s.eachLabel(s.d, func(i int) bool {
			if s.inside(s.d, i) >= 0 {
				s.labels = append(s.labels, i)
			}
			return len(s.labels) > most
		})
	}
	if len(s.labels) > most {
		return nil
	}
	all := slices.Concat(targets, s.labels)
	slices.Sort(all)
	return &table{targets: slices.Compact(all), check: noCheck}
}

// readEntries returns where the entries lead, up to the first that does not lead into the routine.
func (s *resolver) readEntries(v value, l limit) (targets []int) {
	for i := uint64(0); i <= l.most; i++ {
		at := uint64(v.off) + i*uint64(v.scale)
		to, ok := s.entryAt(at, v, l)
		if !ok || i > 0 && l.certainty == open && s.mentions.has(at) || l.certainty == open && v.size == 8 && to == s.d.entry {
			break // no label: it is a table of functions
		}
		targets = append(targets, to)
	}
	return targets
}

// entryAt reads one entry of a table and returns the instruction that it leads to, in the routine
// or in a part that becomes the routine's by that.
func (s *resolver) entryAt(at uint64, v value, l limit) (int, bool) {
	to, relocated := uint64(0), false
	if v.size == 8 {
		to, relocated = s.im.Relocations()[at]
	}
	if !relocated {
		b := s.im.Bytes(at, at+uint64(v.size))
		switch {
		case b == nil || v.size == 8 && v.form == element && s.im.PIE:
			return 0, false
		case v.size == 8:
			to = binary.LittleEndian.Uint64(b)
		default:
			to = uint64(int64(int32(binary.LittleEndian.Uint32(b))))
		}
	}
	if v.form == target {
		to += uint64(v.anchor)
	}
	i := s.find(to)
	return i, s.inside(s.d, i) >= 0 || l.guess && s.isOrphan(i)
}

// label returns an instruction of the routine, other than the first of a piece, that anything but
// the tables found mentions: a jump through a pointer, from this routine or from elsewhere, may go
// there. Only those for which is holds count.
func (r *recovery) label(d *draft, found map[int]*table, is func(insn int) bool) (insn int, ok bool) {
	known := map[int]bool{}
	for _, t := range found {
		for _, to := range t.targets {
			known[to] = true
		}
	}
	return r.eachLabel(d, func(i int) bool { return !known[i] && is(i) })
}

// eachLabel visits the instructions of the routine, other than the first of a piece, that anything
// mentions, and returns the first for which the visitor answers true.
func (r *recovery) eachLabel(d *draft, visit func(insn int) bool) (insn int, ok bool) {
	for _, pi := range d.pieces {
		p := &r.pieces[pi]
		for at := p.Lo + 1; ; at++ {
			var ok bool
			if at, ok = r.mentions.next(at, p.Hi); !ok {
				break
			}
			if i := r.find(at); i >= 0 && visit(i) {
				return i, true
			}
		}
	}
	return 0, false
}

// receiver returns an instruction that only a jump through a pointer can lead to, from elsewhere:
// the receiver of a non-local goto. What other ways lead to, too, or what pads the space before an
// aligned block, is mentioned by chance: a number that looks like its address.
func (r *recovery) receiver(d *draft) (insn int, ok bool) {
	return r.label(d, d.tables, func(i int) bool { return r.marks[i]&reached == 0 && !isPadding(&r.insns[i].Inst) })
}

// isPadding says whether the instruction is a nop of several bytes, as only assemblers make it, in
// front of labels and not behind them.
func isPadding(in *x86.Inst) bool { return in.Map == 1 && in.Op == 0x1f }
