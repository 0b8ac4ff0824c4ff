package counting

import (
	"fmt"
	"slices"

	"wpptrace/loader/cfg"
	"wpptrace/loader/paths"
)

// A Symbol is a hit: at the site of a block, with an outcome.
type Symbol int32

func symbolOf(block int, outcome uint8) Symbol { return Symbol(2*block + int(outcome)) }

// Block is the block whose site is hit.
func (s Symbol) Block() int { return int(s / 2) }

// Outcome is that of the block's conditional jump; 0 where it does not matter.
func (s Symbol) Outcome() uint8 { return uint8(s % 2) }

// None is the key of a step that counts nothing.
const None = -1

// lost is in place of a row where the thread's state is not of this activation.
const lost = -1

// A Row is a state: what a thread's hits in this activation say of its path.
type Row struct {
	Last  Symbol // the last hit
	Steps []Step // by symbol
	// Open: an interesting path may come of it that has not made all its hits. Until then it counts
	// among the rest.
	Open bool
}

// A Step is what a hit leads to.
type Step struct {
	Hit Symbol
	Row int
	Key int // the counter that gets one more; None: no counter does
}

// find returns the step of a hit, if there is one.
func find(steps []Step, s Symbol) (Step, bool) {
	i, ok := slices.BinarySearchFunc(steps, s, func(x Step, s Symbol) int { return int(x.Hit - s) })
	if !ok {
		return Step{}, false
	}
	return steps[i], true
}

// IsConditional reports whether the hits of a block's site have an outcome.
func (m *Machine) IsConditional(block int) bool {
	_, ok := find(m.Unsure, symbolOf(block, 1))
	return ok
}

// A Formula says how often something ran: the sum of some counters less that of others.
type Formula struct{ Plus, Minus []int }

// A Machine counts some paths of a routine: what is in the kernel of it, and what its counters
// mean.
type Machine struct {
	Sites    []int // blocks, rising
	Rows     []Row
	Defaults []Step // by symbol: what a hit leads to that no row has a step for
	// Unsure are the steps of a thread of which it is not known what its path did before.
	Unsure []Step
	Keys   int
	Paths  []Formula // of the interesting paths, in their order
	Rest   *Formula  // of all other paths together; nil: they are not counted
}

// A builder makes the machine of some sites.
type builder struct {
	*graph
	sites    []bool // by block
	m        *Machine
	made     []bool           // by row: its steps are
	trie     map[trieStep]int // by row, of those of the trie and trieRoot
	ending   map[int]int      // by row: the path that its hits are all of
	leaving  map[int]int      // by row: the key of what goes on otherwise
	keys     map[int]int      // by row
	rest     int              // the key of paths that begin as no interesting one
	ordinary []int            // by symbol: the row of no interesting path
	walk     walk
}

type trieStep struct {
	row int
	hit Symbol
}

const trieRoot = -1

// build makes the machine that counts the paths with these sites, as well as these can tell them
// apart; whether that is well enough is for check to say. It fails where two have the same hits, or
// one has none. Rows get their steps when they are asked for.
func (g *graph) build(sites []bool, list []paths.Path, rest bool) (b *builder, wrong int,
	err error) {
	b = &builder{graph: g, sites: sites, trie: map[trieStep]int{}, ending: map[int]int{},
		leaving: map[int]int{}, keys: map[int]int{}, rest: None,
		ordinary: make([]int, 2*len(sites)), m: &Machine{}}
	b.walk.b = b
	for block, on := range sites {
		if on {
			b.m.Sites = append(b.m.Sites, block)
		}
	}
	for i := range list {
		if err := b.add(i, &list[i]); err != nil {
			return nil, i, err
		}
	}
	if rest {
		b.rest = b.key()
	}
	b.m.Paths = make([]Formula, len(list))
	b.formulas()
	for _, at := range b.fresh() {
		for out := range b.outcomes(at) {
			b.m.Defaults = append(b.m.Defaults, b.first(symbolOf(at, out)))
		}
	}
	sortSteps(b.m.Defaults)
	return b, 0, nil
}

func sortSteps(list []Step) {
	slices.SortFunc(list, func(a, b Step) int { return int(a.Hit - b.Hit) })
}

// finish makes all of the machine.
func (b *builder) finish() *Machine {
	for _, at := range b.m.Sites {
		for out := range b.outcomes(at) {
			s := symbolOf(at, out)
			b.m.Unsure = append(b.m.Unsure, Step{s, b.ordinaryRow(s), None})
		}
	}
	for row := 0; row < len(b.m.Rows); row++ { // rows are made on the way
		b.steps(row)
	}
	for _, row := range b.trie {
		if _, ends := b.ending[row]; !ends {
			b.m.Rows[row].Open = true
		}
	}
	return b.m
}

func (b *builder) key() int {
	b.m.Keys++
	return b.m.Keys - 1
}

func (b *builder) row(last Symbol) int {
	b.m.Rows = append(b.m.Rows, Row{Last: last})
	b.made = append(b.made, false)
	return len(b.m.Rows) - 1
}

// hits returns what hits a path makes.
func (b *builder) hits(p *paths.Path) (list []Symbol) {
	for i, block := range p.Blocks {
		if !b.sites[block] {
			continue
		}
		s := symbolOf(block, 0)
		if b.decides[block] {
			for _, m := range b.moves[block] {
				if i+1 < len(p.Blocks) && !m.ends && m.to == p.Blocks[i+1] ||
					i+1 == len(p.Blocks) && m.ends && m.end == p.End {
					s = symbolOf(block, m.out)
				}
			}
		}
		list = append(list, s)
	}
	return list
}

// add puts a path into the trie of hits.
func (b *builder) add(i int, p *paths.Path) error {
	row := trieRoot
	for _, s := range b.hits(p) {
		next, ok := b.trie[trieStep{row, s}]
		if !ok {
			next = b.row(s)
			b.trie[trieStep{row, s}] = next
		}
		row = next
	}
	if row == trieRoot {
		return fmt.Errorf("path %d has no hit", i)
	}
	if other, ok := b.ending[row]; ok {
		return fmt.Errorf("paths %d and %d have the same hits", other, i)
	}
	b.ending[row] = i
	return nil
}

// ordinaryRow is the row of a hit of no interesting path.
func (b *builder) ordinaryRow(s Symbol) int {
	if b.ordinary[s] == 0 {
		b.ordinary[s] = 1 + b.row(s)
	}
	return b.ordinary[s] - 1
}

// steps returns those of a row.
func (b *builder) steps(row int) []Step {
	if b.made[row] {
		return b.m.Rows[row].Steps
	}
	b.made[row] = true
	last := b.m.Rows[row].Last
	w := &b.walk
	w.begin()
	for _, m := range b.follow(last.Block(), last.Outcome()) {
		w.move(&m, false)
	}
	w.run()
	var list []Step
	for _, at := range w.in {
		for out := range b.outcomes(at) {
			list = append(list, b.onward(row, symbolOf(at, out)))
		}
	}
	for _, at := range w.new {
		if slices.Contains(w.in, at) {
			continue
		}
		for out := range b.outcomes(at) {
			list = append(list, b.first(symbolOf(at, out)))
		}
	}
	sortSteps(list)
	b.m.Rows[row].Steps = list
	return list
}

// first is the step of the first hit of a path.
func (b *builder) first(s Symbol) Step {
	if row, ok := b.trie[trieStep{trieRoot, s}]; ok {
		return Step{s, row, b.keyOf(row, trieRoot)}
	}
	return Step{s, b.ordinaryRow(s), b.rest}
}

// onward is the step to a further hit of the path that a row is of.
func (b *builder) onward(row int, s Symbol) Step {
	if next, ok := b.trie[trieStep{row, s}]; ok {
		return Step{s, next, b.keyOf(next, row)}
	}
	key := None
	if leaving, ok := b.leaving[row]; ok {
		key = leaving
	}
	return Step{s, b.ordinaryRow(s), key}
}

// keyOf is the key that a row of the trie is counted by, behind another: None, where nobody needs
// it.
func (b *builder) keyOf(row, before int) int {
	_, ends := b.ending[row]
	_, follows := b.ending[before]
	if !ends && !follows && (before != trieRoot || b.rest == None) {
		return None
	}
	return b.counted(row)
}

// counted is the key of a row that is counted.
func (b *builder) counted(row int) int {
	key, ok := b.keys[row]
	if !ok {
		key = b.key()
		b.keys[row] = key
	}
	return key
}

// formulas makes the counters, and says what they mean.
func (b *builder) formulas() {
	for row := range b.ending {
		b.leaving[row] = b.key()
	}
	minus := map[int][]int{}
	for at, next := range b.trie {
		if _, ok := b.ending[at.row]; ok {
			minus[at.row] = append(minus[at.row], b.counted(next))
		}
	}
	rest := &Formula{Plus: []int{b.rest}}
	for row, i := range b.ending {
		f := Formula{Plus: []int{b.counted(row)}, Minus: append(minus[row], b.leaving[row])}
		slices.Sort(f.Minus)
		b.m.Paths[i] = f
		rest.Plus = append(rest.Plus, f.Minus...)
		rest.Minus = append(rest.Minus, f.Plus...)
	}
	if b.rest == None {
		return
	}
	for at, next := range b.trie {
		if at.row == trieRoot {
			rest.Plus = append(rest.Plus, b.counted(next))
		}
	}
	cancel(rest)
	b.m.Rest = rest
}

// cancel takes out what is added and subtracted.
func cancel(f *Formula) {
	times := map[int]int{}
	for _, k := range f.Plus {
		times[k]++
	}
	for _, k := range f.Minus {
		times[k]--
	}
	f.Plus, f.Minus = nil, nil
	for k, n := range times {
		for ; n > 0; n-- {
			f.Plus = append(f.Plus, k)
		}
		for ; n < 0; n++ {
			f.Minus = append(f.Minus, k)
		}
	}
	slices.Sort(f.Plus)
	slices.Sort(f.Minus)
}

// fresh are the sites that may be the first of an activation, or behind a call.
func (b *builder) fresh() []int {
	w := &b.walk
	w.begin()
	for _, s := range slices.Concat(b.entries, b.pads) {
		w.visit(s.block, true)
	}
	for block := range b.moves {
		for _, m := range b.moves[block] {
			if m.hard && m.to != cfg.Exit {
				w.visit(m.to, true)
			}
		}
	}
	w.run()
	return slices.Clone(w.new)
}

// A walk goes along blocks without a site, as far as the thread's state stays.
type walk struct {
	b       *builder
	round   int32
	seen    []int32 // by block, and whether it is of another path: the last round
	pending []int32
	in, new []int // sites that come next on the path that it began in, and as the first of another
}

func (w *walk) begin() {
	if w.seen == nil {
		w.seen = make([]int32, 2*len(w.b.sites))
	}
	w.round++
	w.in, w.new = w.in[:0], w.new[:0]
}

func (w *walk) visit(block int, new bool) {
	at := 2 * block
	if new {
		at++
	}
	switch {
	case w.seen[at] == w.round:
		return
	case !w.b.sites[block]:
		w.pending = append(w.pending, int32(at))
	case new:
		w.new = append(w.new, block)
	default:
		w.in = append(w.in, block)
	}
	w.seen[at] = w.round
}

func (w *walk) move(m *move, new bool) {
	if !m.hard {
		w.visit(m.to, new || m.ends)
	}
}

func (w *walk) run() {
	for len(w.pending) > 0 {
		at := int(w.pending[len(w.pending)-1])
		w.pending = w.pending[:len(w.pending)-1]
		moves := w.b.moves[at/2]
		for i := range moves {
			w.move(&moves[i], at%2 == 1)
		}
	}
}
